"""Plan the runs of a command: methods x seeds on a benchmark, with validated settings."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.runs.catalogue import Entry, check_keys, folder, keys_of, load, section, track_of
from vcl_radial.runs.settings import UNNAMED_TABLE, tables_in
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import AnyTrack

if TYPE_CHECKING:
    from vcl_radial.methods.base import Method

NamedMethod: TypeAlias = Union[str, "type[Method]"]
"""A name, the path of a .toml file, or a user's class."""


def plan(
    benchmark: str,
    methods: Sequence[NamedMethod],
    seeds: Sequence[int],
    settings: Mapping[str, Any] | None = None,
    tuned: bool = False,
) -> list[Any]:
    """Plan the runs of a command: methods x seeds on one benchmark, validated before any starts.

    Keys of `settings` are keys of a recipe (`options.key` for an option of the method), keys of
    the track's data as `stream.key` or `data.key`, or `evaluate_on`. Later values replace earlier
    ones: the method's TOML, the benchmark's recipe, with `tuned` the settings that a search
    selected for the method on this benchmark (table [tuned.BENCHMARK] of the method's TOML, see
    `tuned_keys`), then `settings`.

    Args:
        benchmark: a name or a path.
        methods: names, paths or classes; if empty, the methods of the benchmark or its track.
        seeds: seeds of the runs; a track may make several runs per seed, such as one per table.
        settings: keys and values that replace values of the TOMLs.
        tuned: whether tuned settings are used.

    Raises:
        UserError: a name or key is unknown, a value impossible, two methods share a name, or a
            method was not tuned on the benchmark.
    """
    bench = load("benchmark", benchmark)
    track = track_of(bench)
    table_of_data = track.spec.DATA
    file_keys = {"description", "track", "methods", table_of_data, "recipe", "evaluate_on"}
    check_keys(bench, file_keys, keys_of(track))
    overrides = _by_table(settings or {}, track)
    data = {**section(bench, table_of_data), **overrides[table_of_data]}
    evaluate_on = overrides["run"].get("evaluate_on", bench.table.get("evaluate_on", "test"))
    entries = _methods(methods or _methods_of(bench, track), track)
    beside = bench.path if benchmark.endswith(".toml") else None
    runs: list[RunSpec] = []
    for method in entries:
        layers = [section(bench, "recipe")]
        if tuned:
            layers.append(section(method, *tuned_keys(method, bench.name)))
        recipe = merged(method.recipe, *layers, overrides["recipe"])
        tables = {"benchmark": bench.name, "method": method.name, "evaluate_on": evaluate_on}
        tables |= {table_of_data: data, "recipe": recipe}
        for seed in seeds:
            for variant in track.variants({**tables, "seed": seed}, beside):
                run_tables = _with_chosen(variant, method, track, overrides)
                runs.append(track.validated(run_tables))
    return runs


def _with_chosen(
    tables: Mapping[str, Any], method: Entry, track: AnyTrack, overrides: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The tables of a run with the settings chosen for its seed, then the command's settings.

    Raises:
        UserError: the method has settings per seed, but none for this seed.
    """
    if "chosen" not in method.table:
        return tables
    key = track.selection_unit(tables)
    if key not in section(method, "chosen"):
        raise UserError(
            f"has no settings for {key} (no table [chosen.{key!r}]); search for "
            "them with a sweep of as many seeds",
            at=method.path,
        )
    layers = section(method, "chosen", key), overrides["recipe"]
    return {**tables, "recipe": merged(tables["recipe"], *layers)}


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """The values of tables; a later value replaces an earlier one, key by key in inner tables."""
    table: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            inner = isinstance(value, dict) and isinstance(table.get(key), dict)
            table[key] = table[key] | value if inner else value
    return table


def _methods_of(bench: Entry, track: AnyTrack) -> list[str]:
    """The methods that a benchmark compares by default; paths are relative to its file.

    Raises:
        UserError: the value is not a list of names.
    """
    methods = bench.table.get("methods", list(track.methods))
    if not (isinstance(methods, list) and methods and all(isinstance(m, str) for m in methods)):
        raise UserError(f"methods = {methods!r}: give a list of names", at=bench.path)
    return [str(bench.path.parent / m) if m.endswith(".toml") else m for m in methods]


def recipe_of(benchmark: str) -> dict[str, Any]:
    """The recipe keys that a benchmark sets for all methods, without options."""
    recipe = section(load("benchmark", benchmark), "recipe")
    return {key: value for key, value in recipe.items() if key != "options"}


def entry_of(method: type[Method]) -> Entry:
    """The catalogue entry of a class: its strategy, and a posterior that it serves."""
    table = {"strategy": outside.name_of("methods", method)}
    served: frozenset[str] = getattr(method, "posteriors", frozenset())
    if served and "radial" not in served:
        table["posterior"] = "none" if "none" in served else min(served)
    file = getattr(sys.modules[method.__module__], "__file__", None)
    return Entry(method.__name__, Path(file or method.__module__), table)


def _methods(names: Sequence[NamedMethod], track: AnyTrack) -> list[Entry]:
    """The TOMLs of methods, without duplicates.

    Raises:
        UserError: a TOML is missing, has no keys or is a benchmark, or two share a name.
    """
    entries: dict[str, Entry] = {}
    has_strategies = "strategy" in keys_of(track)["recipe"]  # false for a track with one method
    for name in names:
        method = load("method", name, track.name) if isinstance(name, str) else entry_of(name)
        if has_strategies and not method.table.keys() - {"description"}:
            raise UserError(
                f'{method.path}: has no keys: name a method at least, as in strategy = "vcl"'
            )
        first = entries.setdefault(method.name, method)
        if first.path.resolve() != method.path.resolve():  # the name is part of the results' path
            raise UserError(
                f"{first.path} and {method.path}: two methods of one name; rename one of the files"
            )
    return list(entries.values())


def tuned_keys(method: Entry, benchmark: str) -> tuple[str, str]:
    """The keys of the table with the settings that a search selected for a benchmark.

    A user's file without any tuned settings is used as it is: the table is empty.

    Raises:
        UserError: there is no such table.
    """
    tables = section(method, "tuned")
    shipped = method.path.resolve().is_relative_to(folder("method").resolve())
    if benchmark not in tables and (tables or shipped):
        raise UserError(
            f"was not tuned on {benchmark} (it has no table [tuned.{benchmark}]); "
            "find its settings with a sweep, or run it without tuned settings",
            at=method.path,
        )
    return "tuned", benchmark


def _by_table(settings: Mapping[str, Any], track: AnyTrack) -> dict[str, dict[str, Any]]:
    """Group the settings of a command by their table; keys of a recipe have no dot.

    Raises:
        UserError: a key names a whole table.
    """
    data = track.spec.DATA
    inner = tables_in(track.spec.model_fields[UNNAMED_TABLE].annotation)
    tables: dict[str, dict[str, Any]] = {name: {} for name in (data, UNNAMED_TABLE, "run")}
    for key, value in settings.items():
        table, dot, name = key.partition(".")
        if dot and table == data:
            tables[data][name] = value
        elif dot and table in inner:
            tables[UNNAMED_TABLE].setdefault(table, {})[name] = value
        elif key == "evaluate_on":
            tables["run"][key] = value
        elif key in (data, *inner):
            raise UserError(f"is a table; name one key of it, as in {key}.KEY", at=key)
        else:
            tables[UNNAMED_TABLE][key] = value
    return tables
