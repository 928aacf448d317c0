"""A whole `vcl-radial run` over that of fine-tuning (`naive`), and its parts.

Every command is a separate process. Its parts are read from its files: a run writes its spec when
training is about to start and its marker when everything is computed, and records the seconds of
training and evaluation.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Result, Setting, rows_of
from benchmarks.speed.timing import Measurement, Table, measure_in_turn, ratios
from benchmarks.speed.training import BENCHMARK
from vcl_radial.errors import VclRadialError

REFERENCE, METHODS = "naive", ("radial-vcl", "naive")
RECIPES = {"paper's recipe": (), "tuned recipe": ("--tuned",)}
"""Arguments of the command by recipe."""

ROOT = Path(__file__).parents[2]

RATIO, SHARE = f"ratio to {REFERENCE}", "evaluation, per cent of training"
PICTURES = (Ratios("run", f"A whole command, {RATIO}", RATIO),)


def measure(setting: Setting) -> Result:
    """Seconds of each part, the whole over that of `naive`, and evaluation over training."""
    recipes, seeds = setting.sizes.run_recipes, setting.sizes.run_seeds
    # By both, so that the variants of all recipes take turns.
    work: dict[str, Measurement] = {
        f"{method} {recipe}": partial(time_run, method, recipe, setting)
        for recipe in recipes
        for method in METHODS
    }
    measured = measure_in_turn(work, setting.repeats)
    rows = []
    for recipe in recipes:
        measures: Table = {
            part: {method: by_work[f"{method} {recipe}"] for method in METHODS}
            for part, by_work in measured.items()
        }
        table = {RATIO: ratios(measures["whole (s)"], REFERENCE)}
        rows += rows_of("run", table | measures, recipe)
    note = (
        f"`vcl-radial run {BENCHMARK} --method radial-vcl --seeds {seeds} --jobs 1`, and `naive`, "
        "with `--tuned` for the tuned recipe: wall-clock time in a new process. Start-up: imports, "
        "worker process, data, networks. Report: tables, figures, exit."
    )
    return Result(rows, [note])


def time_run(method: str, recipe: str, setting: Setting) -> dict[str, float]:
    """Seconds of a whole command and of its parts, all seeds together."""
    more = [*RECIPES[recipe], "--seeds", str(setting.sizes.run_seeds)]
    with TemporaryDirectory(dir=setting.scratch) as out:
        started = time.time()
        seconds_of(run_on_images(method, out, setting, *more))
        return parts_of(Path(out), started, time.time())


def parts_of(out: Path, started: float, ended: float) -> dict[str, float]:
    """Seconds of the parts of a command that wrote all its runs into a folder."""
    folders = [done.parent for done in out.glob("*/*/*/done")]
    records = [json.loads((folder / "environment.json").read_text()) for folder in folders]
    training, evaluation = (
        sum(record["seconds"][part] for record in records) for part in ("training", "evaluation")
    )
    begun = sum((folder / "spec.toml").stat().st_mtime for folder in folders)
    finished = [(folder / "done").stat().st_mtime for folder in folders]
    checkpoints = sum(finished) - begun - training - evaluation
    report = ended - max(finished)
    whole = ended - started
    return {
        SHARE: 100 * evaluation / training,
        "whole (s)": whole,
        "training (s)": training,
        "evaluation (s)": evaluation,
        "checkpoints (s)": checkpoints,
        "report (s)": report,
        "start-up (s)": whole - training - evaluation - checkpoints - report,
    }


def seconds_of(command: Sequence[str]) -> float:
    """Run a command in the checkout; return the seconds that it takes.

    Raises:
        VclRadialError: the command failed; has its standard error.
    """
    started = time.perf_counter()
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if answer.returncode:
        raise VclRadialError(f"{' '.join(command)}: {answer.stderr.strip()}")
    return time.perf_counter() - started


def run_command(
    benchmark: str, method: str, out: str, keys: Mapping[str, Any], *more: str
) -> list[str]:
    """The command `vcl-radial run`, with `keys` as `--set` options."""
    command = ["run", benchmark, "--method", method, "--out", out, "--jobs", "1", *more]
    settings = [f"{key}={value}" for key, value in keys.items()]
    return [sys.executable, "-m", "vcl_radial", *command, *(["--set", *settings] if keys else [])]


def run_on_images(method: str, out: str, setting: Setting, *more: str) -> list[str]:
    """The command of a run of the recipe on the images of a setting."""
    images, sizes = setting.images, setting.sizes
    keys = {"stream.dataset": images.dataset, **sizes.recipe, **sizes.run}
    more = (*more, "--device", setting.device)
    if images.folder is not None:
        more += ("--data-dir", str(images.folder.absolute()))
    return run_command(BENCHMARK, method, out, keys, *more)
