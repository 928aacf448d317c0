"""Shared parts of commands: exit codes, argument types and arguments."""

from __future__ import annotations

import argparse
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from vcl_radial.errors import UserError, visible
from vcl_radial.runs.devices import usable_device as usable_device  # noqa: PLC0414

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

MOST = 100_000
"""The largest number for options that count seeds, trials or jobs."""

_OPTIONS = {
    "seeds": "--seeds",
    "methods": "--method",
    "jobs": "--jobs",
    "device": "--device",
    "out": "--out",
    "data_dir": "--data-dir",
}
"""Options that users may mistake for keys of a recipe, by their names in parsed arguments."""

DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130


class Parser(argparse.ArgumentParser):
    """A parser with one-line errors instead of the usage, and without abbreviated options."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **settings})
        self._arguments: list[str] = []

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse as usual, but let the parser of a command report its unknown arguments itself."""
        self._arguments = list(sys.argv[1:] if args is None else args)
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._nearest(unknown)}")
        return namespace, unknown

    def _nearest(self, unknown: list[str]) -> str:
        options = [name for name in self._option_string_actions if name.startswith("--")]
        for word in unknown:
            if near := get_close_matches(word.partition("=")[0], options, 1):
                return f"; the nearest known one is {near[0]}"
        return ""

    def error(self, message: str) -> NoReturn:
        """Print the fault and exit with code 2."""
        several = {
            o for action in self._actions if action.nargs == "+" for o in action.option_strings
        }
        option = next((a for a in reversed(self._arguments) if a in several), None)
        if message.startswith("the following arguments are required") and option is not None:
            message += f"; put it before {option}, which takes all words that follow"
        # An argument may hold line breaks; the message stays one line.
        self.exit(MISUSED, f"{self.prog}: {visible(message)} (see {self.prog} --help)\n")


def count(text: str) -> int:
    """Parse a whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    if number > MOST:
        raise argparse.ArgumentTypeError(f"{text} is more than {MOST}")
    return number


def seed_range(text: str) -> range:
    """Parse seeds: `N` gives 0 to N-1, `A-B` gives A to B."""
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal()):
        if text.isdecimal() and MOST < int(text) < 2**31:
            raise argparse.ArgumentTypeError(
                f"{text} is the number of seeds; write {text}-{text} for the one seed"
            )
        return range(count(text))
    if not int(first) <= int(last) < 2**31:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no range of seeds: write the first and the last, as in 100-111"
        )
    return range(int(first), int(last) + 1)


def seed_number(text: str) -> int:
    """Parse a seed of a random number generator, a whole number from 0."""
    if not text.isdecimal() or not int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def folder(text: str) -> Path:
    """Parse the path of a folder; an empty text, as from an unset variable, is refused."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty: name a folder, `.` for this one")
    return Path(text)


def data_folder(text: str) -> Path:
    """Parse the path of a folder that exists."""
    from vcl_radial.data.data_files import expanded

    path = folder(text)
    if not expanded(path).is_dir():
        raise argparse.ArgumentTypeError(f"{text}: is not a folder: create it or name another")
    return path


def add_methods(parser: argparse.ArgumentParser, help: str) -> None:
    """Add the argument `--method NAME|FILE ...`, stored in `options.methods`."""
    parser.add_argument(
        "--method",
        dest="methods",
        metavar="NAME|FILE",
        nargs="+",
        action="extend",
        default=[],
        help=help,
    )


def add_data_dir(parser: argparse.ArgumentParser, otherwise: str = "") -> None:
    """Add the argument `--data-dir DIR`; `otherwise` completes the help on its default."""
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        type=data_folder,
        help=f"the folder of the data (default: $VCL_RADIAL_DATA{otherwise})",
    )


def add_out(
    parser: argparse._ActionsContainer, default: str, help: str = "the folder of the results"
) -> None:
    """Add the argument `--out DIR`, the folder of results."""
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=folder,
        default=Path(default),
        help=f"{help} (default: %(default)s)",
    )


def add_device(parser: argparse._ActionsContainer) -> None:
    """Add the argument `--device`, for `runs.devices`."""
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="the device that trains (default: cuda if there is a GPU, else cpu)",
    )


def add_settings(parser: argparse._ActionsContainer, help: str) -> None:
    """Add the argument `--set KEY=VALUE ...`, stored in `options.settings`."""
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help=help,
    )


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Parse the keys and values of `--set`.

    Raises:
        UserError: a text is no `KEY=VALUE`, or its key belongs to an option, as `seed`, `methods`.
    """
    from vcl_radial.runs.planning import parse_settings

    settings = parse_settings(options.settings)
    for key in settings:
        for name in {key, f"{key}s"} & _OPTIONS.keys() & vars(options).keys():
            raise UserError(f"--set {key}: is no key of a recipe; use {_OPTIONS[name]}")
    return settings


def add_tuned(parser: argparse.ArgumentParser) -> None:
    """Add the argument `--tuned`."""
    parser.add_argument(
        "--tuned",
        action="store_true",
        help="use the tuned settings of each method for this benchmark, from a search or a paper: "
        "the table [tuned.BENCHMARK] of its .toml file (a file of your own is used as it is)",
    )
