"""Carrying runs out: splits and settings of one shape are lanes of one program."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import torch

from vcl_radial.errors import UserError
from vcl_radial.runs import environment
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.place import Place
from vcl_radial.runs.track import Step
from vcl_radial.tracks.regression.data import RegressionData, load_data
from vcl_radial.tracks.regression.sequence import train_in_sequence
from vcl_radial.tracks.regression.settings import DataSettings, Run
from vcl_radial.tracks.regression.training import Scores, train_and_score

_SECONDS_BETWEEN = 2.0
"""Two reports on how far lanes have come."""


def execute(
    runs: Sequence[Run], place: Place, tell: Callable[[Run, Step], None]
) -> list[str | None]:
    """Train runs together from their start and write their files; the fault of each.

    The only fault is that training diverged, so that a score is not a finite number.

    Raises:
        UserError: something the user can mend that concerns them all.
    """
    environment.loaded()  # the commit, before anybody makes another
    torch.set_num_threads(place.threads)
    first = runs[0]
    data = load_data_once(first.data, place.data_dir)
    folders = [RunFolder(place.out, run) for run in runs]
    for folder in folders:
        folder.start()
    splits, recipes = [run.seed for run in runs], [run.recipe for run in runs]
    validation = first.data.validation if first.evaluate_on == "validation" else None
    on_step, slices = _reporter(runs, tell), first.data.slices
    started = time.perf_counter()
    if slices is None:
        scores = train_and_score(data, splits, recipes, validation, on_step)
        after = [{0: of_lane} for of_lane in scores]
    else:
        in_order = train_in_sequence(data, splits, recipes, slices, validation, on_step)
        # What was learned from all rows at once is no slice.
        after = [dict(enumerate(of_lane, start=slices > 1)) for of_lane in in_order]
    seconds = (time.perf_counter() - started) / len(runs)
    facts = environment.describe("cpu", place.threads)
    facts |= {"seconds": seconds, "command": place.command}
    return [_finish(folder, of_lane, facts) for folder, of_lane in zip(folders, after, strict=True)]


@lru_cache(maxsize=1)  # a process carries out many runs of one table
def load_data_once(data: DataSettings, data_dir: Path | None) -> RegressionData:
    """See `load_data`."""
    return load_data(data, data_dir)


def check_data(data: DataSettings, data_dir: Path | None, splits: Sequence[int]) -> None:
    """Load a table, and see that its training rows can be cut into slices.

    Raises:
        UserError: they cannot.
        DataError: see `load_data`.
    """
    table = load_data_once(data, data_dir)
    fewest = min(len(table.splits[split].train) for split in splits)
    if data.slices is not None and data.slices > fewest:
        raise UserError(
            f"data.slices = {data.slices}: more than the {fewest} training rows of {data.name}; "
            "lower it"
        )


def _reporter(runs: Sequence[Run], tell: Callable[[Run, Step], None]) -> Callable[[int], None]:
    """Report steps of Adam of all lanes, at the start and then every few seconds."""
    total, last = runs[0].steps, -math.inf

    def on_step(steps: int) -> None:
        nonlocal last
        if time.monotonic() - last > _SECONDS_BETWEEN:
            last = time.monotonic()
            done = min(steps, total)
            for run in runs:
                tell(run, Step(0, f"step {done} of {total}", epoch=done, epochs=total))

    on_step(0)
    return on_step


def _finish(
    folder: RunFolder[Run], after: Mapping[int, Scores], facts: Mapping[str, object]
) -> str | None:
    rows = [(k, metric, v) for k, scores in after.items() for metric, v in scores.items()]
    for number, metric, value in rows:
        if not math.isfinite(value):
            where = f" after slice {number}" if number else ""
            return f"training diverged: {metric}{where} is {value}"
    table = ["slice,metric,value", *(f"{k},{metric},{value!r}" for k, metric, value in rows), ""]
    folder.finish(
        {"scores.csv": "\n".join(table), "environment.json": json.dumps(facts, indent=2) + "\n"}
    )
    return None
