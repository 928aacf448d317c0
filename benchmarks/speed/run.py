"""A whole `vcl-radial run` over that of fine-tuning (`naive`), and its parts.

Every command is a process of its own. Its parts are read from what it leaves behind: a run writes
its spec when training is about to start and its marker when everything is computed, and records
the seconds of training and evaluation.
"""

from __future__ import annotations

import json
import time
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.processes import command_of_run, run_python
from benchmarks.speed.setting import Result, Setting, row
from benchmarks.speed.timing import rounds
from benchmarks.speed.training import BENCHMARK

REFERENCE, METHODS = "naive", ("radial-vcl", "naive")
RECIPES = {"paper's recipe": (), "tuned recipe": ("--tuned",)}
"""Arguments of the command by the recipe that they ask for."""

WHOLE = "whole"
RATIO = f"ratio to {REFERENCE}"
SHARE = "evaluation, per cent of training"
PICTURES = (Ratios("run", f"A whole command, {RATIO}", RATIO),)


def measure(setting: Setting) -> Result:
    """Seconds of each part, the whole over that of `naive`, and evaluation over training."""
    variants = list(product(setting.sizes.run_recipes, METHODS))
    parts: dict[tuple[str, str], list[dict[str, float]]] = {variant: [] for variant in variants}
    names = {" ".join(variant): variant for variant in variants}
    for name in rounds(names, setting.repeats):
        recipe, method = names[name]
        parts[recipe, method].append(time_run(method, recipe, setting))
    rows = []
    for (recipe, method), runs in parts.items():
        pairs = list(zip(runs, parts[recipe, REFERENCE], strict=True))
        metrics = {RATIO: [ours[WHOLE] / theirs[WHOLE] for ours, theirs in pairs]}
        metrics[SHARE] = [100 * run["evaluation"] / run["training"] for run in runs]
        metrics |= {f"{part} (s)": [run[part] for run in runs] for part in runs[0]}
        if method == REFERENCE:
            del metrics[RATIO]
        rows += [row("run", method, recipe, metric, values) for metric, values in metrics.items()]
    seeds = setting.sizes.run_seeds
    return Result(
        rows,
        [
            f"`vcl-radial run {BENCHMARK} --method radial-vcl --seeds {seeds} --jobs 1`, "
            "and `naive`, with `--tuned` for the tuned recipe: wall-clock time in a new process. "
            "Start-up: imports, worker process, data, networks. Report: tables, figures, exit."
        ],
    )


def time_run(method: str, recipe: str, setting: Setting) -> dict[str, float]:
    """Seconds of a whole command and of its parts, all seeds together."""
    more = [*RECIPES[recipe], "--seeds", str(setting.sizes.run_seeds)]
    with TemporaryDirectory(dir=setting.scratch) as out:
        started = time.time()
        run_python(command_of_run(method, out, setting, *more))
        ended = time.time()
        return {WHOLE: ended - started, **_parts(Path(out), started, ended)}


def _parts(out: Path, started: float, ended: float) -> dict[str, float]:
    """Seconds of the parts of a command that wrote all its runs into a folder."""
    folders = [done.parent for done in out.glob("*/*/*/done")]
    records = [json.loads((folder / "environment.json").read_text()) for folder in folders]
    begun = [(folder / "spec.toml").stat().st_mtime for folder in folders]
    finished = [(folder / "done").stat().st_mtime for folder in folders]
    parts = {
        part: sum(record["seconds"][part] for record in records)
        for part in ("training", "evaluation")
    }
    parts["checkpoints"] = sum(finished) - sum(begun) - sum(parts.values())
    parts["report"] = ended - max(finished)
    return {**parts, "start-up": ended - started - sum(parts.values())}
