"""Which method runs in which track: a small run of a method is planned and made."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any, NamedTuple

from vcl_radial.errors import UserError
from vcl_radial.runs import planning, tracks


class SmallRun(NamedTuple):
    """A benchmark of a track, and settings for a run of seconds."""

    benchmark: str
    settings: Mapping[str, Any]
    has_data: bool = True


SMALL_RUNS = {
    "continual": SmallRun(
        "split-digits-multi-head",
        {"epochs": 1, "hidden": [8], "eval_samples": 2, "stream.first_tasks": 2},
    ),
    "retinopathy": SmallRun(
        "retinopathy-synthetic",
        {
            "epochs": 1,
            "channels": 4,
            "batch_size": 8,
            "eval_samples": 2,
            "data.patients": 40,
            "data.validation": 0.2,
            "data.size": 16,
        },
    ),
    "regression": SmallRun("diabetes-sequence", {"steps": 10, "eval_samples": 4}),
    # The table would be downloaded, so the methods are only planned, not made.
    "bandits": SmallRun(
        "bandit-mushroom", {"data.rounds": 40, "steps": 10, "learning_rate": 1e-3}, has_data=False
    ),
}


def gap(track: str, method: str) -> str:
    """Why a shipped method does not run in a track; empty if it does.

    Args:
        track: name of a track.
        method: name of a recipe, of this track or of the default one.
    """
    small, machine = SMALL_RUNS[track], tracks.find(track)
    try:
        runs = planning.plan(small.benchmark, [method], [0], small.settings)
        machine.check_runs(runs)
        if small.has_data:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                machine.check_data(runs, None)
    except UserError as error:
        message = str(error).removeprefix(f"{method}: ").partition(": choose")[0]
        return message.partition("' ")[2] if message.startswith("strategy = ") else message
    return ""
