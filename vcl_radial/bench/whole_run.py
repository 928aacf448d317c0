"""A whole `vcl-radial run` in its parts, read from what the command itself leaves behind.

Nothing is instrumented: the spec is written when training is about to start, the marker when
everything is computed, and the run records its training and evaluation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import vcl_radial
from vcl_radial.bench.setting import Result, Setting, row
from vcl_radial.bench.timing import rounds
from vcl_radial.bench.training import BENCHMARK
from vcl_radial.errors import VclRadialError


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
        command = [sys.executable, "-m", "vcl_radial", "run", BENCHMARK, "--method", method]
        command += ["--jobs", "1", "--device", setting.device, "--out", out]
        command += ["--set", *(f"{key}={value}" for key, value in keys.items())]
        if setting.images.folder is not None:
            command += ["--data-dir", str(setting.images.folder.absolute())]
        started = time.time()
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, env=package_environment()
        )
        ended = time.time()
        if answer.returncode:
            raise VclRadialError(f"vcl-radial run {BENCHMARK}: {answer.stderr.strip()}")
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


def package_environment() -> dict[str, str]:
    """The environment of a new process that finds this package, installed or not."""
    root = str(Path(vcl_radial.__file__).parents[1])
    paths = [root, os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
