"""Pieces of work in worker processes of one thread each, told of as they end."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, TypeVar

from vcl_radial.errors import UserError
from vcl_radial.experiments.processes import ProcessDied, WorkerProcess, serve

Piece = TypeVar("Piece")
Result = TypeVar("Result")
Tell = Callable[[float], None]
"""Says how much of a piece of work is done, as a share of 1."""


class _Ended(NamedTuple):
    result: Any
    fault: Exception | None


def in_workers(
    do: Callable[[Piece, Tell], Result],
    work: Sequence[Piece],
    jobs: int,
    told: Callable[[int, float], None] = lambda k, share: None,
) -> Iterator[tuple[int, Result]]:
    """Yield the number of each piece of work and what came of it, as it ends.

    One job works in this process.

    Args:
        do: the work; for more jobs than one a function of a module, or a partial of one.
        work: the pieces; those first in it are begun first.
        jobs: at a time.
        told: hears the number of a piece and how much of it is done.

    Raises:
        UserError: a process died.
        Exception: what `do` raises first; the others are ended.
    """
    if jobs == 1 or len(work) < 2:
        import torch

        torch.set_num_threads(1)
        for k, piece in enumerate(work):
            yield k, do(piece, partial(told, k))
        return
    waiting = iter(enumerate(work))
    team = [WorkerProcess(_work, do, threads=1) for _ in range(min(jobs, len(work)))]
    busy: dict[Connection, tuple[int, WorkerProcess]] = {}

    def give(worker: WorkerProcess) -> None:
        if (following := next(waiting, None)) is not None:
            busy[worker.line] = following[0], worker
            worker.send(following[1])

    try:
        for worker in team:
            give(worker)
        while busy:
            for line in wait(list(busy)):
                k, worker = busy[line]  # type: ignore[index]
                word = _hear(worker)
                if not isinstance(word, _Ended):
                    told(k, word)
                    continue
                if word.fault is not None:
                    raise word.fault
                del busy[worker.line]
                give(worker)
                yield k, word.result
    finally:
        for worker in team:
            worker.dismiss()


def _hear(worker: WorkerProcess) -> _Ended | float:
    try:
        word: _Ended | float = worker.hear()
    except ProcessDied as died:
        raise UserError(
            f"{died}; run the same command again to go on from what is finished, with fewer --jobs"
        ) from None
    return word


def _work(line: Connection, do: Callable[[Any, Tell], Any]) -> None:
    def attempt(piece: Any) -> _Ended:
        try:
            return _Ended(do(piece, line.send), None)
        except BrokenPipeError:  # the parent is gone
            raise
        except Exception as fault:
            fault.add_note(traceback.format_exc())
            return _Ended(None, fault)

    serve(line, attempt)
