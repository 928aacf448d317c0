"""A process of one's own that does one piece of work after another and ends with its parent.

Where it can, it is forked from a server that has imported PyTorch once (`start_server`); else it is
spawned and imports for itself.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing import reduction
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any

from vcl_radial.system.output import terminal, unfailing_output

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
        # Never forked from here: that would copy the locks of torch's threads. The server has none,
        # but the threads that its libraries may use are set.
        forked = _server.running and threads == 1
        context: Any = multiprocessing.get_context("forkserver" if forked else "spawn")
        self.line, far_end = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_begin, args=(_ProcessEnvironment(forked), work, far_end, *given), daemon=True
        )
        # One that is forked has what the server was started with; to wait for that can be ended.
        with safe_path() if forked else _inherited(threads), _without_script():
            self._process.start()
        far_end.close()

    def send(self, work: Any) -> None:
        """Give it something to do."""
        with suppress(BrokenPipeError):  # `receive` will report it
            self.line.send(work)

    def receive(self) -> Any:
        """What it tells next.

        Raises:
            ProcessDied: it is gone.
        """
        try:
            return self.line.recv()
        except (EOFError, OSError):
            self._process.join(timeout=10)
            raise ProcessDied(f"its process died ({_cause(self._process.exitcode)})") from None

    @property
    def alive(self) -> bool:
        """Whether it is there."""
        return self._process.is_alive()

    def terminate(self) -> None:
        """Tell it to end, without waiting."""
        self._process.terminate()

    def shutdown(self) -> None:
        """End it, whatever it is at."""
        self._process.terminate()
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(timeout=10)
        self.line.close()


def _cause(code: int | None) -> str:
    """What an exit code says; only a kill from outside may be for want of memory."""
    if code is None or code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"{name}; out of memory?" if -code == signal.SIGKILL else name


class _Server:
    running = False


_server = _Server()
_PRELOAD = "vcl_radial.runs.preload"
_MODULES = "VCL_RADIAL_PRELOAD"
"""The variable that tells the module above for whom it imports what."""


def start_server(device: str, *modules: str) -> bool:
    """Start to import modules in a process from which workers are then forked; does not wait.

    Args:
        device: of the workers' networks. With "cuda" workers import for themselves: a driver must
            not be forked.
        modules: that the workers need.

    Returns:
        Whether there is such a server.
    """
    if device == "cuda" or "forkserver" not in multiprocessing.get_all_start_methods():
        return False
    if sys.platform != "linux":  # elsewhere a fork may meet threads of the system's libraries
        return False
    if not _server.running:
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload([_PRELOAD])
        os.environ[_MODULES] = f"{os.getpid()}:{','.join(modules)}"
        try:
            with _inherited(threads=1):
                forkserver.ensure_running()
        finally:
            del os.environ[_MODULES]
        _server.running = True
    return True


@contextmanager
def _inherited(threads: int) -> Iterator[None]:
    """What a process that is started inside has before its first line of Python.

    A terminal sends Ctrl-C to the workers too; they leave it to this process.
    """
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        with safe_path(), _environment(dict.fromkeys(_THREADS, str(threads))):
            yield
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)


def safe_path() -> AbstractContextManager[None]:
    """A Python that is started inside looks for no module in the current folder."""
    return _environment({"PYTHONSAFEPATH": "1"})


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Inside, variables of the environment have other values."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def _without_script() -> Iterator[None]:
    """A process that is started inside does not import the script that this one runs.

    By itself `multiprocessing` does so, and a script that starts runs without asking for
    `__name__ == "__main__"` would start them again in each worker.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


class _ProcessEnvironment:
    """Environment and output of this process, for one that is forked from an older server."""

    def __init__(self, forked: bool) -> None:
        self._environment = dict(os.environ)
        self._outputs: Sequence[Any] = (1, 2) if forked else ()

    def __getstate__(self) -> dict[str, Any]:
        # Where the process is about to be started: the descriptors travel with it.
        return {**vars(self), "_outputs": [reduction.DupFd(number) for number in self._outputs]}

    def enter(self) -> None:
        """Take them over, but for the number of threads, which is set already."""
        threads = {name: os.environ[name] for name in _THREADS}
        os.environ.clear()
        os.environ.update(self._environment | threads)
        for number, descriptor in enumerate(self._outputs, start=1):
            copy = descriptor.detach()
            os.dup2(copy, number)
            os.close(copy)


def _begin(surroundings: _ProcessEnvironment, work: Callable[..., None], *arguments: Any) -> None:
    surroundings.enter()
    work(*arguments)


def serve(line: Connection, do: Callable[[Any], Any]) -> None:
    """In the process: do what comes and send back what came of it, until the parent is gone."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    with unfailing_output():
        if isinstance(raw := terminal(sys.stdout), io.TextIOWrapper):
            raw.reconfigure(line_buffering=True)  # a process that is ended flushes nothing
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
