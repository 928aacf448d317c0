"""The command line `vcl-radial COMMAND`, one file per command. Commands import heavy modules."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from vcl_radial import __version__
from vcl_radial.cli import (
    check,
    listing,
    report,
    run,
    sweep,
)
from vcl_radial.cli.arguments import FAILED, INTERRUPTED, Parser
from vcl_radial.errors import VclRadialError, visible
from vcl_radial.system.output import open_closed_streams, unfailing_output

COMMANDS = (
    run,
    listing,
    report,
    sweep,
    check,
)
"""Modules with `add(commands)`, in the order of the help."""

MOVED = {
    "bench": "python -m benchmarks.speed",
    "pages": "python -m reports pages",
    "papers": "python -m reports",
    "price": "python -m reports price",
}
"""Commands that need a checkout, which holds the pages that they write."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0 done, 1 failed, 2 misused."""
    return run_guarded("vcl-radial", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments and arguments[0] in MOVED:
        parser.error(f"{arguments[0]} has moved: in a checkout, run `{MOVED[arguments[0]]}`")
    options = parser.parse_args(arguments)
    code: int = options.command(options)
    return code


def run_guarded(program: str, work: Callable[[], int]) -> int:
    """Run a command, print a fault as one line on stderr, and return the exit code.

    Args:
        program: name at the start of the line.
        work: function that parses and runs the command, and returns its exit code.
    """
    open_closed_streams()
    with unfailing_output() as lost:
        code = _guarded(program, work)
        sys.stdout.flush()
    for error in lost.errors:
        print(f"{program}: the output cannot be written: {error.strerror}", file=sys.stderr)
        return code or FAILED
    return code


def _guarded(program: str, work: Callable[[], int]) -> int:
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with _interruptions_repeated():
            return work()
    except (VclRadialError, PermissionError) as error:
        fault = str(error)
        if isinstance(error, PermissionError):
            fault = f"{error.filename}: {error.strerror}"
        # A name from the user may hold a line break.
        print(f"{program}: {visible(' '.join(fault.splitlines()))}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(
            f"{program}: stopped; the same command resumes",
            file=sys.stderr,
        )
        return INTERRUPTED


def _interrupt(*_: Any) -> NoReturn:
    raise KeyboardInterrupt


@contextmanager
def _interruptions_repeated() -> Iterator[None]:
    """Interrupt again if a callback inside Python, such as a weak reference's, swallowed Ctrl-C."""
    hook = sys.unraisablehook

    def swallowed(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            hook(unraisable)
            return
        started = False
        while not started:  # on a busy machine the signal may come before `start` returns
            with suppress(KeyboardInterrupt):
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
                started = True

    sys.unraisablehook = swallowed
    try:
        yield
    finally:
        sys.unraisablehook = hook


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="vcl-radial",
        description="Benchmarks of variational continual learning: radial against Gaussian "
        "posteriors, other methods, and your own.",
        epilog="First steps, without data: vcl-radial run split-digits-multi-head --seeds 3",
    )
    parser.add_argument("--version", action="version", version=f"vcl-radial {__version__}")
    commands = parser.add_subparsers(
        required=True, title="commands", metavar="COMMAND", parser_class=Parser
    )
    for command in COMMANDS:
        command.add(commands)
    return parser
