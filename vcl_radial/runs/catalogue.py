"""The catalogue of benchmarks, methods and sweeps: TOMLs by name, or a user's file by path."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vcl_radial.config import outside
from vcl_radial.config.installed import Offer, offer, offers
from vcl_radial.errors import UserError, nearest
from vcl_radial.files.reading import read_toml
from vcl_radial.runs import tracks
from vcl_radial.runs.keys import declared
from vcl_radial.runs.settings import UNNAMED_TABLE
from vcl_radial.runs.spec import DEFAULT_TRACK
from vcl_radial.runs.track import AnyTrack

Kind = Literal["benchmark", "method", "sweep"]

_PACKAGE = Path(__file__).parents[1]
_FOLDERS: dict[Kind, str] = {
    "benchmark": "benchmarks",
    "method": "baselines",
    "sweep": "benchmarks/sweeps",
}

_USE: Mapping[Kind, str] = {
    "benchmark": "`vcl-radial run {}`",
    "method": "`vcl-radial run BENCHMARK --method {}`",
    "sweep": "`vcl-radial sweep {}`",
}
"""The command that takes a file of this kind."""


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
        """A method's keys of a recipe, without the settings tuned for a benchmark."""
        not_recipe = ("description", "tuned", "chosen")
        return {key: value for key, value in self.table.items() if key not in not_recipe}


def folder(kind: Kind, track: str = DEFAULT_TRACK) -> Path:
    """The folder of the shipped TOMLs: inside an installed package, or beside it in a checkout.

    Every track but the default one has a separate folder of methods.
    """
    installed = _PACKAGE / _FOLDERS[kind]
    shipped = installed if installed.is_dir() else _PACKAGE.parent / _FOLDERS[kind]
    return shipped / track if kind == "method" and track != DEFAULT_TRACK else shipped


def names(kind: Kind, track: str = DEFAULT_TRACK) -> list[str]:
    """The shipped names of a kind; for methods, the names of a track's methods."""
    return sorted(path.stem for path in folder(kind, track).glob("*.toml"))


def list_benchmarks(track: str | None = None) -> dict[str, str]:
    """The shipped benchmarks by name, each with its description.

    Args:
        track: the one track to list: "continual", "retinopathy", "regression" or "bandits".
    """
    entries = [load("benchmark", name) for name in names("benchmark")]
    return {e.name: e.description for e in entries if track in (None, e.track)}


def list_methods(track: str = DEFAULT_TRACK) -> dict[str, str]:
    """The shipped methods of a track by name, each with its description.

    Args:
        track: "continual", whose methods other tracks take too, or a track with further methods.
    """
    return {name: load("method", name, track).description for name in names("method", track)}


def list_sweeps() -> dict[str, str]:
    """The shipped sweeps by name, each with its description."""
    return {name: load("sweep", name).description for name in names("sweep")}


def installed() -> list[Offer]:
    """The methods of installed packages, except those whose name a shipped method has."""
    strategies = [path.stem for path in (_PACKAGE / "methods").glob("*.py")]
    shipped = {*names("method"), *strategies}
    return [offer for offer in offers() if offer.name not in shipped]


def load(kind: Kind, name: str, track: str = DEFAULT_TRACK) -> Entry:
    """Load a TOML by its name, or a user's file by its path (ending in .toml).

    `name` is the name of a shipped TOML or of a method of an installed package. A package's recipe
    lies beside its class; by default its `strategy` is the method's name. If a track has no TOML of
    a method, the default track's TOML is used with this track's defaults and tuned settings. A
    user's file serves all tracks: keys that only other tracks know are left out, such as `epochs`
    where steps are counted. The folder of the file is searched for modules it names.

    Args:
        kind: the kind of TOML.
        name: a name or a path.
        track: the track of a method.

    Raises:
        UserError: the file is missing, not readable or not TOML, or its name is invalid.
    """
    path = _path(kind, name, track)
    if not is_unicode(path.stem):  # a spec holds it
        raise UserError("the file's name is not valid UTF-8; rename it", at=path)
    if not path.stem.strip("."):  # runs are filed under it
        raise UserError("the file's name is no name; rename it, for example to mine.toml", at=path)
    try:
        table = read_toml(path)
    except FileNotFoundError:
        raise UserError("there is no such file", at=path) from None
    except UnicodeDecodeError as error:
        raise UserError(f"cannot be read: {error}; write it in UTF-8", at=path) from None
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", at=path) from None
    except ValueError as error:  # not TOML, or a number beyond Python's limits
        raise UserError(f"not valid TOML: {error}", at=path) from None
    if name.endswith(".toml"):
        if table.keys() >= {"benchmark", "method", "seed", "recipe"} or "start" in table:
            raise UserError(f"is a record of results, not a {kind}; give its own file", at=path)
        check_kind(name, kind, kind_of(table))
        outside.add_search_path(path)
        if kind == "method":
            foreign = _foreign_keys(track)
            table = {key: value for key, value in table.items() if key not in foreign}
        return Entry(path.stem, path, table)
    if kind == "method" and path.parent != folder(kind, track):
        # A package's recipe is for the method of its name.
        table.setdefault("strategy", name)
        if track != DEFAULT_TRACK:
            method_keys = declared(_recipe_model(DEFAULT_TRACK), of="method")
            keys = {"description", "tuned", *method_keys.intersection(_recipe_keys(track))}
            table = {key: value for key, value in table.items() if key in keys}
    return Entry(path.stem, path, table)


