"""The outcome of a trial, read from the folders of its runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from vcl_radial.errors import UserError
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.runs import tracks
from vcl_radial.runs.attempt import PruningThreshold, RunOutcome, fallen_below
from vcl_radial.runs.folder import RunFolder, divergence, read_spec
from vcl_radial.runs.track import SCORED_ON
from vcl_radial.sweeps.study import Outcome, Result, Trial


def run_fault(folder: RunFolder[Any]) -> str | None:
    """Why a folder does not hold its finished run, such as "not finished"; None if it does."""
    fault = folder.fault()
    if fault is not None:
        return fault
    try:
        settings = read_spec(folder.path)
    except (OSError, ValueError):
        return f"{folder.path / 'spec.toml'} is damaged"
    # The name holds only the first letters of the spec's hash.
    return None if settings == folder.run.settings() else f"{folder.path} is another run"


def ended(folder: RunFolder[Any], thresholds: Sequence[PruningThreshold]) -> RunOutcome | None:
    """The outcome of a run by the files of its folder; None where it is to be continued.

    A run that fell below a threshold was pruned there, even if another trial continued it. A run
    that failed is repeated.
    """
    run = folder.run
    fault = run_fault(folder)
    if thresholds:
        reason = fallen_below(thresholds, _scores_so_far(folder), tracks.find(run.TRACK).step)
        if reason is not None:
            return RunOutcome(run, "pruned", reason)
    if fault is None:
        folder.discard_leftover()
        return RunOutcome(run, "finished")
    reason = divergence(folder.path)
    return None if reason is None else RunOutcome(run, "diverged", reason)


def result(
    trial: Trial, ends: Mapping[int, RunOutcome], folders: Mapping[int, RunFolder[Any]]
) -> Result:
    """The result of a trial.

    Args:
        trial: a trial whose runs have all ended.
        ends: outcomes of its runs, by seed.
        folders: folders of its runs, by seed, the first seed first.
    """
    sweep = trial.plan.sweep
    scores_so_far = {} if sweep.pruning is None else _scores_so_far(next(iter(folders.values())))
    below = [
        threshold.step
        for threshold in trial.thresholds
        if scores_so_far.get(threshold.step, math.inf) < threshold.score
    ]
    scores_so_far = {
        step: value for step, value in scores_so_far.items() if not below or step <= below[0]
    }
    scores = []
    for seed in sorted(ends):
        end = ends[seed]
        if end.status == "finished":
            value = score(folders[seed], sweep.objective)
            if value is None:
                reason = f"seed {seed}: {sweep.objective} is not defined for this method"
                return Result("failed", words=reason, scores_so_far=scores_so_far)
            if math.isfinite(value):
                scores.append(value)
                continue
            end = RunOutcome(end.run, "diverged", f"{sweep.objective} is {value}")
        reason = f"seed {seed}: {end.fault}"
        return Result(cast(Outcome, end.status), words=reason, scores_so_far=scores_so_far)
    return Result("finished", *mean_score(scores), scores_so_far=scores_so_far)


def mean_score(scores: Sequence[float]) -> tuple[float, float | None]:
    """The mean score over seeds, and its standard error; None for one seed."""
    mean, spread = mean_and_standard_error(scores)
    return mean, None if math.isnan(spread) else spread


def score(folder: RunFolder[Any], objective: str) -> float | None:
    """A score of a finished run, on validation data.

    Raises:
        UserError: the run was scored on other data.
    """
    scored_on = read_spec(folder.path)["evaluate_on"]
    if scored_on != SCORED_ON:
        raise UserError(
            f"scored on {scored_on} data; a sweep takes validation scores only",
            folder.path,
        )
    value: float | None = tracks.find(folder.run.TRACK).score(folder, objective)
    return value


def _scores_so_far(folder: RunFolder[Any]) -> dict[int, float]:
    try:
        return tracks.find(folder.run.TRACK).scores_so_far(folder)
    except UserError:  # the checkpoint is damaged, and its run starts again
        return {}
