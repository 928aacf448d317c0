"""What one check found, in words."""

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
    """The outcome of one check: `words` say what was seen, or what is wrong and how to mend it."""

    name: str
    outcome: Outcome
    words: str

    def __str__(self) -> str:
        mark = "FAULT" if self.outcome == "fault" else self.outcome
        return f"{mark:8} {self.name}: {self.words}"


class Fault(Exception):
    """The method does not keep what a check asks for."""


class NotApplicable(Exception):
    """A check that says nothing about this method, or that another fault keeps from looking."""


def description(error: BaseException, subject: type[Any]) -> str:
    """An exception in one line; it begins with the class where no file of the user's was at work.

    Args:
        error: what was raised.
        subject: the class under check.
    """
    line = format_error(error, subject)
    modules = [sys.modules.get(cls.__module__) for cls in subject.__mro__]
    roots = ("vcl_radial", "avalanche", "torch")
    files = {m.__file__ for m in modules if m and hasattr(m, "__file__") and _root(m) not in roots}
    at_work = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    if isinstance(error, VclRadialError) or files & at_work:
        return line
    return f"{subject.__name__}: {line}"


def _root(module: Any) -> str:
    return str(module.__name__).partition(".")[0]