def _foreign_keys(track: str) -> Collection[str]:
    """The recipe keys that other tracks know and this track does not."""
    all_keys = {key for other in tracks.names() for key in _recipe_keys(other)}
    return all_keys - {*_recipe_keys(track)}


def _recipe_keys(track: str) -> Collection[str]:
    """The keys of a track's recipes."""
    return keys_of(tracks.find(track))[UNNAMED_TABLE]


def _recipe_model(track: str) -> Any:
    """The model of a track's recipes."""
    return tracks.find(track).spec.model_fields[UNNAMED_TABLE].annotation


def keys_of(track: AnyTrack) -> dict[str, Collection[str]]:
    """The keys of a track's two tables, by the name of the table."""
    fields = track.spec.model_fields
    models = {name: fields[name].annotation for name in (track.spec.DATA, UNNAMED_TABLE)}
    return {name: getattr(model, "model_fields", {}).keys() for name, model in models.items()}


def _path(kind: Kind, name: str, track: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    if name in names(kind, track):
        return folder(kind, track) / f"{name}.toml"
    elsewhere = kind == "method" and (track == DEFAULT_TRACK or "strategy" in _recipe_keys(track))
    if elsewhere and name in names(kind):
        return folder(kind) / f"{name}.toml"
    offered_names = installed() if elsewhere else []
    offered = offer(name) if name in {other.name for other in offered_names} else None
    if offered is not None and offered.recipe is not None:
        return offered.recipe
    if offered is not None or (kind == "method" and outside.is_named(name)):
        package = f" of the package {offered.package}" if offered else ""
        raise UserError(
            f"{name!r} is a strategy{package} without a recipe: write one with strategy = {name!r}"
            ", and give the path of the .toml file"
        )
    check_name(name, kind, track)
    known = [*names(kind, track), *(other.name for other in offered_names if other.recipe)]
    if elsewhere and track != DEFAULT_TRACK:
        known += names(kind)
    suffix = f" of {track}" if kind == "method" and track != DEFAULT_TRACK else ""
    near = f"the nearest is {nearest(name, known)!r} (see `vcl-radial list`, or " if known else "("
    raise UserError(f"unknown {kind}{suffix} {name!r}; {near}give the path of a .toml file)")


def kind_of(table: Mapping[str, Any]) -> Kind | None:
    """The kind of a file with these keys; None where they do not decide it."""
    if "search" in table:
        return "sweep"
    if table.keys() & {"stream", "data", "track"}:
        return "benchmark"
    return "method" if table.keys() & {"strategy", "posterior", "options"} else None


def check_kind(name: str, expected: Kind, actual: Kind | None) -> None:
    """Raise if a name or a file is known to be of another kind.

    Raises:
        UserError: the kinds differ; the message names the command that takes it.
    """
    if actual is not None and actual != expected:
        use = _USE[actual].format(name)
        raise UserError(f"is a {actual}, not a {expected}: {use} takes it", at=name)


def check_name(name: str, kind: Kind, track: str, user: str = "this benchmark") -> None:
    """Raise if the name belongs to another kind.

    Args:
        name: the name that is not known as this kind.
        kind: the kind that is expected.
        track: the track of a method.
        user: what uses the method, for the message.

    Raises:
        UserError: another kind has this name, or a method of other tracks.
    """
    known = {k: [t for t in tracks.names() if name in names(k, t)] for k in _FOLDERS}
    check_kind(name, kind, next((k for k in _FOLDERS if known[k]), None))
    if other_tracks := known["method"]:
        raise UserError(
            f"{name!r} is a method of {' and '.join(other_tracks)}, and {user} takes those of "
            f"{track} (see `vcl-radial list`)"
        )


def is_unicode(text: str) -> bool:
    """Whether a text is valid Unicode: no character is a surrogate for an undecodable byte."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def track_of(benchmark: Entry) -> AnyTrack:
    """The track of a benchmark.

    Raises:
        UserError: there is no such track.
    """
    try:
        return tracks.find(benchmark.track)
    except UserError as error:
        raise UserError(str(error), at=benchmark.path) from None


def check_keys(entry: Entry, known: Collection[str], inner: Mapping[str, Collection[str]]) -> None:
    """Check that a TOML has known keys only.

    Args:
        entry: the TOML.
        known: known keys at its top.
        inner: known keys of its tables, by the table's name.

    Raises:
        UserError: a key is unknown.
    """
    for key in sorted(entry.table.keys() - set(known)):
        if tables := [f"[{name}]" for name, keys in inner.items() if key in keys]:
            raise UserError(
                f"{key!r} is a key of a table: write it below {' or '.join(tables)}", at=entry.path
            )
        raise UserError(
            f"unknown key {key!r}; the nearest known one is {nearest(key, known)!r}", at=entry.path
        )


def section(entry: Entry, *keys: str) -> Mapping[str, Any]:
    """A table within a TOML; empty where it is missing.

    Raises:
        UserError: the value is not a table.
    """
    table: Any = entry.table
    for key in keys:
        table = table.get(key, {})
        if not isinstance(table, dict):
            name = ".".join(keys)
            raise UserError(f"{name!r} must be a table, [{name}]", at=entry.path)
    return table  # type: ignore[no-any-return]
