"""Worker processes: each carries one run after another out and tells how far it has come."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from vcl_radial.errors import UserError, VclRadialError
from vcl_radial.experiments import supervisor
from vcl_radial.experiments.execute import Event, Place, execute
from vcl_radial.experiments.lanes import execute_lanes
from vcl_radial.experiments.lock import AtWork, held
from vcl_radial.experiments.quiet import quiet
from vcl_radial.experiments.run_folder import FAILED, TRACEBACK, RunFolder, write_atomically
from vcl_radial.experiments.specification import Run
from vcl_radial.experiments.supervisor import Report


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `fault` is None if it is finished, else one line."""

    run: Run
    fault: str | None
    elsewhere: bool = False
    """whether the fault is that another command is at work on it"""


def carry_out(
    batches: Sequence[Sequence[Run]], place: Place, jobs: int, tell: Callable[[Run, Event], None]
) -> Iterator[Outcome]:
    """Carry batches of runs out, `jobs` at a time, and yield the runs of each as it ends.

    A worker that dies takes only its own batch with it, which is done once more.

    Args:
        batches: the runs; those of a batch train as one program.
        place: where they compute, read and write.
        jobs: worker processes; 0 for none, but this process.
        tell: hears how far a run has come.
    """

    def on_report(batch: Sequence[Run], run: Run, event: Event) -> None:
        tell(run, event)

    work = partial(_attempt, place=place)
    for ended in supervisor.carry_out(work, batches, jobs, on_report, place.threads):
        if ended.death is None:
            yield from ended.result
        else:
            fault = (
                f"{ended.death}; run the same command again to go on from its last finished task"
            )
            yield from (Outcome(run, fault) for run in ended.job)


def _attempt(batch: Sequence[Run], tell: Report, place: Place) -> list[Outcome]:
    """Carry a batch out where nobody else is at work, and say how each run ended."""
    try:
        with held([RunFolder(place.out, run).path for run in batch]):
            # Another command may have finished some since this one looked.
            undone = [run for run in batch if RunFolder(place.out, run).fault() is not None]
            done = [Outcome(run, None) for run in batch if run not in undone]
            return done + (_attempt_held(undone, place, tell) if undone else [])
    except UserError as error:
        return [Outcome(run, str(error), isinstance(error, AtWork)) for run in batch]


def _attempt_held(
    batch: Sequence[Run], place: Place, tell: Callable[[Run, Event], None]
) -> list[Outcome]:
    """Carry a batch out and give the fault of each run in words, or None."""
    faults: Sequence[str | None]
    folders = [RunFolder(place.out, run).path for run in batch]
    for left in (folder / name for folder in folders for name in (FAILED, TRACEBACK)):
        with suppress(OSError):  # of an earlier attempt
            left.unlink()
    try:
        with quiet():
            if len(batch) > 1:
                faults = execute_lanes(batch, place, tell)
            else:
                execute(batch[0], place, lambda event: tell(batch[0], event))
                faults = [None]
    except VclRadialError as error:
        faults = [str(error)] * len(batch)
    except BrokenPipeError:  # the parent is gone
        raise
    except (Exception, SystemExit) as error:  # a user's strategy may fail in any way
        faults = [_unexpected(error, run, place) for run in batch]
    for folder, fault in zip(folders, faults, strict=True):
        with suppress(UserError, OSError):  # a full disk has been told of, or will be
            if fault is not None and any(folder.iterdir()):  # else the run was not begun
                write_atomically(folder / FAILED, f"{fault}\n")
    return [Outcome(run, fault) for run, fault in zip(batch, faults, strict=True)]


def _unexpected(error: BaseException, run: Run, place: Place) -> str:
    """A fault that is nobody's but the code's, in one line; its traceback goes to the folder."""
    from vcl_radial.outside import in_words

    with suppress(UserError):  # a full disk has been told of, or will be
        text = "".join(traceback.format_exception(error))
        write_atomically(RunFolder(place.out, run).path / TRACEBACK, text)
    own: list[Callable[..., Any]] = []
    with suppress(UserError):
        own = run.from_outside()
    words = f"{in_words(error, *own)}; the traceback is in {TRACEBACK} of the run's folder"
    return f"{words}, and `vcl-radial check` looks closer at the method" if own else words
