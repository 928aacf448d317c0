"""What a command costs beside training, against the import of PyTorch and Avalanche.

    (wall time of `vcl-radial run` - training - evaluation) / wall time of the import

The import is made in a separate process, in the same round.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.speed.run import run_command, seconds_of
from benchmarks.speed.setting import Result, Setting, rows_of
from benchmarks.speed.timing import measure_in_turn, ratios

IMPORT = "import torch, avalanche.training.templates"
BENCHMARK, METHOD = "split-digits-multi-head", "ewc"
PICTURES = ()


def measure(setting: Setting) -> Result:
    """Seconds beside training and evaluation, and their ratio to the import."""
    python = [sys.executable, "-W", "ignore", "-c", IMPORT]
    variants = {
        "import": lambda: {"seconds": seconds_of(python)},
        "command": lambda: {"seconds": _beside_training(setting)},
    }
    table = measure_in_turn(variants, setting.repeats)
    table["ratio to the import"] = ratios(table["seconds"], "import")
    note = (
        f"`vcl-radial run {BENCHMARK} --method {METHOD}`: wall time in a new process, less "
        f'training and evaluation. Import: `python -c "{IMPORT}"` in the same round.'
    )
    return Result(rows_of("command", table), [note])


def _beside_training(setting: Setting) -> float:
    with TemporaryDirectory(dir=setting.scratch) as out:
        keys, device = setting.sizes.run, ("--device", setting.device)
        whole = seconds_of(run_command(BENCHMARK, METHOD, out, keys, *device))
        (file,) = Path(out).glob("*/*/seed-*/environment.json")
        parts: dict[str, float] = json.loads(file.read_text())["seconds"]
    return whole - sum(parts.values())
