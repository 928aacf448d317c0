"""Photographs that cannot be used: the user chooses whether they stop the run or are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vcl_radial.data.decoding import ReportProgress, print_progress
from vcl_radial.errors import DataError

OnFault = Literal["stop", "skip"]
"""Whether a photograph that cannot be used ends the run, or is reported and left out."""

_NAMED = 3


@dataclass(frozen=True)
class Fault:
    """The reason why a photograph cannot be used.

    Attributes:
        image: name of the photograph.
        kind: short name of the kind of fault: "missing", "not graded".
        detail: details of this fault, or "".
    """

    image: str
    kind: str
    detail: str = ""


def handle_faults(
    where: str,
    faults: Sequence[Fault],
    total: int,
    on_fault: OnFault,
    report: ReportProgress = print_progress,
) -> None:
    """Report in one line the photographs that cannot be used, or raise an error with this line.

    Args:
        where: name or folder of the data set, as the user named it.
        faults: the faults, if any.
        total: number of photographs, including the faulty ones.
        on_fault: "stop", or "skip" to leave them out.
        report: takes the line for the user.

    Raises:
        DataError: there are faults and `on_fault` is "stop", or no photograph would be left.
    """
    if not faults:
        return
    line = f"{len(faults)} of {total} photographs cannot be used: {_described(faults)}"
    if len(faults) == total:
        raise DataError(f"{line}; none is left", at=where)
    if on_fault == "stop":
        raise DataError(
            f'{line}; fix them, or leave them out with data.on_fault = "skip"', at=where
        )
    report(f"{where}: {line}; left out")


def _described(faults: Sequence[Fault]) -> str:
    """`2 missing (a, b), 1 damaged (c: image file is truncated)`."""
    kinds: dict[str, list[Fault]] = {}
    for fault in faults:
        kinds.setdefault(fault.kind, []).append(fault)
    parts = []
    for kind, group in kinds.items():
        names = [f"{f.image}: {f.detail}" if f.detail else f.image for f in group[:_NAMED]]
        ellipsis = ", ..." if len(group) > _NAMED else ""
        parts.append(f"{len(group)} {kind} ({', '.join(names)}{ellipsis})")
    return ", ".join(parts)
