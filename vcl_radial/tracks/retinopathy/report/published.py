"""The paper's Table 1 on EyePACS, from `published.csv`.

Farquhar, Osborne and Gal, "Radial Bayesian Neural Networks: Beyond Discrete Support In Large-Scale
Bayesian Deep Learning" (AISTATS 2020), Table 1: runs by the authors, at 512 x 512 pixels.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

CITATION: Final = (
    'Farquhar, Osborne and Gal, "Radial Bayesian Neural Networks: Beyond Discrete Support In '
    'Large-Scale Bayesian Deep Learning" (AISTATS 2020), Table 1'
)

WORDS: Final = {
    "naive": "deterministic",
    "gaussian-vcl": "MFVI",
    "gaussian-vcl-tweaked": "MFVI with tweaks",
    "gaussian-vcl-truncated": "truncated MFVI",
    "radial-vcl": "Radial",
}
"""The paper's names for methods that have different names in this suite."""

SHARES: Final = (0.0, 0.1, 0.2, 0.3)
"""Shares referred in the table."""


@dataclass(frozen=True)
class Published:
    """A row of the table.

    Attributes:
        name: name of the method for a reader.
        network: architecture; the paper's asterisk marks fewer channels for as many parameters.
        parameters: number of parameters, as printed.
        epoch_minutes: minutes of a training epoch, all members in turn.
        auc: AUC in per cent, by the share referred.
        standard_error: standard error over resampled photographs, in per cent.
    """

    name: str
    network: str
    parameters: str
    epoch_minutes: float
    auc: Mapping[float, float]
    standard_error: Mapping[float, float]


@lru_cache(maxsize=1)
def published() -> dict[str, Published]:
    """The rows, by the names of the shipped recipes."""
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    return {
        row["method"]: Published(
            name=row["name"],
            network=row["network"],
            parameters=row["parameters"],
            epoch_minutes=float(row["epoch_minutes"]),
            auc={share: float(row[f"auc_{100 * share:.0f}"]) for share in SHARES},
            standard_error={share: float(row[f"se_{100 * share:.0f}"]) for share in SHARES},
        )
        for row in csv.DictReader(text.splitlines())
    }
