"""The outcome of a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from vcl_radial.config.outside import format_error
from vcl_radial.errors import VclRadialError

Outcome = Literal["ok", "fault", "skipped"]


@dataclass(frozen=True)
class Verdict:
    """The outcome of one check: `message` states a result, or a fault and its fix."""

    name: str
    outcome: Outcome
    message: str

    def __str__(self) -> str:
        mark = "FAULT" if self.outcome == "fault" else self.outcome
        return f"{mark:8} {self.name}: {self.message}"


class Fault(Exception):
    """The method fails a check."""


class NotApplicable(Exception):
    """A check does not apply to this method, or another fault prevents it."""


def description(error: BaseException, subject: type[Any]) -> str:
    """An exception in one line; unless the suite raised it, the line begins with the class.

    Args:
        error: the exception.
        subject: the class under check.
    """
    line = format_error(error, subject)
    return line if isinstance(error, VclRadialError) else f"{subject.__name__}: {line}"
