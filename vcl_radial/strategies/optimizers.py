"""Optimisers that serve every experience of an Avalanche strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from avalanche.models.dynamic_optimizers import update_optimizer
from avalanche.training.plugins import LRSchedulerPlugin
from torch import nn
from torch.optim import Optimizer

from vcl_radial.errors import UserError


def start_afresh(make: Callable[..., None], **settings: Any) -> None:
    """Reset an optimiser's state and take new heads over, as Avalanche does.

    Raises:
        UserError: a new head belongs to none of several groups.
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
    """An optimiser like another one, afresh, over a copy of the network that it is for."""
    pairs = zip(original.parameters(), network.parameters(), strict=True)
    # With its groups, over the copy's parameters ...
    made = deepcopy(optimizer, {id(own): copied for own, copied in pairs})
    # ... and heads that only a loaded state has brought; nothing is left of its steps.
    update_optimizer(made, dict(network.named_parameters()), reset_state=True)
    return made


def refuse_stale_schedulers(plugins: Iterable[Any], optimizer: Optimizer) -> None:
    """See that no plugin turns the rates of an optimiser that is no longer in use.

    Raises:
        UserError: one does.
    """
    for plugin in plugins:
        if isinstance(plugin, LRSchedulerPlugin) and plugin.scheduler.optimizer is not optimizer:
            raise UserError(
                "an LRSchedulerPlugin schedules one optimiser, and a function makes a new one for "
                "each experience: give optimizer as an instance, or say schedule instead"
            )
