"""Checks of a strategy's network and loss before it trains."""

from __future__ import annotations

from typing import Any

from avalanche.models import MultiTaskModule
from torch import nn

from vcl_radial.errors import UserError
from vcl_radial.methods.base import Method


def require_known_heads(method: Method) -> bool:
    """Whether the network is an Avalanche `MultiTaskModule`, called with a task label per row.

    Raises:
        UserError: the method asks each head separately, or contains such a network.
    """
    network = method.network
    foreign = isinstance(network, MultiTaskModule)
    inner = [m for m in network.modules() if isinstance(m, MultiTaskModule)]
    if inner and (method.asks_heads or not foreign):
        raise UserError(
            f"{type(method).__name__} cannot tell the heads of a {type(inner[0]).__name__} apart: "
            "give it a network with a vcl_radial.nn.MultiHead, or with one head"
        )
    if foreign:
        method.with_task, method.eval_samples = True, 1
    return foreign


def refuse_other_loss(criterion: Any) -> None:
    """Raise `UserError` if the loss is not the objective's plain `CrossEntropyLoss`."""
    plain = nn.CrossEntropyLoss()
    if (
        type(criterion) is nn.CrossEntropyLoss
        and criterion.weight is None
        and vars(criterion).keys() == vars(plain).keys()
        and (criterion.reduction, criterion.label_smoothing, criterion.ignore_index)
        == (plain.reduction, plain.label_smoothing, plain.ignore_index)
    ):
        return
    raise UserError(
        f"criterion = {criterion}: the loss is the mean negative log-likelihood of the classes, "
        "nn.CrossEntropyLoss(); for another one override criterion() in a subclass"
    )
