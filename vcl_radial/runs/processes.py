"""A worker process that runs jobs until its parent exits.

Where possible it is forked from a server that has imported PyTorch once (`start_server`); else it
is spawned and imports PyTorch itself.
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
    """The process died; the message gives the cause."""


class WorkerProcess:
    """The parent's side of a worker process: send jobs, receive results.

    Args:
        target: function that the process calls with its end of the connection and `arguments`; it
            calls `serve`.
        arguments: further arguments of `target`; they are pickled.
        threads: number of threads that the process may use.
    """

    def __init__(self, target: Callable[..., None], *arguments: Any, threads: int) -> None:
        # A fork of this process would copy the locks of torch's threads. The server has no threads,
        # but its libraries are set to use one.
        forked = _server.running and threads == 1
        context: Any = multiprocessing.get_context("forkserver" if forked else "spawn")
        self.line, far_end = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_begin,
            args=(_ProcessEnvironment(forked), target, far_end, *arguments),
            daemon=True,
        )
        # A forked process inherits from the server, so Ctrl-C may interrupt the wait for it.
        with safe_path() if forked else _inherited(threads), _without_script():
            self._process.start()
        far_end.close()

    def send(self, job: Any) -> None:
        """Send a job."""
        with suppress(BrokenPipeError):  # `receive` will report it
            self.line.send(job)

    def receive(self) -> Any:
        """Wait for the next message and return it.

        Raises:
            ProcessDied: the process died.
        """
        try:
            return self.line.recv()
        except (EOFError, OSError):
            self._process.join(timeout=10)
            raise ProcessDied(f"its process died ({_cause(self._process.exitcode)})") from None

    @property
    def alive(self) -> bool:
        """Whether the process is alive."""
        return self._process.is_alive()

    def terminate(self) -> None:
        """Ask the process to end, without waiting."""
        self._process.terminate()

    def shutdown(self) -> None:
        """End the process, by force if it does not react."""
        self._process.terminate()
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(timeout=10)
        self.line.close()


def _cause(code: int | None) -> str:
    """The meaning of an exit code; only SIGKILL may come from a lack of memory."""
    if code is None or code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"{name}; out of memory?" if -code == signal.SIGKILL else name


class _Server:
    running = False


_server = _Server()
_PRELOAD = "vcl_radial.runs.preload"
_MODULES = "VCL_RADIAL_PRELOAD"
"""The variable with the parent and the modules to import, for the module `_PRELOAD`."""


def start_server(device: str, *modules: str) -> bool:
    """Start a process that imports modules and from which workers are forked; do not wait for it.

    Args:
        device: the device of the workers. With "cuda" each worker imports the modules itself, as
            the CUDA driver must not be forked.
        modules: modules that the workers need.

    Returns:
        Whether there is such a server.
    """
    if device == "cuda" or "forkserver" not in multiprocessing.get_all_start_methods():
        return False
    if sys.platform != "linux":  # on other systems a fork may copy threads of system libraries
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
    """Set the environment and signal handler that a process started inside inherits.

    A terminal sends Ctrl-C to the workers too; they ignore it, and this process handles it.
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
    """Keep Python processes started inside from importing modules of the current folder."""
    return _environment({"PYTHONSAFEPATH": "1"})


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables inside, and restore them afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def _without_script() -> Iterator[None]:
    """Keep a process started inside from importing the script of this process.

    By default `multiprocessing` imports it, and a script that starts runs without checking
    `__name__ == "__main__"` would start them again in each worker.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


class _ProcessEnvironment:
    """Environment and output of this process, for a worker forked from an older server."""

    def __init__(self, forked: bool) -> None:
        self._environment = dict(os.environ)
        self._outputs: Sequence[Any] = (1, 2) if forked else ()

    def __getstate__(self) -> dict[str, Any]:
        # Pickled when the process starts, so that it gets copies of the descriptors.
        return {**vars(self), "_outputs": [reduction.DupFd(number) for number in self._outputs]}

    def enter(self) -> None:
        """Use this environment and output, but keep the number of threads."""
        threads = {name: os.environ[name] for name in _THREADS}
        os.environ.clear()
        os.environ.update(self._environment | threads)
        for number, descriptor in enumerate(self._outputs, start=1):
            copy = descriptor.detach()
            os.dup2(copy, number)
            os.close(copy)


def _begin(environment: _ProcessEnvironment, target: Callable[..., None], *arguments: Any) -> None:
    environment.enter()
    target(*arguments)


def serve(line: Connection, do: Callable[[Any], Any]) -> None:
    """In the worker process: receive jobs and send back results until the parent exits."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    with unfailing_output():
        if isinstance(raw := terminal(sys.stdout), io.TextIOWrapper):
            raw.reconfigure(line_buffering=True)  # a process that is killed does not flush
        while True:
            try:
                line.send(do(line.recv()))
            except (EOFError, BrokenPipeError, ConnectionResetError):
                return


def end_with_parent() -> None:
    """End at once when the parent is killed, as another command may resume its runs."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
