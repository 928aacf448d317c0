"""The benchmarks, methods and sweeps there are: TOMLs by name, and a user's own by path."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcl_radial import outside
from vcl_radial.errors import UserError, nearest
from vcl_radial.installed import Offer, offer, offers
from vcl_radial.runs import tracks
from vcl_radial.runs.kinds import Kind, check_kind, kind_of
from vcl_radial.runs.spec import DEFAULT_TRACK, RunSpec
from vcl_radial.runs.track import AnyTrack

_PACKAGE = Path(__file__).parents[1]
_FOLDERS: dict[Kind, str] = {
    "benchmark": "benchmarks",
    "method": "baselines",
    "sweep": "benchmarks/sweeps",
}

RENAMED = {
    "synthetic": "retinopathy-synthetic",
    "synthetic-cameras": "retinopathy-synthetic-cameras",
    "idrid": "retinopathy-idrid",
    "eyepacs": "retinopathy-eyepacs",
    "tune-referral": "tune-retinopathy",
}
"""Names of before, and those of today; a track has those of its methods."""

_WHAT_A_METHOD_IS = (
    "description",
    "tuned",
    "strategy",
    "posterior",
    "grouping",
    "initial_rho",
    "initial_noise",
    "prior_length",
    "options",
)
"""Keys of a method's TOML that hold in every track; the others say how it trains in one."""


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
    def track(self) -> str:
        """The name of a benchmark's track."""
        return str(self.table.get("track", DEFAULT_TRACK))

    @property
    def recipe(self) -> dict[str, Any]:
        """A method's keys of a recipe, before what was tuned for a benchmark."""
        others = ("description", "tuned", "chosen")
        return {key: value for key, value in self.table.items() if key not in others}


def folder(kind: Kind, track: str = DEFAULT_TRACK) -> Path:
    """Where the shipped TOMLs lie: inside an installed package, or beside it in a checkout.

    The methods of every track but the default one have a folder of their own.
    """
    installed = _PACKAGE / _FOLDERS[kind]
    shipped = installed if installed.is_dir() else _PACKAGE.parent / _FOLDERS[kind]
    return shipped / track if kind == "method" and track != DEFAULT_TRACK else shipped


def names(kind: Kind, track: str = DEFAULT_TRACK) -> list[str]:
    """The shipped names of a kind; methods are those of a track."""
    return sorted(path.stem for path in folder(kind, track).glob("*.toml"))


def installed() -> list[Offer]:
    """The methods of installed packages, but for those whose name the suite has itself."""
    strategies = [path.stem for path in (_PACKAGE / "methods").glob("*.py")]
    shipped = {*names("method"), *strategies}
    return [offer for offer in offers() if offer.name not in shipped]


def load(kind: Kind, name: str, track: str = DEFAULT_TRACK) -> Entry:
    """A TOML by its name, or a user's own by its path (ending in .toml).

    A name is that of a shipped one, or for a method that of an installed package's, whose recipe
    lies beside its class, and has its strategy unless it says so itself. A method that has no TOML
    in a track is that of the default track, trained by the track's own defaults and by what was
    tuned for the track's benchmarks. A user's own file serves all tracks: keys of other tracks'
    recipes are left out, such as `epochs` where steps are counted. Modules that it names are sought
    beside it.

    Args:
        kind: of the TOML.
        name: a name or a path.
        track: of a method.

    Raises:
        UserError: it is not there, not readable or not TOML, or its name is no name or not UTF-8.
    """
    path = _path(kind, name, track)
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
        check_kind(name, kind, kind_of(table))
        outside.seek_beside(path)
        if kind == "method":
            of_others = _keys_of_others(track)
            table = {key: value for key, value in table.items() if key not in of_others}
        return Entry(path.stem, path, table)
    if kind == "method" and path.parent != folder(kind, track):
        # A package's recipe is one of the method that it is offered for.
        table.setdefault("strategy", name)
        if track != DEFAULT_TRACK:
            keys = {"description", "tuned", *_recipe_keys(track)} & {*_WHAT_A_METHOD_IS}
            table = {key: value for key, value in table.items() if key in keys}
    return Entry(path.stem, path, table)


