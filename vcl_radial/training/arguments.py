"""The check of a trainer's arguments that their types do not show."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from vcl_radial.errors import UserError, bad_value
from vcl_radial.methods.base import Method


def check_kl_schedule(schedule: str, cls: type[Any]) -> None:
    """Check that the steps of a method can follow a schedule of the KL's factor.

    Args:
        schedule: name of the schedule.
        cls: class of the method, or of an Avalanche strategy.

    Raises:
        UserError: they cannot.
    """
    if schedule != "constant" and not (issubclass(cls, Method) and cls.kl_in_steps):
        fault = f"is not for {cls.__name__}, whose steps have one factor of the KL: leave it out"
        raise bad_value("kl_schedule", schedule, fault)


def check_arguments(method: Any, optimizer: Any, inside: Any) -> None:
    """Check that a method was made, that an optimiser is not, and that `inside` makes contexts.

    Raises:
        UserError: a check fails; names the argument and the fix.
    """
    if not isinstance(method, Method):
        kind = method.__name__ if isinstance(method, type) else type(method).__name__
        raise UserError(f"{kind} is no method: give one over a network, such as VCL(network)")
    if isinstance(optimizer, type):
        example = "lambda network: Adam(network.parameters(), lr=1e-3)"
        fault = f"must be a function from a network to an optimiser, such as {example}"
        raise bad_value("optimizer", optimizer, fault)
    if isinstance(inside, AbstractContextManager):
        raise bad_value("inside", inside, "must make a context: put `lambda:` before it")
