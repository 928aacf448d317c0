"""Samples of call stacks, as `py-spy record --format raw` writes them: what calls what, how often.

A line is the frames of a stack, outermost first, and how many samples had it:

    main (package/file.py:10);work (package/other.py:3) 42
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

Stack = tuple[str, ...]
"""Frames such as "work (package/other)", outermost first."""

_FRAME = re.compile(r"(?P<name>.+) \((?P<file>[^()]+?)(\.py)?:\d+\)")
_PASSING = re.compile(
    r"<|multiprocessing/|importlib/|concurrent/|contextlib|threading|runpy"
    r"|vcl_radial/(__main__|cli/__init__|lazy)"
    r"|torch/(nn/modules/module|utils/_contextlib)"
)
"""Files of frames that only pass calls on: their time is that of what called them."""


def read_stacks(text: str) -> Counter[Stack]:
    """The samples of every stack; frames that only pass calls on are left out."""
    stacks: Counter[Stack] = Counter()
    for line in text.splitlines():
        frames, _, count = line.rpartition(" ")
        stacks[_named(frames)] += int(count)
    return stacks


def items(stacks: Mapping[Stack, int]) -> list[tuple[str, float, float]]:
    """Every function with its share of the samples, itself and with all it calls, in per cent.

    Those with the largest shares themselves come first.
    """
    itself, with_calls = Counter[str](), Counter[str]()
    for stack, count in stacks.items():
        itself[stack[-1]] += count
        for frame in set(stack):
            with_calls[frame] += count
    share = 100 / sum(stacks.values())
    return [(name, share * count, share * with_calls[name]) for name, count in itself.most_common()]


def tree(stacks: Mapping[Stack, int], smallest: float) -> dict[Stack, float]:
    """The share of the samples that begin with each stack of frames, in per cent.

    Args:
        stacks: samples.
        smallest: shares below it are left out.

    Returns:
        Callers before what they call, larger shares before smaller ones.
    """
    begun: Counter[Stack] = Counter()
    for stack, count in stacks.items():
        for depth in range(1, len(stack) + 1):
            begun[stack[:depth]] += count
    share = 100 / sum(stacks.values())
    order = sorted(begun, key=lambda stack: (len(stack), -begun[stack], stack))
    return {stack: share * begun[stack] for stack in order if share * begun[stack] >= smallest}


def _named(frames: str) -> Stack:
    named = []
    for frame in frames.split(";"):
        parts = _FRAME.fullmatch(frame)
        if parts and not _PASSING.match(parts["file"]):
            file = parts["file"].removesuffix("/__init__")
            name = "import" if parts["name"] == "<module>" else parts["name"]
            named.append(f"{name} ({file})")
    return tuple(named) or ("Python",)
