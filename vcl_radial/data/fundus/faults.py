"""Photographs that cannot be used: named, counted, and left out or fatal as the user chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vcl_radial.data.decoding import ReportProgress, tell_user
from vcl_radial.errors import DataError

__all__ = ["Fault", "OnFault", "ReportProgress", "handle_faults", "tell_user"]

OnFault = Literal["stop", "skip"]
"""Whether a photograph that cannot be used ends the run, or is left out and said to be."""

_NAMED = 3


@dataclass(frozen=True)
class Fault:
    """Why a photograph cannot be used.

    Attributes:
        image: its name.
        kind: in a few words, the same for all of one kind: "missing", "not graded".
        detail: more about this one, or "".
    """

    image: str
    kind: str
    detail: str = ""


def handle_faults(
    where: str,
    faults: Sequence[Fault],
    total: int,
    on_fault: OnFault,
    tell: ReportProgress = tell_user,
) -> None:
    """Say in one line what cannot be used, or stop with it.

    Args:
        where: the data set, by the name or folder that the user gave.
        faults: what is wrong, or nothing.
        total: how many photographs there are, the faulty ones among them.
        on_fault: stop, or leave them out.
        tell: takes the line.

    Raises:
        DataError: there are faults, and the user chose to stop; or nothing would be left.
    """
    unusable = len({fault.image for fault in faults})
    if not faults:
        if total == 0:
            raise DataError("holds no photographs", at=where)
        return
    line = f"{unusable} of {total} photographs cannot be used: {_described(faults)}"
    if unusable >= total:
        raise DataError(f"{line}; none is left", at=where)
    if on_fault == "stop":
        raise DataError(
            f'{line}; fix them, or leave them out with data.on_fault = "skip"', at=where
        )
    tell(f"{where}: {line}; left out")


def _described(faults: Sequence[Fault]) -> str:
    """`2 missing (a, b), 1 damaged (c: image file is truncated)`."""
    kinds: dict[str, list[Fault]] = {}
    for fault in faults:
        kinds.setdefault(fault.kind, []).append(fault)
    parts = []
    for kind, alike in kinds.items():
        shown = [f"{f.image}: {f.detail}" if f.detail else f.image for f in alike[:_NAMED]]
        more = ", ..." if len(alike) > _NAMED else ""
        parts.append(f"{len(alike)} {kind} ({', '.join(shown)}{more})")
    return ", ".join(parts)
