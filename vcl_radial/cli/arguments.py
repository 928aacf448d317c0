"""Shared parts of commands: exit codes, argument types and arguments."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NoReturn

from vcl_radial.errors import UserError, visible
from vcl_radial.runs.devices import usable_device as usable_device  # noqa: PLC0414

MOST = 100_000
"""The largest number for options that count seeds, trials or jobs."""

DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130


class Parser(argparse.ArgumentParser):
    """A parser with one-line errors instead of the usage, and without abbreviated options."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **settings})

    def error(self, message: str) -> NoReturn:
        """Print the fault and exit with code 2."""
        lists = [a.option_strings[0] for a in self._actions if a.nargs == "+" and a.option_strings]
        if message.startswith("the following arguments are required") and lists:
            message += f"; put it before {', '.join(lists)}: they take all words that follow"
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


def add_list(parser: argparse._ActionsContainer, option: str, **settings: Any) -> None:
    """Add an argument that takes several values and may be repeated."""
    parser.add_argument(option, nargs="+", action="extend", default=[], **settings)


def add_methods(parser: argparse.ArgumentParser, help: str) -> None:
    """Add the argument `--method NAME|FILE ...`, stored in `options.methods`."""
    add_list(parser, "--method", dest="methods", metavar="NAME|FILE", help=help)


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
    add_list(parser, "--set", dest="settings", metavar="KEY=VALUE", help=help)


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Parse the keys and values of `--set`.

    Raises:
        UserError: a text is no `KEY=VALUE`, or a key has two values.
    """
    settings: dict[str, Any] = {}
    for text in options.settings:
        key, value = parse_setting(text)
        if key in settings:
            values = f"{settings[key]!r} and {value!r}"
            raise UserError(f"has two values, {values}; give one", at=f"--set {key}")
        settings[key] = value
    return settings


def parse_setting(text: str) -> tuple[str, Any]:
    """Parse `key=value` of the command line; the value is TOML, or else a plain string.

    Raises:
        UserError: there is no `=`, the text is not UTF-8, or the value is Python's True or False
            (both would be true as strings).
    """
    from vcl_radial.files.reading import parse_toml
    from vcl_radial.runs.catalogue import is_unicode

    key, equals, value = text.partition("=")
    if not is_unicode(text):
        raise UserError("is not valid UTF-8; write it in UTF-8", at=f"--set {text!a}")
    if not equals or not key.strip():
        raise UserError("write key=value, for example --set epochs=40", at=f"--set {text!r}")
    try:
        table = parse_toml(f"value = {value}")
    except ValueError:
        if value.strip() in ("True", "False"):
            raise UserError("write true or false, as in TOML", at=f"--set {text!r}") from None
        return key.strip(), value
    # More than one key: the value holds a line break, so it is not TOML but a plain string.
    return key.strip(), table["value"] if len(table) == 1 else value


def add_tuned(parser: argparse.ArgumentParser) -> None:
    """Add the argument `--tuned`."""
    parser.add_argument(
        "--tuned",
        action="store_true",
        help="use the tuned settings of each method for this benchmark, from a search or a paper: "
        "the table [tuned.BENCHMARK] of its .toml file (a .toml file of yours without such tables "
        "is used as it is)",
    )
