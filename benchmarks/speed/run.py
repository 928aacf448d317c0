"""A whole `vcl-radial run` over that of fine-tuning (`naive`), and its parts.

`vcl-radial run split-fashion-multi-head --method radial-vcl --seeds 2 --jobs 1`, and `naive`, with
`--tuned` for the tuned recipe: wall-clock time in a new process. The whole has start-up,
checkpoints, tables and figures too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Row, Setting, compare
from benchmarks.speed.training import BENCHMARK
from vcl_radial.errors import VclRadialError

REFERENCE, METHODS = "naive", ("radial-vcl", "naive")
RECIPES = {"paper's recipe": (), "tuned recipe": ("--tuned",)}
"""Arguments of the command by recipe."""

ROOT = Path(__file__).parents[2]
WHOLE, RATIO = "whole (s)", f"ratio to {REFERENCE}"
PICTURES = (Ratios("run", f"A whole command, {RATIO}", RATIO),)


def measure(setting: Setting) -> list[Row]:
    """Seconds of the whole run, of training and of evaluation; ratio of whole runs to `naive`."""
    rows: list[Row] = []
    for recipe, arguments in RECIPES.items():
        work = {method: partial(time_run, method, arguments, setting) for method in METHODS}
        rows += compare(work, setting, WHOLE, reference=REFERENCE, size=recipe, warm_up=0)
    return rows


def time_run(method: str, arguments: Sequence[str], setting: Setting) -> dict[str, float]:
    """Seconds of a whole command and of its parts, all seeds together."""
    with TemporaryDirectory(dir=setting.scratch) as out:
        started = time.perf_counter()
        execute([*run_command(method, setting), *arguments, "--out", out])
        whole = time.perf_counter() - started
        files = Path(out).glob("*/*/*/environment.json")
        parts = [json.loads(file.read_text())["seconds"] for file in files]
    training, evaluation = (sum(p[part] for p in parts) for part in ("training", "evaluation"))
    share = 100 * evaluation / training
    return {
        WHOLE: whole,
        "training (s)": training,
        "evaluation (s)": evaluation,
        "evaluation, per cent of training": share,
    }


def execute(command: Sequence[str]) -> None:
    """Run a command in the checkout.

    Raises:
        VclRadialError: the command failed; the message holds its standard error.
    """
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if answer.returncode:
        raise VclRadialError(f"{' '.join(command)}: {answer.stderr.strip()}")


def run_command(method: str, setting: Setting) -> list[str]:
    """The command of runs of the recipe on the images of a setting."""
    images, sizes = setting.images, setting.sizes
    keys = {"stream.dataset": images.dataset, **sizes.recipe, **sizes.run}
    command = [sys.executable, "-m", "vcl_radial", "run", BENCHMARK, "--method", method]
    command += ["--seeds", str(sizes.run_seeds), "--jobs", "1", "--device", setting.device]
    if images.folder is not None:
        command += ["--data-dir", str(images.folder.absolute())]
    return [*command, "--set", *(f"{key}={value}" for key, value in keys.items())]
