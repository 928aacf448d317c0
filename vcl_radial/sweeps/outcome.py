"""What came of a trial, from how its runs ended and what their folders hold."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from typing import Any

from vcl_radial.errors import UserError
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.runs.attempt import Ended, How
from vcl_radial.runs.folder import RunFolder, read_spec
from vcl_radial.runs.track import SCORED_ON
from vcl_radial.sweeps.study import Outcome, Result
from vcl_radial.sweeps.tracks import track_of

_OUTCOMES: dict[How, Outcome] = {
    "finished": "finished",
    "pruned": "pruned",
    "diverged": "diverged",
    "failed": "failed",
}


def run_fault(folder: RunFolder[Any]) -> str | None:
    """Why a folder does not hold its run, finished and unharmed ("not finished"), or None."""
    fault = folder.fault()
    if fault is not None:
        return fault
    try:
        settings = read_spec(folder.path)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return f"{folder.path / 'spec.toml'} is damaged"
    # The name holds only the first letters of the spec's hash.
    return None if settings == folder.run.settings() else f"{folder.path} is another run"


def result(
    ends: Mapping[int, Ended], folders: Mapping[int, RunFolder[Any]], objective: str
) -> Result:
    """The result of a trial.

    Args:
        ends: how the runs ended that were carried out, by seed.
        folders: where they lie.
        objective: the score to search for.
    """
    so_far = _so_far(folders[0])
    scores = []
    for seed in sorted(ends):
        end = ends[seed]
        if end.how == "finished":
            value = score(folders[seed], objective)
            if value is None:
                words = f"seed {seed}: {objective} is not defined for this method"
                return Result("failed", words=words, so_far=so_far)
            if math.isfinite(value):
                scores.append(value)
                continue
            end = Ended(end.run, "diverged", f"{objective} is {value}")
        words = f"seed {seed}: {end.fault}"
        return Result(_OUTCOMES[end.how], words=words, so_far=so_far)
    mean, spread = mean_and_standard_error(scores)
    return Result("finished", mean, None if math.isnan(spread) else spread, None, so_far)


def score(folder: RunFolder[Any], objective: str) -> float | None:
    """A score of a finished run, on validation data.

    Raises:
        UserError: the run was scored on other data.
    """
    scored_on = read_spec(folder.path)["evaluate_on"]
    if scored_on != SCORED_ON:
        raise UserError(f"{folder.path}: scored on {scored_on} data; a sweep takes none of that")
    value: float | None = track_of(folder.run).score(folder, objective)
    return value


def _so_far(folder: RunFolder[Any]) -> dict[int, float]:
    try:
        return track_of(folder.run).so_far(folder)
    except UserError:
        return {}
