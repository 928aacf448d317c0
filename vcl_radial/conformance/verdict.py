"""What one check found, in words."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

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


def in_words(error: Exception, method: type[Any] | None = None) -> str:
    """An exception in one line; one that is not the suite's own with its place in the method."""
    text = " ".join(str(error).split())
    if isinstance(error, VclRadialError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    own = _file(method)
    place = next((f for f in reversed(frames) if f.filename == own), frames[-1] if frames else None)
    at = f" ({Path(place.filename).name}, line {place.lineno}, in {place.name})" if place else ""
    return f"{type(error).__name__}: {text}{at}"


def _file(method: type[Any] | None) -> str | None:
    import sys

    return getattr(sys.modules.get(method.__module__), "__file__", None) if method else None
