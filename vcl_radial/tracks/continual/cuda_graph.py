"""A training step recorded once as a CUDA graph and replayed: no launch waits for Python."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcl_radial.nn.lane_step import LaneStep

_WARM_UP = 3
"""Steps that PyTorch asks for before a recording, so that libraries have set themselves up."""


class Replayed:
    """A step as it is on a CPU; on a GPU recorded, once for each number of lanes and rows.

    Args:
        step: it reads and writes fixed tensors and waits for nothing.
    """

    def __init__(self, step: LaneStep) -> None:
        self.step = step
        self._recorded: dict[torch.Size, tuple[torch.cuda.CUDAGraph, Tensor, Tensor]] = {}

    def scale_rates(self, factors: Sequence[float]) -> None:
        """As `LaneStep.scale_rates`; what is recorded reads the rates anew."""
        self.step.scale_rates(factors)

    def __call__(self, rows: Tensor) -> Tensor:
        """Make a step on the rows `[lanes, B]`; the losses `[lanes]`."""
        if rows.device.type != "cuda":
            return self.step(rows)
        if rows.shape not in self._recorded:
            self._recorded[rows.shape] = self._record(rows)
        graph, own_rows, losses = self._recorded[rows.shape]
        own_rows.copy_(rows)
        graph.replay()
        return losses

    def _record(self, rows: Tensor) -> tuple[torch.cuda.CUDAGraph, Tensor, Tensor]:
        own_rows = rows.clone()
        state = self.step.state()
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                self.step(own_rows)
        torch.cuda.current_stream().wait_stream(stream)
        self.step.restore(state)
        graph = torch.cuda.CUDAGraph()
        for generator in self.step.generators:
            graph.register_generator_state(generator)
        with torch.cuda.graph(graph):
            losses = self.step(own_rows)
        return graph, own_rows, losses
