"""Record the inputs and outputs of layers in a pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Call(NamedTuple):
    """A layer with its input and its output, which has a gradient."""

    layer: nn.Module
    inputs: Tensor
    output: Tensor


@contextmanager
def recorded_calls(layers: Iterable[nn.Module]) -> Iterator[list[Call]]:
    """Record every call of these layers, in their order."""
    calls: list[Call] = []

    def record(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        if torch.is_grad_enabled() and not output.requires_grad:
            output.requires_grad_()  # nothing is trained below this frozen layer
        calls.append(Call(layer, inputs[0], output))
        return output.clone()  # an activation may work in place

    handles = [layer.register_forward_hook(record) for layer in layers]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()
