"""Groupings: the weights of a layer that share one radius.

A layer holds a weight `[out, ...]` and a bias `[out]`. A grouping joins them to blocks of shape
`[groups, D]`, the convention of `vcl_radial.posteriors`, and splits sampled blocks `[..., groups,
D]` into weight and bias again. For a fully factorised family (Gaussian) it changes only the layout;
for a radial family it defines which weights share a radius.

| grouping | one group is                         | source                                         |
| -------- | ------------------------------------ | ---------------------------------------------- |
| layer    | a layer's weights and biases         | Farquhar, Osborne and Gal 2020, section 3.1    |
| tensor   | a weight tensor, or a bias vector    | that paper's published code                    |
| unit     | one output unit's weights and bias   | -                                              |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from vcl_radial.errors import bad_value

Layer = tuple[Tensor, Tensor | None]
"""A weight `[..., out, ...]` and a bias `[..., out]`."""


class Grouping(NamedTuple):
    """Functions that join a layer to blocks, and split blocks into a layer."""

    join: Callable[[Tensor, Tensor | None], list[Tensor]]
    split: Callable[[Sequence[Tensor], torch.Size], Layer]


def _join_layer(weight: Tensor, bias: Tensor | None) -> list[Tensor]:
    parts = [weight.flatten()] if bias is None else [weight.flatten(), bias]
    return [torch.cat(parts)[None]]


def _split_layer(blocks: Sequence[Tensor], shape: torch.Size) -> Layer:
    weight, bias = _cut(blocks[0].squeeze(-2), prod(shape))
    return _shaped(weight, shape), bias


def _join_tensor(weight: Tensor, bias: Tensor | None) -> list[Tensor]:
    return [weight.flatten()[None]] if bias is None else [weight.flatten()[None], bias[None]]


def _split_tensor(blocks: Sequence[Tensor], shape: torch.Size) -> Layer:
    weight = _shaped(blocks[0].squeeze(-2), shape)
    return weight, (blocks[1].squeeze(-2) if len(blocks) > 1 else None)


def _join_unit(weight: Tensor, bias: Tensor | None) -> list[Tensor]:
    rows = weight.flatten(1)
    return [rows if bias is None else torch.cat([rows, bias[:, None]], dim=1)]


def _split_unit(blocks: Sequence[Tensor], shape: torch.Size) -> Layer:
    weight, bias = _cut(blocks[0], prod(shape[1:]))
    return _shaped(weight, shape[1:]), (None if bias is None else bias.squeeze(-1))


def _shaped(weight: Tensor, shape: torch.Size) -> Tensor:
    """Split the last axis into these axes."""
    return weight.reshape(*weight.shape[:-1], *shape)


def _cut(block: Tensor, size: int) -> tuple[Tensor, Tensor | None]:
    """The first `size` entries of the last axis, and the rest or None.

    It uses one split, not two slices: the gradient of a slice first fills the block with zeros.
    """
    if block.shape[-1] == size:
        return block, None
    weight, bias = torch.split(block, [size, block.shape[-1] - size], dim=-1)
    return weight, bias


GROUPINGS: dict[str, Grouping] = {
    "layer": Grouping(_join_layer, _split_layer),
    "tensor": Grouping(_join_tensor, _split_tensor),
    "unit": Grouping(_join_unit, _split_unit),
}


def grouping(name: str) -> Grouping:
    """The grouping of that name.

    Raises:
        UserError: There is no grouping of that name.
    """
    try:
        return GROUPINGS[name]
    except KeyError:
        raise bad_value(
            "grouping", name, f"is not known: choose from {', '.join(GROUPINGS)}"
        ) from None
