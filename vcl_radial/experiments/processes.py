"""A process of one's own that does one piece of work after another and ends with its parent."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class ProcessDied(Exception):
    """The process is gone; says how."""


class WorkerProcess:
    """This side of a process that serves: what is sent is done, what it tells is heard.

    Args:
        work: called in the process with its end of the line and `given`; calls `serve`.
        given: can be pickled.
        threads: that the process may use.
    """

    def __init__(self, work: Callable[..., None], *given: Any, threads: int) -> None:
        # Spawned, not forked: a fork would copy the locks of torch's threads.
        context = multiprocessing.get_context("spawn")
        self.line, far_end = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=work, args=(far_end, *given), daemon=True
        )
        # A terminal sends Ctrl-C to the workers too; they leave it to this process, and inherit
        # that, and how many threads they may have, before their first line of Python.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        before = {name: os.environ.get(name) for name in _THREADS}
        os.environ.update(dict.fromkeys(_THREADS, str(threads)))
        try:
            self._process.start()
        finally:
            signal.signal(signal.SIGINT, handler)
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        far_end.close()

    def send(self, work: Any) -> None:
        """Give it something to do."""
        with suppress(BrokenPipeError):  # `hear` will report it
            self.line.send(work)

    def hear(self) -> Any:
        """What it tells next.

        Raises:
            ProcessDied: it is gone.
        """
        try:
            return self.line.recv()
        except (EOFError, OSError):
            self._process.join(timeout=10)
            raise ProcessDied(
                f"its process died (exit code {self._process.exitcode}; out of memory?)"
            ) from None

    @property
    def alive(self) -> bool:
        """Whether it is there."""
        return self._process.is_alive()

    def terminate(self) -> None:
        """Tell it to end, without waiting."""
        self._process.terminate()

    def dismiss(self) -> None:
        """End it, whatever it is at."""
        self._process.terminate()
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(timeout=10)
        self.line.close()


def print_anything() -> None:
    """Print what the output's encoding lacks, as arrows or a path's odd bytes, as codes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def serve(line: Connection, do: Callable[[Any], Any]) -> None:
    """In the process: do what comes and send back what came of it, until the parent is gone."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    print_anything()
    while True:
        try:
            line.send(do(line.recv()))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def end_with_parent() -> None:
    """End at once when the parent is killed: another command may go on with its work."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
