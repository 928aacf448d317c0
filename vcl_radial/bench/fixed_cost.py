"""What a command costs beside training and evaluation, against the import that it needs.

    (wall time of `vcl-radial run` - training - evaluation) / wall time of the import

The import is that of PyTorch and Avalanche in a process of its own, in the same round.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from vcl_radial.bench.setting import Result, Setting, row
from vcl_radial.bench.timing import ratios, rounds
from vcl_radial.bench.whole_run import package_environment
from vcl_radial.errors import VclRadialError

JOBS = (1, 2)
IMPORT = "import torch, avalanche.training.templates"
BENCHMARK, METHOD = "split-digits-multi-head", "ewc"


def measure(setting: Setting) -> Result:
    """Seconds beside training and evaluation by the number of jobs, and ratios to the import."""
    variants: dict[str, Callable[[], float]] = {"import": partial(_timed, (*_PYTHON, IMPORT))}
    variants |= {f"--jobs {jobs}": partial(_command, jobs, setting) for jobs in JOBS}
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for name in rounds(variants, setting.slow_repeats):
        seconds[name].append(variants[name]())
    rows = [row("command", name, "", "seconds", values) for name, values in seconds.items()]
    for name, values in ratios(seconds, "import").items():
        rows.append(row("command", name, "", "ratio to the import", values))
    return Result(
        rows,
        [
            f"`vcl-radial run {BENCHMARK} --method {METHOD}` with as many seeds as jobs: wall "
            "time in a new process, less the training and evaluation of the slowest run. "
            f'Import: `python -c "{IMPORT}"` in the same round.'
        ],
    )


_PYTHON = (sys.executable, "-W", "ignore", "-c")


def _command(jobs: int, setting: Setting) -> float:
    """Seconds of a whole command beside training and evaluation."""
    with TemporaryDirectory(dir=setting.scratch) as out:
        command = [sys.executable, "-m", "vcl_radial", "run", BENCHMARK, "--method", METHOD]
        command += ["--seeds", str(jobs), "--jobs", str(jobs), "--device", setting.device]
        keys = [f"{key}={value}" for key, value in setting.sizes.run.items()]
        command += ["--out", out, *(["--set", *keys] if keys else [])]
        whole = _timed(command)
        files = Path(out).glob("*/*/seed-*/environment.json")
        parts = [json.loads(file.read_text())["seconds"] for file in files]
    return whole - max(float(sum(part.values())) for part in parts)


def _timed(command: Sequence[str]) -> float:
    started = time.perf_counter()
    answer = subprocess.run(
        command, capture_output=True, text=True, check=False, env=package_environment()
    )
    if answer.returncode:
        raise VclRadialError(f"{' '.join(command)}: {answer.stderr.strip()}")
    return time.perf_counter() - started
