"""What one check found, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
