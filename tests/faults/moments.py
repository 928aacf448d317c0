"""Moments inside a forked command: the n-th step of training, of evaluation, or of writing."""

import mmap
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PHASES = ("training", "evaluation", "writing")
_WRITING = {"os.rename", "os.remove", "os.mkdir", "os.rmdir"}
Act = Callable[[], object]


class Counter:
    """How many moments a forked command had; read in this process when it has ended."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 8)

    def step(self) -> int:
        """One more; how many there were."""
        number = int.from_bytes(self._shared[:8], "little") + 1
        self._shared[:8] = number.to_bytes(8, "little")
        return number

    @property
    def total(self) -> int:
        """How many there were."""
        return int.from_bytes(self._shared[:8], "little")


def arm(phase: str, below: Path, counter: Counter, at: int | None, act: Act) -> None:
    """In a forked child: do something at the n-th moment of a phase; None only counts them."""

    def moment() -> None:
        if counter.step() == at:
            act()

    if phase == "writing":
        _at_each_change(below, moment)
    else:
        _at_each_batch(phase == "training", moment)


def kill() -> None:
    """The end, without a chance to tidy up."""
    os.kill(os.getpid(), signal.SIGKILL)


def _at_each_batch(training: bool, moment: Act) -> None:
    from vcl_radial.strategies.base import ContinualStrategy

    whole = ContinualStrategy.forward

    def forward(self: Any) -> Any:
        if self.is_training == training:
            moment()
        return whole(self)

    ContinualStrategy.forward = forward  # type: ignore[method-assign]


def _at_each_change(below: Path, moment: Act) -> None:
    """Before each file or folder is made, renamed or removed, and before each fsync."""
    place = str(below)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        opens = event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)
        if (opens or event in _WRITING) and str(arguments[0]).startswith(place):
            moment()

    sys.addaudithook(hook)
    whole = os.fsync

    def fsync(descriptor: int) -> None:
        moment()
        whole(descriptor)

    os.fsync = fsync
