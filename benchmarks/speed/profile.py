"""Where the time of a whole `vcl-radial run` goes: the largest items, and a flame graph.

py-spy samples the command and its worker process from outside, a hundred times a second; the
command itself is not changed.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.speed.peers import NOT_INSTALLED
from benchmarks.speed.pictures import STACK, Flame
from benchmarks.speed.run import run_on_images, seconds_of
from benchmarks.speed.setting import Result, Setting, rows_of
from benchmarks.speed.timing import Table

METHOD = "radial-vcl"
PICTURES = (Flame("profile", "A whole command: who calls whom, by the share of the time"),)

Stack = tuple[str, ...]
"""Frames such as "work (package/other)", outermost first."""

_LARGEST = 10
_SMALLEST = 0.4
"""Smallest share of samples that is drawn, in per cent."""

_FRAME = re.compile(r"(?P<name>.+) \((?P<file>[^()]+?)(/__init__)?(\.py)?:\d+\)")
_PASSING = re.compile(
    r"<|multiprocessing/|importlib/|concurrent/|contextlib|threading|runpy"
    r"|vcl_radial/(__main__|cli/__init__|lazy)"
    r"|torch/(nn/modules/module|utils/_contextlib)"
)
"""Files of frames that only pass calls on, whose time counts for the caller."""


def measure(setting: Setting) -> Result:
    """Shares of the ten largest items, and of all visible stacks."""
    spy = _sampler()
    if spy is None:
        return Result([], [f"py-spy: {NOT_INSTALLED}"])
    stacks = _sampled(spy, setting)
    itself, with_calls = shares(stacks)
    table: Table = {
        "per cent of the time": {name: [itself[name]] for name in list(itself)[:_LARGEST]},
        "with what it calls": {name: [with_calls[name]] for name in list(itself)[:_LARGEST]},
        STACK: {";".join(stack): [share] for stack, share in tree(stacks, _SMALLEST).items()},
    }
    command = " ".join(["vcl-radial", *run_on_images(METHOD, "DIR", setting)[3:]])
    note = (
        f"`{command}` under py-spy: {stacks.total():,} samples, 100 a second, of Python's "
        "functions in the command and its worker process while they compute. What PyTorch and "
        "compiled code do counts for the function that calls them."
    )
    return Result(rows_of("profile", table), [note])


def _sampler() -> str | None:
    """The path of py-spy, beside this Python if it was installed for it."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("py-spy", path=beside) or shutil.which("py-spy")


def _sampled(spy: str, setting: Setting) -> Counter[Stack]:
    with TemporaryDirectory(dir=setting.scratch) as folder:
        file = f"{folder}/stacks"
        options = ["--format", "raw", "--function", "--subprocesses", "--rate", "100"]
        command = run_on_images(METHOD, f"{folder}/runs", setting)
        seconds_of([spy, "record", *options, "--output", file, "--", *command])
        return read_stacks(Path(file).read_text())


def read_stacks(text: str) -> Counter[Stack]:
    """The samples of every stack; frames that only pass calls on are left out.

    Args:
        text: lines such as `main (package/file.py:10);work (package/other.py:3) 42`: the frames of
            a stack, outermost first, and how many samples had it.
    """
    stacks: Counter[Stack] = Counter()
    for line in text.splitlines():
        frames, _, count = line.rpartition(" ")
        parts = [match for frame in frames.split(";") if (match := _FRAME.fullmatch(frame))]
        names = [
            f"{'import' if part['name'] == '<module>' else part['name']} ({part['file']})"
            for part in parts
            if not _PASSING.match(part["file"] + (part[3] or ""))
        ]
        stacks[tuple(names) or ("Python",)] += int(count)
    return stacks


def shares(stacks: Mapping[Stack, int]) -> tuple[dict[str, float], dict[str, float]]:
    """Per cent of the samples in each function itself, the largest first, and with its calls."""
    itself, with_calls = Counter[str](), Counter[str]()
    for stack, count in stacks.items():
        itself[stack[-1]] += count
        with_calls.update(dict.fromkeys(stack, count))
    share = 100 / sum(stacks.values())
    return (
        {name: share * count for name, count in itself.most_common()},
        {name: share * count for name, count in with_calls.items()},
    )


def tree(stacks: Mapping[Stack, int], smallest: float) -> dict[Stack, float]:
    """Per cent of the samples that begin with each stack of frames, if it is not below `smallest`.

    Callers come before callees, larger shares before smaller ones.
    """
    begun: Counter[Stack] = Counter()
    for stack, count in stacks.items():
        for depth in range(1, len(stack) + 1):
            begun[stack[:depth]] += count
    share = 100 / sum(stacks.values())
    order = sorted(begun, key=lambda stack: (len(stack), -begun[stack], stack))
    return {stack: share * begun[stack] for stack in order if share * begun[stack] >= smallest}
