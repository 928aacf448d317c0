"""Units of work: a set, a method, one setting and some splits, each with a result file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from vcl_radial.errors import UserError
from vcl_radial.runs import result_file
from vcl_radial.runs.settings import Count, digest_of
from vcl_radial.tracks.regression.settings import Recipe, shape


class Unit(result_file.Unit):
    """What decides the numbers.

    Attributes:
        set: the name of the data set.
        method: the name of the recipe.
        recipe: all of its keys.
        splits: by number, from 0.
        seed: of starts, batches and draws.
        validation: the share of the training rows to score on; None: score on the test rows.
        slices: of a sequence; None for all rows at once.
        data: a checksum of the set's rows and splits.
    """

    set: str
    method: str
    recipe: Recipe
    splits: Annotated[list[int], Field(min_length=1)]
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    validation: Annotated[float, Field(gt=0, lt=1)] | None = None
    slices: Count | None = None
    data: str

    @property
    def steps(self) -> int:
        """Of Adam, in all."""
        return self.recipe.steps * (self.slices or 1)

    @property
    def evaluate_on(self) -> Literal["validation", "test"]:
        """The rows that are scored on."""
        return "test" if self.validation is None else "validation"

    def path(self, out: Path) -> Path:
        """Of its result file. The method's name is no part of the hash: it is in the path."""
        digest = digest_of(self.model_dump(mode="json", exclude={"set", "method"}))[:12]
        kind = self.evaluate_on if self.slices is None else f"sequence-of-{self.slices}"
        return out / self.set / self.method / f"{kind}-{digest}.json"

    def bundle_key(self) -> str:
        """What units that are trained as lanes of one program have in common."""
        if self.slices is not None or self.recipe.posterior == "rdp":
            return self.model_dump_json()
        own = self.model_dump(mode="json", exclude={"method", "recipe", "splits"})
        return json.dumps([own, shape(self.recipe)])


@dataclass(frozen=True)
class Planned:
    """A unit of the report with the words for its setting."""

    unit: Unit
    setting: str


@dataclass(frozen=True)
class Score:
    """A number of a result: after slice k (from 1) of a sequence, else k = 0."""

    split: int
    slice: int
    metric: str
    value: float


def bundles(units: Sequence[Unit], lanes: int) -> list[list[Unit]]:
    """Units that can be lanes of one program together, at most so many lanes in each."""
    found: list[list[Unit]] = []
    by_key: dict[str, list[Unit]] = {}
    for unit in units:
        bundle = by_key.get(unit.bundle_key())
        if bundle is None or sum(len(u.splits) for u in bundle) + len(unit.splits) > lanes:
            bundle = by_key[unit.bundle_key()] = []
            found.append(bundle)
        bundle.append(unit)
    return found


def write_result(
    unit: Unit, out: Path, scores: Sequence[Score], environment: dict[str, Any]
) -> None:
    """Write a unit's result file; numbers that are not finite are stored as null.

    Raises:
        UserError: it cannot be written.
    """
    rows = [
        [s.split, s.slice, s.metric, s.value if math.isfinite(s.value) else None] for s in scores
    ]
    result_file.write(unit, out, {"scores": rows}, environment)


def read_result(unit: Unit, out: Path) -> tuple[list[Score], dict[str, Any]] | None:
    """A unit's scores and where they came from; None if it is not finished."""
    found = result_file.read(unit, out)
    if found is None:
        return None
    numbers, environment = found
    scores = [
        Score(split, number, metric, math.nan if value is None else value)
        for split, number, metric, value in numbers["scores"]
    ]
    return scores, environment


def finished_result(unit: Unit, out: Path) -> tuple[list[Score], dict[str, Any]]:
    """The same of a unit that has been carried out.

    Raises:
        UserError: it is not there any more.
    """
    found = read_result(unit, out)
    if found is None:
        raise UserError(f"{unit.path(out)}: is gone or damaged; run the same command again")
    return found
