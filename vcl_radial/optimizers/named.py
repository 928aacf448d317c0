"""Optimisers by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import nn
from torch.optim import SGD, Adam, Optimizer

Name = Literal["adam", "amsgrad", "sgd"]


def optimizer_maker(
    optimizer: Name | Callable[[nn.Module], Optimizer], learning_rate: float
) -> Callable[[nn.Module], Optimizer]:
    """A function that makes an optimiser over the parameters of a network.

    Args:
        optimizer: name of the optimiser, or the function itself.
        learning_rate: its learning rate, if it is a name.
    """
    if callable(optimizer):
        return optimizer
    if optimizer == "sgd":
        return lambda network: SGD(network.parameters(), lr=learning_rate)
    amsgrad = optimizer == "amsgrad"
    return lambda network: Adam(network.parameters(), lr=learning_rate, amsgrad=amsgrad)
