"""The benchmarks and methods there are: TOMLs by name, and a user's own by path."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from vcl_radial import outside
from vcl_radial.errors import UserError
from vcl_radial.tracks.continual.specification import Run, validated
from vcl_radial.installed import Offer, offer, offers

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = {"benchmark": "benchmarks", "method": "baselines"}
_BENCHMARK_KEYS = {"description", "stream", "recipe", "evaluate_on"}


@dataclass(frozen=True)
class Entry:
    """A TOML file of the catalogue."""

    name: str
    path: Path
    table: dict[str, Any]

    @property
    def description(self) -> str:
        """One line about it."""
        return str(self.table.get("description", ""))

    @property
    def recipe(self) -> dict[str, Any]:
        """A method's keys of a recipe, before what was tuned for a benchmark."""
        return {k: v for k, v in self.table.items() if k not in ("description", "tuned")}


def folder(kind: str) -> Path:
    """Where the shipped TOMLs lie: inside an installed package, or beside it in a checkout."""
    installed = _PACKAGE / _FOLDERS[kind]
    return installed if installed.is_dir() else _PACKAGE.parent / _FOLDERS[kind]


def names(kind: str) -> list[str]:
    """The shipped names of a kind ("benchmark" or "method")."""
    return sorted(path.stem for path in folder(kind).glob("*.toml"))


def installed() -> list[Offer]:
    """The methods of installed packages, but for those whose name the suite has itself."""
    strategies = [path.stem for path in (_PACKAGE / "strategies").glob("*.py")]
    own = {*names("method"), *strategies}
    return [each for each in offers() if each.name not in own]


def load(kind: str, name: str) -> Entry:
    """A TOML by its name, or a user's own by its path (ending in .toml).

    A name is that of a shipped one, or for a method that of an installed package's, whose recipe
    lies beside its class, and has its strategy unless it says so itself. Modules that a user's own
    file names are sought beside it.

    Raises:
        UserError: it is not there, not readable or not TOML, or its name is no name or not UTF-8.
    """
    path = _path(kind, name)
    if not _is_unicode(path.stem):  # a spec holds it
        raise UserError(f"{path}: the file's name is not valid UTF-8; rename it")
    if not path.stem.strip("."):  # runs are filed under it
        raise UserError(f"{path}: the file's name is no name; rename it, for example to mine.toml")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    except ValueError as error:  # not TOML, or a number beyond Python's limits
        raise UserError(f"{path}: not valid TOML: {error}") from None
    if name.endswith(".toml"):
        outside.seek_beside(path)
    elif kind == "method" and path.parent != folder(kind):
        # A package's recipe is one of the method that it is offered for.
        table.setdefault("strategy", name)
    return Entry(path.stem, path, table)


