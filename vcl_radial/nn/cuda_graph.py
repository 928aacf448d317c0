"""A training step, recorded once as a CUDA graph: no kernel launch waits for Python."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcl_radial.nn.lane_step import LaneStep

_WARM_UP = 3
"""Number of steps before a recording, which PyTorch requires to initialise its libraries."""


class Replayed:
    """A step that runs directly on a CPU; on a GPU it is recorded once per shape of the rows.

    Args:
        step: the step, which reads and writes fixed tensors and waits for nothing.
    """

    def __init__(self, step: LaneStep) -> None:
        self.step, self.device = step, step.x.device
        self._recorded: dict[torch.Size, tuple[torch.cuda.CUDAGraph, Tensor, Tensor]] = {}

    def scale_rates(self, factors: Sequence[float]) -> None:
        """Call `LaneStep.scale_rates`; the recording reads the rates at each replay."""
        self.step.scale_rates(factors)

    def __call__(self, rows: Tensor) -> Tensor:
        """Make a step on the rows `[lanes, B]`; the losses `[lanes]`."""
        if rows.device.type != "cuda":
            return self.step(rows)
        if rows.shape not in self._recorded:
            self._recorded[rows.shape] = self._record(rows)
        graph, static_rows, losses = self._recorded[rows.shape]
        static_rows.copy_(rows)
        graph.replay()
        return losses

    def _record(self, rows: Tensor) -> tuple[torch.cuda.CUDAGraph, Tensor, Tensor]:
        static_rows = rows.clone()
        state = self.step.state()
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                self.step(static_rows)
        torch.cuda.current_stream().wait_stream(stream)
        self.step.restore(state)
        graph = torch.cuda.CUDAGraph()
        for generator in self.step.generators:
            graph.register_generator_state(generator)
        with torch.cuda.graph(graph):
            losses = self.step(static_rows)
        return graph, static_rows, losses
