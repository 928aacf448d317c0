"""Optimisers by their names."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn
from torch.optim import SGD, Adam, Optimizer

from vcl_radial.errors import UserError


def named_optimizer(name: str, learning_rate: float) -> Callable[[nn.Module], Optimizer]:
    """A function that makes an optimiser by its name: "adam", "amsgrad" or "sgd"."""

    def make(network: nn.Module) -> Optimizer:
        if name == "sgd":
            return SGD(network.parameters(), lr=learning_rate)
        return Adam(network.parameters(), lr=learning_rate, amsgrad=name == "amsgrad")

    if name not in ("adam", "amsgrad", "sgd"):
        raise UserError(
            f"optimizer = {name!r}: choose from 'adam', 'amsgrad' and 'sgd', or give a function of "
            "the network"
        )
    return make
