"""The outcome of a check."""

from __future__ import annotations

import sys
import traceback
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
    """An exception in one line; it begins with the class if no file of the user's is in the trace.

    Args:
        error: the exception.
        subject: the class under check.
    """
    line = format_error(error, subject)
    modules = [sys.modules.get(cls.__module__) for cls in subject.__mro__]
    roots = ("vcl_radial", "avalanche", "torch")
    files = {m.__file__ for m in modules if m and hasattr(m, "__file__") and _root(m) not in roots}
    in_trace = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    if isinstance(error, VclRadialError) or files & in_trace:
        return line
    return f"{subject.__name__}: {line}"


def _root(module: Any) -> str:
    return str(module.__name__).partition(".")[0]
