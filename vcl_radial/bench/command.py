"""What a command costs beside training, against the import of PyTorch and Avalanche.

    (wall time of `vcl-radial run` - training - evaluation) / wall time of the import

The import is made in a process of its own, in the same round.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from vcl_radial.bench.processes import of_run, seconds_of
from vcl_radial.bench.setting import Result, Setting, rows_of
from vcl_radial.bench.timing import ratios, rounds

JOBS = (1, 2)
IMPORT = "import torch, avalanche.training.templates"
BENCHMARK, METHOD = "split-digits-multi-head", "ewc"
PICTURES = ()


def measure(setting: Setting) -> Result:
    """Seconds beside training and evaluation by the number of jobs, and ratios to the import."""
    variants: dict[str, Callable[[], float]] = {
        "import": partial(seconds_of, ("-W", "ignore", "-c", IMPORT))
    }
    variants |= {f"--jobs {jobs}": partial(_command, jobs, setting) for jobs in JOBS}
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for name in rounds(variants, setting.repeats):
        seconds[name].append(variants[name]())
    rows = rows_of("command", seconds, "seconds")
    rows += rows_of("command", ratios(seconds, "import"), "ratio to the import")
    return Result(
        rows,
        [
            f"`vcl-radial run {BENCHMARK} --method {METHOD}` with as many seeds as jobs: wall "
            "time in a new process, less the training and evaluation of the slowest run. "
            f'Import: `python -c "{IMPORT}"` in the same round.'
        ],
    )


def _command(jobs: int, setting: Setting) -> float:
    """Seconds of a whole command beside training and evaluation."""
    with TemporaryDirectory(dir=setting.scratch) as out:
        number = str(jobs)
        more = ("--seeds", number, "--jobs", number, "--device", setting.device)
        whole = seconds_of(of_run(BENCHMARK, METHOD, out, setting.sizes.run, *more))
        files = Path(out).glob("*/*/seed-*/environment.json")
        parts = [json.loads(file.read_text())["seconds"] for file in files]
    return whole - max(float(sum(part.values())) for part in parts)
