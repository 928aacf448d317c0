"""The scores of a comparison, with their headings, formats and meanings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vcl_radial.files.reading import read_toml


@dataclass(frozen=True)
class Score:
    """The heading, format and meaning of a score.

    Attributes:
        heading: heading of the column; the arrow shows the better direction.
        decimals: number of printed decimals.
        meaning: a short explanation.
        better: "higher", "lower", or None if neither is better.
        counted: whether it is a whole number that is equal for all seeds of a method.
        in_bytes: whether it is a number of bytes, which is printed with its unit.
    """

    heading: str
    decimals: int
    meaning: str
    better: Literal["higher", "lower"] | None = None
    counted: bool = False
    in_bytes: bool = False

    @property
    def name(self) -> str:
        """The heading without unit and arrow."""
        return self.heading.partition(" (")[0].rstrip(" ↑↓")


_TABLES = read_toml(Path(__file__).with_suffix(".toml"))
SCORES = {name: Score(**table) for name, table in _TABLES.items()}
"""The scores of `metrics.summary`, then the costs of a run, in the order of tables."""

COSTS = ("training_seconds", "evaluation_seconds", "parameters", "carried_bytes")

ASIDE = ("average_sampling", *COSTS)
"""Scores that do not measure the quality of predictions."""
