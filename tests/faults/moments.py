"""Moments inside a forked command: the n-th step of training, of evaluation, or of writing."""

import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from children import RunOutcome, fork
from work import Setting, Work

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


@dataclass(frozen=True)
class Moment:
    """The n-th step of a phase, of so many; no step at all where `at` is None."""

    phase: str
    at: int | None
    total: int

    def __str__(self) -> str:
        """As messages have it."""
        return f"{self.phase} {self.at} of {self.total}"


def drawn(setting: Setting, work: Work, count: int) -> Iterator[Moment]:
    """Moments of a work: so many of each phase, and one at least."""
    for phase in PHASES:
        total = moments_of(setting, work, phase)
        chosen = setting.rng.sample(range(1, total + 1), min(max(1, count), total))
        yield from (Moment(phase, at, total) for at in sorted(chosen))


def moments_of(setting: Setting, work: Work, phase: str) -> int:
    """How many moments of a phase an undisturbed work has."""
    counter = Counter()
    end = struck(work, setting.new_folder(), Moment(phase, None, 0), lambda: None, counter)
    if end.code != 0:
        raise RuntimeError(f"the undisturbed work fails: {end.last_line}")
    return counter.total


def struck(
    work: Work, root: Path, moment: Moment, act: Act, counter: Counter | None = None
) -> RunOutcome:
    """A forked command in which something is done at a moment."""
    out, counted = root / "out", counter or Counter()
    return fork(
        work.arguments(out), root / "output", lambda: _arm(moment, out, counted, act)
    ).wait()


def _arm(moment: Moment, below: Path, counter: Counter, act: Act) -> None:
    """In a forked child: count the moments of a phase, and do something at one of them."""

    def step() -> None:
        if counter.step() == moment.at:
            act()

    if moment.phase == "writing":
        _at_each_change(below, step)
    else:
        _at_each_batch(moment.phase == "training", step)


def kill() -> None:
    """The end, without a chance to tidy up."""
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt() -> None:
    """As Ctrl-C does."""
    raise KeyboardInterrupt


def _at_each_batch(training: bool, moment: Act) -> None:
    """Before each forward pass of a whole network, with gradients in training and without after."""
    import torch

    whole, within = torch.nn.Module.__call__, []

    def forward(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if not within and torch.is_grad_enabled() == training:
            moment()
        within.append(None)
        try:
            return whole(self, *arguments, **keywords)
        finally:
            within.pop()

    torch.nn.Module.__call__ = forward  # type: ignore[method-assign]


def _at_each_change(below: Path, moment: Act) -> None:
    """Before each file or folder is made, renamed or removed, and before each fsync."""
    prefix = str(below)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        opens = event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)
        if (opens or event in _WRITING) and str(arguments[0]).startswith(prefix):
            moment()

    sys.addaudithook(hook)
    whole = os.fsync

    def fsync(descriptor: int) -> None:
        moment()
        whole(descriptor)

    os.fsync = fsync
