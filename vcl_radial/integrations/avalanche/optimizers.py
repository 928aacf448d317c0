"""Optimisers for every experience of an Avalanche strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from avalanche.models.dynamic_optimizers import update_optimizer
from avalanche.training.plugins import LRSchedulerPlugin
from torch import nn
from torch.optim import Optimizer

from vcl_radial.errors import UserError


def reset_optimizer(make: Callable[..., None], **settings: Any) -> None:
    """Reset an optimiser's state and add new heads, as Avalanche does.

    Raises:
        UserError: the optimiser has several groups, and a new head belongs to none of them.
    """
    try:
        make(**{**settings, "reset_optimizer_state": True})
    except AttributeError as error:
        if "No unique group" not in str(error):
            raise
        raise UserError(
            "a new head has no place among the optimiser's groups of parameters: give "
            "optimizer as a function of the model that makes the groups"
        ) from error


def optimizer_over(network: nn.Module, original: nn.Module, optimizer: Optimizer) -> Optimizer:
    """A new optimiser with another one's groups, over a copy of its network."""
    pairs = zip(original.parameters(), network.parameters(), strict=True)
    copy = deepcopy(optimizer, {id(parameter): copied for parameter, copied in pairs})
    # Add heads that only a loaded state has, and drop the state of the optimiser's steps.
    update_optimizer(copy, dict(network.named_parameters()), reset_state=True)
    return copy


def refuse_stale_schedulers(plugins: Iterable[Any], optimizer: Optimizer) -> None:
    """Raise `UserError` if a plugin sets the rates of an optimiser that is no longer in use."""
    for plugin in plugins:
        if isinstance(plugin, LRSchedulerPlugin) and plugin.scheduler.optimizer is not optimizer:
            raise UserError(
                "an LRSchedulerPlugin schedules one optimiser, and a function makes a new one for "
                "each experience: give optimizer as an instance, or say schedule instead"
            )
