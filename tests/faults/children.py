"""The suite's commands as child processes: begun, watched, and counted in processor time.

A child either is a process of its own, as a user starts it, or forked from this one, which has
imported everything before: that spares most of the time where only one process is at work.
"""

import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600.0
"""Seconds that a child may take: generous, for machines that have much else to do."""
HUNG = 124
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class RunOutcome:
    """How a child ended: `code` is negative where a signal killed it, `HUNG` where it had to be."""

    code: int
    output: str
    errors: str

    @property
    def last_line(self) -> str:
        """The last line of its output."""
        lines = [line for line in (self.output + self.errors).splitlines() if line.strip()]
        return f"code {self.code}, {lines[-1].strip() if lines else 'without a word'}"


class Child:
    """A command at work, in a session of its own with the workers that it starts."""

    def __init__(self, process: int, poll: Callable[[], int | None], files: Path) -> None:
        self.process, self._poll, self._files = process, poll, files

    def poll(self) -> int | None:
        """Its exit code, or None as long as it is at work."""
        return self._poll()

    def wait(self, seconds: float = PATIENCE) -> RunOutcome:
        """Wait for its end; one that takes too long is killed."""
        end, hung = time.monotonic() + seconds, False
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                hung = True
                self.signal_all(signal.SIGKILL)
            time.sleep(0.02)
        output, errors = (_text(self._files.with_suffix(kind)) for kind in (".out", ".err"))
        if hung:
            return RunOutcome(HUNG, output, f"{errors}still at work after {seconds:.0f} s\n")
        # Python itself may end so after an interruption; a shell calls both 130.
        return RunOutcome(130 if code == -signal.SIGINT else code, output, errors)

    def signal(self, number: int, process: int | None = None) -> None:
        """Send a signal to the command, or to one process of its session."""
        with suppress(ProcessLookupError):
            os.kill(process or self.process, number)

    def signal_all(self, number: int) -> None:
        """Send a signal to all its processes, as a terminal does."""
        for process in [self.process, *self.others()]:
            self.signal(number, process)

    def others(self) -> list[int]:
        """The processes of its session beside itself."""
        return [p for p, row in _stat() if int(row[3]) == self.process != p and row[0] != "Z"]

    def workers(self) -> list[int]:
        """Those that carry runs out."""
        return [p for p in self.others() if b"spawn_main" in _read(Path(f"/proc/{p}/cmdline"))]

    def cpu(self) -> float:
        """Seconds of processor time that its session has used."""
        rows = [row for _, row in _stat() if int(row[3]) == self.process]
        self_time = sum(int(row[11]) + int(row[12]) for row in rows)
        return (self_time + sum(int(row[13]) + int(row[14]) for row in rows)) / _TICK

    def holds(self) -> tuple[int, int]:
        """MiB of memory and open files of all its processes."""
        there = [Path(f"/proc/{p}") for p in [self.process, *self.others()]]
        pages = [int(row[1]) for path in there if (row := _read(path / "statm").split())]
        opened = 0
        for path in there:
            with suppress(OSError):  # it has ended meanwhile
                opened += len(list((path / "fd").iterdir()))
        return sum(pages) * os.sysconf("SC_PAGE_SIZE") >> 20, opened

    def at_cpu(self, seconds: float) -> bool:
        """Wait until it has used so much processor time; whether it still goes on then."""
        while self.poll() is None:
            if self.cpu() >= seconds:
                return True
            time.sleep(0.03)
        return False

    def leaves_nobody(self, seconds: float = PATIENCE) -> bool:
        """Whether its other processes end by themselves; what stays is killed."""
        end = time.monotonic() + seconds
        while left := self.others():
            if time.monotonic() > end:
                for process in left:
                    self.signal(signal.SIGKILL, process)
                return False
            time.sleep(0.05)
        return True


def cpu_of_ended() -> float:
    """Seconds of processor time of all children that have ended, and of their workers."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def begin(
    arguments: Sequence[str], files: Path, environment: Mapping[str, str] | None = None
) -> Child:
    """`vcl-radial ARGUMENTS` as a process of its own."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # A shell's background job ignores Ctrl-C, and its children would inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(environment or {})}
    files.parent.mkdir(parents=True, exist_ok=True)
    with files.with_suffix(".out").open("w") as out, files.with_suffix(".err").open("w") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "vcl_radial", *arguments],
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
            env=variables,
            start_new_session=True,
        )
    return Child(process.pid, process.poll, files)


def fork(
    arguments: Sequence[str], files: Path, before: Callable[[], object] = lambda: None
) -> Child:
    """`vcl-radial ARGUMENTS` in a copy of this process; `before` prepares its fault there."""
    files.parent.mkdir(parents=True, exist_ok=True)

    def work() -> int:
        for number, kind in ((1, ".out"), (2, ".err")):
            opened = os.open(files.with_suffix(kind), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
            os.dup2(opened, number)
            os.close(opened)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False, errors="backslashreplace")
        before()
        from vcl_radial.cli import MOVED, main

        if arguments[0] == "benchmarks.speed":
            from benchmarks.speed.__main__ import main as speed

            return speed(arguments[1:])
        if arguments[0] in MOVED:
            from reports.__main__ import main as reports

            return reports(arguments)
        return main(arguments)

    process = forked(work)
    ended: list[int] = []

    def poll() -> int | None:
        if not ended:
            finished, status = os.waitpid(process, os.WNOHANG)
            if finished:
                ended.append(os.waitstatus_to_exitcode(status))
        return ended[0] if ended else None

    return Child(process, poll, files)


def forked(work: Callable[[], int]) -> int:
    """Call a function in a copy of this process, in a session of its own; the copy's number."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = work()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 70
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def prepare() -> None:
    """Import what every forked command needs."""
    import optuna  # noqa: F401
    import sqlalchemy  # noqa: F401
    import torch

    import vcl_radial.reporting.html
    import vcl_radial.reporting.write
    import vcl_radial.sweeps.command
    import vcl_radial.tracks.continual.training  # noqa: F401

    torch.set_num_threads(1)


def _stat() -> Iterator[tuple[int, list[str]]]:
    """The fields of /proc/N/stat from the state on, for each process."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (text := _read(entry / "stat")):
            yield int(entry.name), text.rpartition(b")")[2].decode().split()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
