"""What there is to say of a method, a benchmark or a sweep: for `list NAME` and for the site."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from vcl_radial.config import ranges
from vcl_radial.errors import UserError, nearest
from vcl_radial.runs import catalogue, tracks
from vcl_radial.runs.catalogue import Entry, Kind

WIDTH = 100


@dataclass(frozen=True)
class Option:
    """A key of a recipe, or of its [options].

    Attributes:
        key: the key.
        values: what its value must be; empty if this cannot be said in a line.
        default: its default as TOML; empty if the key is required or its default is to have none.
        meaning: its description.
    """

    key: str
    values: str
    default: str
    meaning: str


@dataclass(frozen=True)
class About:
    """A shipped benchmark or sweep.

    Attributes:
        kind: "benchmark", "sweep" or "method".
        name: its name.
        description: one line.
        command: the command that takes it.
        files: its TOMLs as they are, by track; those of methods may be several.
    """

    kind: Kind
    name: str
    description: str
    command: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class AboutMethod(About):
    """A shipped method.

    Attributes:
        strategy: the file of `vcl_radial.methods`, or "" for a rule that no file of it has.
        explanation: the docstring of that file: equation and source.
        carries: what it keeps from task to task.
        posteriors: the families that it takes; empty for all, and for point estimates too.
        options: what it takes beyond the keys of every recipe.
        gaps: for each track the reason why it does not run there; empty if it does.
        tuned: the benchmarks with settings of their own, for `--tuned`.
    """

    strategy: str
    explanation: str
    carries: str
    posteriors: list[str]
    options: list[Option]
    gaps: Mapping[str, str]
    tuned: list[str]

    @property
    def families(self) -> str:
        """The posteriors in words."""
        if not self.posteriors:
            return "any, and point estimates"
        words = {"none": "point estimates (none)", "any": "any"}
        return ", ".join(words.get(name, name) for name in self.posteriors)


def names() -> dict[str, Kind]:
    """Every shipped name with its kind."""
    methods = {name for track in tracks.names() for name in catalogue.names("method", track)}
    return {
        **dict.fromkeys(catalogue.names("sweep"), "sweep"),
        **dict.fromkeys(catalogue.names("benchmark"), "benchmark"),
        **dict.fromkeys(sorted(methods), "method"),
    }


def about(name: str) -> About:
    """What there is to say of a shipped name; the first method imports PyTorch.

    Raises:
        UserError: nothing has this name.
    """
    kind = names().get(name)
    if kind is None:
        raise UserError(f"{name!r} is not shipped; the nearest is {nearest(name, names())!r}")
    if kind == "method":
        return _about_method(name)
    entry = catalogue.load(kind, name)
    command = f"vcl-radial {'run' if kind == 'benchmark' else 'sweep'} {name}"
    if kind == "benchmark" and _tuned_for(name):
        command += " --tuned"
    return About(kind, name, entry.description, command, {entry.track: _text(entry)})


def _about_method(name: str) -> AboutMethod:
    from vcl_radial.conformance.in_tracks import gap
    from vcl_radial.methods.registry import built_in, find_method

    tracks_with_file = [t for t in tracks.names() if name in catalogue.names("method", t)]
    entries = {track: catalogue.load("method", name, track) for track in tracks_with_file}
    first = next(iter(entries.values()))
    strategy = str(first.recipe.get("strategy", "vcl"))
    known = strategy in built_in()
    cls = find_method(strategy) if known else None
    gaps = {
        track: gap(track, name)
        if track in entries or name in catalogue.names("method")
        else f"its recipe is for {' and '.join(entries)} alone"
        for track in tracks.names()
    }
    benchmark = next(n for n, b in _benchmarks().items() if not gaps[b.track])
    return AboutMethod(
        kind="method",
        name=name,
        description=first.description,
        command=f"vcl-radial run {benchmark} --method {name}",
        files={track: _text(entry) for track, entry in entries.items()},
        strategy=strategy if known else "",
        explanation=inspect.getdoc(sys.modules[cls.__module__]) or "" if cls else "",
        carries=cls.carries if cls else "nothing",
        posteriors=sorted(cls.posteriors) if cls else [],
        options=list(options_of(cls)) if cls else [],
        gaps=gaps,
        tuned=sorted({b for entry in entries.values() for b in entry.table.get("tuned", {})}),
    )


def _benchmarks() -> dict[str, Entry]:
    """The shipped benchmarks; those that need no files first."""
    entries = {name: catalogue.load("benchmark", name) for name in catalogue.names("benchmark")}
    first = "split-digits-multi-head", "retinopathy-synthetic", "diabetes", "bandit-mushroom"
    return {name: entries[name] for name in (*first, *entries)}


def _text(entry: Entry) -> str:
    return entry.path.read_text(encoding="utf-8")


def _tuned_for(benchmark: str) -> bool:
    files = [(name, track) for track in tracks.names() for name in catalogue.names("method", track)]
    entries = (catalogue.load("method", *file) for file in files)
    return any(benchmark in entry.table.get("tuned", {}) for entry in entries)


def options_of(cls: Any) -> Iterator[Option]:
    """The options of a method, with ranges, defaults, and meanings from its docstrings."""
    from vcl_radial.methods import options

    for key, parameter in options.options_of(cls).items():
        default = "" if parameter.default is parameter.empty else toml(parameter.default)
        yield Option(key, values_of(parameter.annotation), default, _meaning(cls, key))


def _meaning(cls: Any, key: str) -> str:
    """What the docstrings of a class and its bases say of an argument."""
    for owner in cls.__mro__:
        found = re.search(rf"^ {{4}}{key}: (.+(?:\n {{8}}.+)*)", inspect.getdoc(owner) or "", re.M)
        if found and "__init__" in vars(owner):
            return " ".join(found[1].split())
    return ""


def values_of(annotation: Any) -> str:
    """What a value must be, in words; empty for tables and for types that a line cannot say."""
    try:
        return ranges.expected(None, annotation)
    except (KeyError, ValueError, TypeError):  # a type of no key that is checked by its range
        return ""


def toml(value: Any) -> str:
    """A default as it is written in a TOML; empty for None, which TOML does not have."""
    return "" if value is None else json.dumps(value)


def lines(page: About) -> Iterator[str]:
    """The page of a method, benchmark or sweep for a terminal."""
    yield f"{page.name}: {page.description}"
    yield ""
    if isinstance(page, AboutMethod):
        yield from _method_lines(page)
    yield f"Command: {page.command}"
    for track, text in page.files.items():
        yield ""
        yield f"{page.name}.toml ({track}):" if page.kind != "sweep" else f"{page.name}.toml:"
        yield ""
        yield from (f"    {line}".rstrip() for line in text.splitlines())


def _method_lines(page: AboutMethod) -> Iterator[str]:
    if page.explanation:
        yield from page.explanation.splitlines()
        yield ""
    yield _wrapped("Carries", page.carries)
    yield _wrapped("Posteriors", page.families)
    yield _wrapped("Tracks", ", ".join(track for track, gap in page.gaps.items() if not gap))
    for track, gap in page.gaps.items():
        if gap:
            yield _wrapped(f"Not in {track}", gap)
    if page.tuned:
        yield _wrapped("Settings of their own (--tuned)", ", ".join(page.tuned))
    yield ""
    if page.options:
        yield "Options, in [options] of a recipe or as --set options.KEY=VALUE:"
        for option in page.options:
            yield f"  {option.key} = {option.default or '(none)'}" + (
                f"   {option.values}" if option.values else ""
            )
            if option.meaning:
                yield fill(option.meaning, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
        yield ""


def _wrapped(title: str, text: str) -> str:
    return fill(f"{title}: {text}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
