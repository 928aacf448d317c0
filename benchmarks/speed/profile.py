"""Where the time of a whole `vcl-radial run` goes: the largest items, and a flame graph.

py-spy looks at the command and its worker process from outside, a hundred times a second, and
counts what they are doing; the command itself is not changed.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.speed.flame import STACK, Flame
from benchmarks.speed.peers import NOT_INSTALLED
from benchmarks.speed.processes import command_of_run, run_command
from benchmarks.speed.setting import Result, Setting, row
from benchmarks.speed.stacks import Stack, items, read_stacks, tree

METHOD = "radial-vcl"
PICTURES = (Flame("profile", "A whole command: who calls whom, by the share of the time"),)

_LARGEST = 10
_SMALLEST = 0.4
"""Per cent of the samples below which nothing is drawn."""

_RATE = 100


def measure(setting: Setting) -> Result:
    """Shares of the ten largest items, and of all stacks that can be seen."""
    spy = _sampler()
    if spy is None:
        return Result([], [f"py-spy: {NOT_INSTALLED}"])
    stacks = _sampled(spy, setting)
    rows = []
    for name, itself, with_calls in items(stacks)[:_LARGEST]:
        rows.append(row("profile", name, "", "per cent of the time", [itself]))
        rows.append(row("profile", name, "", "with what it calls", [with_calls]))
    drawn = tree(stacks, _SMALLEST).items()
    rows += [row("profile", ";".join(stack), "", STACK, [share]) for stack, share in drawn]
    command = " ".join(["vcl-radial", *command_of_run(METHOD, "DIR", setting)[2:]])
    return Result(
        rows,
        [
            f"`{command}` under py-spy: {stacks.total():,} samples, {_RATE} a second, of Python's "
            "functions in the command and its worker process while they compute. What PyTorch and "
            "compiled code do counts for the function that calls them."
        ],
    )


def _sampler() -> str | None:
    """The path of py-spy, which is beside Python where it was installed for it."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("py-spy", path=beside) or shutil.which("py-spy")


def _sampled(spy: str, setting: Setting) -> Counter[Stack]:
    with TemporaryDirectory(dir=setting.scratch) as folder:
        file = Path(folder) / "stacks"
        options = ["--format", "raw", "--function", "--subprocesses", "--rate", str(_RATE)]
        command = [sys.executable, "-P", *command_of_run(METHOD, f"{folder}/runs", setting)]
        run_command([spy, "record", *options, "--output", str(file), "--", *command])
        return read_stacks(file.read_text())