def _path(kind: str, name: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    if name in names(kind):
        return folder(kind) / f"{name}.toml"
    theirs = installed() if kind == "method" else []
    offered = offer(name) if name in {each.name for each in theirs} else None
    if offered is not None and offered.recipe is not None:
        return offered.recipe
    if offered is not None or (kind == "method" and outside.is_named(name)):
        whose = f" of the package {offered.package}" if offered else ""
        raise UserError(
            f"{name!r} is a strategy{whose} without a recipe: write one with strategy = {name!r}, "
            "and give the path of the .toml file"
        )
    known = [*names(kind), *(each.name for each in theirs if each.recipe)]
    nearest = get_close_matches(name, known, 1, cutoff=0.0)[0]
    raise UserError(
        f"unknown {kind} {name!r}; the nearest is {nearest!r} (see `vcl-radial list`, or give "
        "the path of a .toml file)"
    )


def parse_setting(text: str) -> tuple[str, Any]:
    """`key=value` of the command line; the value is TOML, or else a plain string.

    Raises:
        UserError: there is no `=`, what the shell passed on is not UTF-8, or the value is Python's
            True or False, which as a string would be true both times.
    """
    key, equals, value = text.partition("=")
    if not _is_unicode(text):
        raise UserError(f"--set {text!a}: is not valid UTF-8; write it in UTF-8")
    if not equals or not key.strip():
        raise UserError(f"--set {text!r}: write key=value, for example --set epochs=40")
    try:
        table = tomllib.loads(f"value = {value}")
    except ValueError:
        if value.strip() in ("True", "False"):
            raise UserError(f"--set {text!r}: write true or false, as in TOML") from None
        return key.strip(), value
    # More than one key: the value holds a line break, which no TOML value on one line does.
    return key.strip(), table["value"] if len(table) == 1 else value


def _is_unicode(text: str) -> bool:
    """Whether it has no code that stands for a byte of another encoding."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def plan(
    benchmark: str,
    methods: Sequence[str],
    seeds: Sequence[int],
    settings: Mapping[str, Any] | None = None,
    tuned: bool = False,
) -> list[Run]:
    """The runs of a command: methods x seeds on one benchmark, validated before any starts.

    Keys of `settings` are those of a recipe (`options.key` for the method's own), `stream.key`, or
    `evaluate_on`. They come last; before them the benchmark's own recipe, and with `tuned` what a
    search found for the method on this benchmark, the table [tuned.BENCHMARK] of its TOML
    (`tuned_keys`).

    Raises:
        UserError: a name or key is unknown, a value impossible, two methods share a name, or a
            method was not tuned on the benchmark.
    """
    bench = load("benchmark", benchmark)
    check_keys(bench, _BENCHMARK_KEYS)
    stream = dict(section(bench, "stream"))
    evaluate_on = bench.table.get("evaluate_on", "test")
    overrides: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in (settings or {}).items():
        if key.startswith("stream."):
            stream[key.removeprefix("stream.")] = value
        elif key.startswith("options."):
            options[key.removeprefix("options.")] = value
        elif key == "evaluate_on":
            evaluate_on = value
        elif key == "options":
            raise UserError("--set options: name one option, for example --set options.strength=3")
        else:
            overrides[key] = value
    entries: dict[str, Entry] = {}
    for name in methods:
        method = load("method", name)
        other = entries.setdefault(method.name, method)
        if other.path.resolve() != method.path.resolve():  # results are filed under the name
            raise UserError(
                f"{other.path} and {method.path}: two methods of one name; rename one of the files"
            )
    runs = []
    for method in entries.values():
        recipe = method.recipe
        chosen = dict(section(method, "options"))
        over: list[tuple[Entry, tuple[str, ...]]] = [(bench, ("recipe",))]
        if tuned:
            over.append((method, tuned_keys(method, bench.name)))
        for entry, keys in over:
            recipe |= section(entry, *keys)
            chosen |= section(entry, *keys, "options")
        recipe |= overrides | {"options": chosen | options}
        runs += [
            validated(bench.name, method.name, seed, stream, recipe, evaluate_on) for seed in seeds
        ]
    return runs


def check_keys(entry: Entry, known: Collection[str]) -> None:
    """See that a TOML has known keys only.

    Raises:
        UserError: it has another one.
    """
    for key in sorted(entry.table.keys() - set(known)):
        nearest = get_close_matches(key, known, 1, cutoff=0.0)[0]
        raise UserError(f"{entry.path}: unknown key {key!r}; the nearest known one is {nearest!r}")


def tuned_keys(method: Entry, benchmark: str) -> tuple[str, str]:
    """The keys of the table that holds what a search found for a method on a benchmark.

    A file of the user's own that was tuned on nothing is taken as it stands: the table is empty.

    Raises:
        UserError: there is no such table.
    """
    tables = section(method, "tuned")
    shipped = method.path.resolve().is_relative_to(folder("method").resolve())
    if benchmark not in tables and (tables or shipped):
        raise UserError(
            f"{method.path}: was not tuned on {benchmark} (it has no table [tuned.{benchmark}]); "
            "find its settings with `vcl-radial sweep`, or leave --tuned out"
        )
    return "tuned", benchmark


def section(entry: Entry, *keys: str) -> Mapping[str, Any]:
    """A table within a TOML; empty where there is none.

    Raises:
        UserError: there is something else in its place.
    """
    table: Any = entry.table
    for key in keys:
        table = table.get(key, {})
        if not isinstance(table, dict):
            name = ".".join(keys)
            raise UserError(f"{entry.path}: {name!r} must be a table, [{name}]")
    return table  # type: ignore[no-any-return]
