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

from benchmarks.speed.processes import of_run, seconds_of
from benchmarks.speed.setting import Result, Setting, rows_of
from benchmarks.speed.timing import ratios, rounds

IMPORT = "import torch, avalanche.training.templates"
BENCHMARK, METHOD = "split-digits-multi-head", "ewc"
PICTURES = ()


def measure(setting: Setting) -> Result:
    """Seconds beside training and evaluation, and their ratio to the import."""
    variants: dict[str, Callable[[], float]] = {
        "import": partial(seconds_of, ("-W", "ignore", "-c", IMPORT)),
        "command": partial(_command, setting),
    }
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for name in rounds(variants, setting.repeats):
        seconds[name].append(variants[name]())
    rows = rows_of("command", seconds, "seconds")
    rows += rows_of("command", ratios(seconds, "import"), "ratio to the import")
    return Result(
        rows,
        [
            f"`vcl-radial run {BENCHMARK} --method {METHOD}`: wall time in a new process, less "
            f'training and evaluation. Import: `python -c "{IMPORT}"` in the same round.'
        ],
    )


def _command(setting: Setting) -> float:
    """Seconds of a whole command beside training and evaluation."""
    with TemporaryDirectory(dir=setting.scratch) as out:
        more = ("--jobs", "1", "--device", setting.device)
        whole = seconds_of(of_run(BENCHMARK, METHOD, out, setting.sizes.run, *more))
        (file,) = Path(out).glob("*/*/seed-*/environment.json")
        parts: dict[str, float] = json.loads(file.read_text())["seconds"]
    return whole - sum(parts.values())
