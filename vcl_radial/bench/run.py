"""A whole `vcl-radial run` in its parts, read from what the command itself leaves behind.

Nothing is instrumented: the spec is written when training is about to start, the marker when
everything is computed, and the run records its training and evaluation.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from vcl_radial.bench.processes import of_run, run_python
from vcl_radial.bench.setting import Result, Setting, row
from vcl_radial.bench.timing import rounds
from vcl_radial.bench.training import BENCHMARK

PICTURES = ()


def measure(setting: Setting) -> Result:
    """Seconds of each part, and its share of the training in per cent."""
    methods = setting.sizes.run_methods
    parts: dict[str, list[dict[str, float]]] = {method: [] for method in methods}
    for method in rounds(methods, setting.slow_repeats):
        parts[method].append(time_run(method, setting))
    rows = []
    for method, runs in parts.items():
        for part in runs[0]:
            seconds = [run[part] for run in runs]
            shares = [100 * run[part] / run["training"] for run in runs]
            rows.append(row("run", method, part, "seconds", seconds))
            rows.append(row("run", method, part, "per cent of training", shares))
    return Result(
        rows,
        [
            "Wall-clock time of the command with one seed and one job, each time in a new process. "
            "Start-up: imports, worker process, data, network. Report: tables, figures, exit."
        ],
    )


def time_run(method: str, setting: Setting) -> dict[str, float]:
    """Seconds of the parts of one run, and of the whole."""
    keys = {"stream.dataset": setting.images.dataset, **setting.sizes.recipe, **setting.sizes.run}
    with TemporaryDirectory(dir=setting.scratch) as out:
        more = ["--jobs", "1", "--device", setting.device]
        if setting.images.folder is not None:
            more += ["--data-dir", str(setting.images.folder.absolute())]
        arguments = of_run(BENCHMARK, method, out, keys, *more)
        started = time.time()
        run_python(arguments)
        ended = time.time()
        (done,) = Path(out).glob("*/*/*/done")
        begun, finished = ((done.parent / name).stat().st_mtime for name in ("spec.toml", "done"))
        recorded = json.loads((done.parent / "environment.json").read_text())["seconds"]
    computing = recorded["training"] + recorded["evaluation"]
    return {
        "training": recorded["training"],
        "evaluation": recorded["evaluation"],
        "checkpoints": finished - begun - computing,
        "report": ended - finished,
        "start-up": begun - started,
        "whole": ended - started,
        "all but training": ended - started - recorded["training"],
    }
