"""Optimisers by their names, and a user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from torch import nn
from torch.optim import SGD, Adam, Optimizer

from vcl_radial.config import outside
from vcl_radial.errors import UserError

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


def own_optimizer(name: str, parameters: Iterable[Any], learning_rate: float) -> Optimizer:
    """Make the optimiser of a recipe that names `package.module:function`.

    The function is called as `function(parameters, lr=learning_rate)`, so that it may also be a
    class: `torch.optim:AdamW`.

    Args:
        name: the value of the recipe's key `optimizer`.
        parameters: parameters of a network, or groups of them.
        learning_rate: the recipe's learning rate.

    Raises:
        UserError: the function is missing, fails, or returns no optimiser.
    """
    made = outside.call("optimizer", name, parameters, lr=learning_rate)
    if not isinstance(made, Optimizer):
        raise UserError(
            f"optimizer = {name!r} gives {type(made).__name__}, not a torch.optim.Optimizer"
        )
    return made
