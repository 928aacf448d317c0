"""Worker processes: each carries one run after another out and tells how far it has come."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from vcl_radial.errors import VclRadialError
from vcl_radial.experiments.execute import Event, Place, execute
from vcl_radial.experiments.specification import Run


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `fault` is None if it is finished, else one line (or a traceback)."""

    run: Run
    fault: str | None


def carry_out(
    runs: Sequence[Run], place: Place, jobs: int, tell: Callable[[Run, Event], None]
) -> Iterator[Outcome]:
    """Carry runs out, `jobs` at a time, and yield each as it ends.

    One job runs in this process. A worker that dies takes only its own run with it.
    """
    if jobs == 1:
        for run in runs:
            yield Outcome(run, _attempt(run, place, lambda event, run=run: tell(run, event)))  # type: ignore[misc]
        return
    waiting = list(reversed(runs))
    team = [_Worker(place) for _ in range(min(jobs, len(runs)))]
    busy: dict[Connection, tuple[_Worker, Run]] = {}
    try:
        for worker in team:
            busy[worker.line] = worker, worker.take(waiting.pop())
        while busy:
            for line in wait(list(busy)):
                worker, run = busy[line]  # type: ignore[index]
                message = worker.hear()
                if isinstance(message, Event):
                    tell(run, message)
                    continue
                del busy[worker.line]
                yield Outcome(run, message.fault)
                if message.worker_died:
                    team.remove(worker)
                    if waiting:
                        worker = _Worker(place)
                        team.append(worker)
                if waiting:
                    busy[worker.line] = worker, worker.take(waiting.pop())
    finally:
        for worker in team:
            worker.dismiss()


@dataclass(frozen=True)
class _Ended:
    fault: str | None
    worker_died: bool = False


class _Worker:
    """This side of a worker process."""

    def __init__(self, place: Place) -> None:
        # Spawned, not forked: a fork would copy the locks of torch's threads.
        context = multiprocessing.get_context("spawn")
        self.line, far_end = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=_work, args=(far_end, place), daemon=True
        )
        # A terminal sends Ctrl-C to the workers too; they leave it to this process, and inherit
        # that before their first line of Python.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.process.start()
        signal.signal(signal.SIGINT, handler)
        far_end.close()

    def take(self, run: Run) -> Run:
        with suppress(BrokenPipeError):  # `hear` will report it
            self.line.send(run)
        return run

    def hear(self) -> Event | _Ended:
        try:
            message: Event | _Ended = self.line.recv()
        except (EOFError, OSError):
            self.process.join(timeout=10)
            fault = (
                f"its process died (exit code {self.process.exitcode}; out of memory?); "
                "run the same command again to go on from its last finished task"
            )
            return _Ended(fault, worker_died=True)
        return message

    def dismiss(self) -> None:
        self.process.terminate()
        self.process.join(timeout=10)
        self.line.close()


def _work(line: Connection, place: Place) -> None:
    while True:
        try:
            run = line.recv()
            line.send(_Ended(_attempt(run, place, line.send)))
        except (EOFError, BrokenPipeError):  # the parent is gone
            return


def _attempt(run: Run, place: Place, tell: Callable[[Event], None]) -> str | None:
    """Carry a run out and give its fault in words, or None."""
    try:
        with warnings.catch_warnings():
            # Deprecations inside other people's packages are nothing a user of ours can mend.
            warnings.filterwarnings("ignore", module=r"(?!vcl_radial).*")
            execute(run, place, tell)
    except VclRadialError as error:
        return str(error)
    except BrokenPipeError:  # the parent is gone
        raise
    except Exception:
        return f"a fault of the suite or of a user's strategy:\n{traceback.format_exc()}"
    return None