def _keys_of_others(track: str) -> Collection[str]:
    """The keys that recipes of other tracks have, and those of a track have not."""
    of_others = {key for other in tracks.names() for key in _recipe_keys(other)}
    return of_others - {*_recipe_keys(track)}


def _recipe_keys(track: str) -> Collection[str]:
    """The keys of a track's recipes."""
    recipe = tracks.find(track).spec.model_fields["recipe"].annotation
    return getattr(recipe, "model_fields", {}).keys()


def _path(kind: Kind, name: str, track: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    if name in names(kind, track):
        return folder(kind, track) / f"{name}.toml"
    renamed = tracks.find(track).renamed if kind == "method" else RENAMED
    if name in renamed and renamed[name] in names(kind, track):
        raise UserError(f"the {kind} {name!r} is called {renamed[name]!r} now")
    elsewhere = kind == "method" and (track == DEFAULT_TRACK or "strategy" in _recipe_keys(track))
    if elsewhere and name in names(kind):
        return folder(kind) / f"{name}.toml"
    offered_names = installed() if elsewhere else []
    offered = offer(name) if name in {other.name for other in offered_names} else None
    if offered is not None and offered.recipe is not None:
        return offered.recipe
    if offered is not None or (kind == "method" and outside.is_named(name)):
        whose = f" of the package {offered.package}" if offered else ""
        raise UserError(
            f"{name!r} is a strategy{whose} without a recipe: write one with strategy = {name!r}, "
            "and give the path of the .toml file"
        )
    check_kind(name, kind, next((k for k in _FOLDERS if name in names(k)), None))
    known = [*names(kind, track), *(other.name for other in offered_names if other.recipe)]
    if elsewhere and track != DEFAULT_TRACK:
        known += names(kind)
    of_track = f" of {track}" if kind == "method" and track != DEFAULT_TRACK else ""
    near = f"the nearest is {nearest(name, known)!r} (see `vcl-radial list`, or " if known else "("
    raise UserError(f"unknown {kind}{of_track} {name!r}; {near}give the path of a .toml file)")


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


def track_of(benchmark: Entry) -> AnyTrack:
    """The track of a benchmark.

    Raises:
        UserError: there is no such track.
    """
    if "track" not in benchmark.table and "data" in benchmark.table:
        raise UserError(
            f"{benchmark.path}: has a table [data], so name its track, for example "
            f'track = "{tracks.names()[-1]}"; a stream of images has a table [stream]'
        )
    try:
        return tracks.find(benchmark.track)
    except UserError as error:
        raise UserError(f"{benchmark.path}: {error}") from None


def plan(
    benchmark: str,
    methods: Sequence[str],
    seeds: Sequence[int],
    settings: Mapping[str, Any] | None = None,
    tuned: bool = False,
) -> list[Any]:
    """The runs of a command: methods x seeds on one benchmark, validated before any starts.

    Keys of `settings` are those of a recipe (`options.key` for the method's own), those of the
    track's data as `stream.key` or `data.key`, or `evaluate_on`. They come last; before them the
    benchmark's own recipe, and with `tuned` what a search found for the method on this benchmark,
    the table [tuned.BENCHMARK] of its TOML (`tuned_keys`).

    Args:
        benchmark: a name or a path.
        methods: names or paths; where there are none, those of the benchmark, or of its track.
        seeds: a run for each; a track may make several of one, as of several tables.
        settings: keys and values in place of the TOMLs'.
        tuned: see above.

    Raises:
        UserError: a name or key is unknown, a value impossible, two methods share a name, or a
            method was not tuned on the benchmark.
    """
    bench = load("benchmark", benchmark)
    track = track_of(bench)
    table_of_data = track.spec.DATA
    check_keys(bench, {"description", "track", "methods", table_of_data, "recipe", "evaluate_on"})
    given = _by_table(settings or {}, table_of_data)
    data = {**section(bench, table_of_data), **given[table_of_data]}
    evaluate_on = given["run"].get("evaluate_on", bench.table.get("evaluate_on", "test"))
    entries = _methods(methods or _methods_of(bench, track), track)
    beside = bench.path if benchmark.endswith(".toml") else None
    runs: list[RunSpec] = []
    for method in entries:
        recipe = method.recipe
        options = dict(section(method, "options"))
        over: list[tuple[Entry, tuple[str, ...]]] = [(bench, ("recipe",))]
        if tuned:
            over.append((method, tuned_keys(method, bench.name)))
        for entry, keys in over:
            recipe |= section(entry, *keys)
            options |= section(entry, *keys, "options")
        recipe |= given["recipe"]
        if options or given["options"]:
            recipe["options"] = options | given["options"]
        tables = {"benchmark": bench.name, "method": method.name, "evaluate_on": evaluate_on}
        tables |= {table_of_data: data, "recipe": recipe}
        for seed in seeds:
            for variant in track.variants({**tables, "seed": seed}, beside):
                runs.append(track.validated(_with_chosen(variant, method, track, given)))
    return runs


def _with_chosen(
    tables: Mapping[str, Any], method: Entry, track: AnyTrack, given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The tables of a run with what was chosen for its seed alone; a command's settings come last.

    Raises:
        UserError: a method that has such settings has none for this seed.
    """
    if "chosen" not in method.table:
        return tables
    key = track.chosen_key(tables)
    if key not in section(method, "chosen"):
        raise UserError(
            f"{method.path}: has no settings for {key} (no table [chosen.{key!r}]); search for "
            "them with a sweep of as many seeds"
        )
    recipe, chosen = tables["recipe"], section(method, "chosen", key)
    options = {**recipe.get("options", {}), **chosen.get("options", {}), **given["options"]}
    recipe = {**recipe, **chosen, **given["recipe"], **({"options": options} if options else {})}
    return {**tables, "recipe": recipe}


def _methods_of(bench: Entry, track: AnyTrack) -> list[str]:
    """What a benchmark compares where no method is named; files are sought beside its own.

    Raises:
        UserError: it is no list of names.
    """
    methods = bench.table.get("methods", list(track.methods))
    if not (isinstance(methods, list) and methods and all(isinstance(m, str) for m in methods)):
        raise UserError(f"{bench.path}: methods = {methods!r}: give a list of names")
    return [str(bench.path.parent / m) if m.endswith(".toml") else m for m in methods]


def recipe_of(benchmark: str) -> dict[str, Any]:
    """The keys of a recipe that a benchmark sets itself, whatever the method; without options."""
    recipe = section(load("benchmark", benchmark), "recipe")
    return {key: value for key, value in recipe.items() if key != "options"}


def _by_table(settings: Mapping[str, Any], table_of_data: str) -> dict[str, dict[str, Any]]:
    """Settings of a command by the table that they are of; those of a recipe have no dot.

    Raises:
        UserError: a key is a whole table.
    """
    tables: dict[str, dict[str, Any]] = {
        name: {} for name in (table_of_data, "options", "recipe", "run")
    }
    for key, value in settings.items():
        table, dot, inner = key.partition(".")
        if dot and table in (table_of_data, "options"):
            tables[table][inner] = value
        elif key == "evaluate_on":
            tables["run"][key] = value
        elif key in ("options", table_of_data):
            raise UserError(f"--set {key}: is a table; name one key of it, --set {key}.KEY=VALUE")
        else:
            tables["recipe"][key] = value
    return tables


def _methods(names: Sequence[str], track: AnyTrack) -> list[Entry]:
    """The TOMLs of methods, each of them once.

    Raises:
        UserError: one is not there, or two share a name.
    """
    entries: dict[str, Entry] = {}
    for name in names:
        method = load("method", name, track.name)
        other = entries.setdefault(method.name, method)
        if other.path.resolve() != method.path.resolve():  # results are filed under the name
            raise UserError(
                f"{other.path} and {method.path}: two methods of one name; rename one of the files"
            )
    return list(entries.values())


def check_keys(entry: Entry, known: Collection[str]) -> None:
    """See that a TOML has known keys only.

    Raises:
        UserError: it has another one.
    """
    for key in sorted(entry.table.keys() - set(known)):
        raise UserError(
            f"{entry.path}: unknown key {key!r}; the nearest known one is {nearest(key, known)!r}"
        )


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
