"""The command line `vcl-radial COMMAND`, one file per command. Commands import heavy modules."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NoReturn

from vcl_radial import __version__
from vcl_radial.cli.arguments import FAILED, INTERRUPTED, Parser
from vcl_radial.errors import VclRadialError, visible
from vcl_radial.system.output import open_closed_streams, unfailing_output

COMMANDS = {
    "run": "run methods on a benchmark and write its report",
    "predict": "predict images, arrays, tables or a data set with the model of a finished run",
    "update": "let the model of a finished run learn one more task",
    "features": "write features of images under a trained network, for any benchmark",
    "export": "write the model of a finished run as ONNX or by torch.export",
    "card": "print the card of a kept model in Markdown",
    "list": "list benchmarks, methods and sweeps, show one, or list the models in a folder",
    "report": "write tables, pictures and a page of finished runs, or of a sweep",
    "leaderboard": "compare methods over the benchmarks of several folders",
    "sweep": "search for good settings of methods",
    "check": "check your method or posterior",
    "completion": "print the completion script of a shell",
}
"""The commands and their one-line help, in the order of the help."""

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
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    name = next(iter(arguments), "")
    parser = parser_for(name)
    if name in MOVED:
        parser.error(f"{name} has moved: in a checkout, run `{MOVED[name]}`")
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


def parser_for(*names: str) -> argparse.ArgumentParser:
    """A parser that knows the names of all commands, and the arguments of some."""
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
    for command, text in COMMANDS.items():
        arguments = commands.add_parser(command, help=text)
        if command in names:
            module_of(command).add(arguments)
    return parser


def module_of(command: str) -> Any:
    """The module of a command: `add` describes its arguments, and sets the function to call."""
    file = "listing" if command == "list" else command
    return import_module(f"vcl_radial.cli.{file}")
