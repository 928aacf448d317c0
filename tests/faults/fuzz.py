"""Thousands of TOMLs and command lines, in this process: a message or a valid spec, no traceback.

Nothing is trained: what a valid command would begin is left out. Keys and options are those that
the package itself knows, so that new ones are tried without being named here.
"""

import contextlib
import io
import os
import random
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import tomli_w
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from work import BENCHMARK, Setting

from vcl_radial.cli import COMMANDS, module_of
from vcl_radial.cli.arguments import Parser
from vcl_radial.runs import catalogue, planning, tracks
from vcl_radial.runs.track import AnyTrack
from vcl_radial.sweeps import plans as sweeps
from vcl_radial.sweeps.specification import Sweep

_ANY = st.recursive(
    st.none().map(lambda _: "")
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.datetimes(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=6,
)
_LIKELY = st.sampled_from(
    [
        *(0, 1, -1, 3, 0.5, 1e400, -1e-400, True, "", "naive", "vcl", "radial", "random", "grid"),
        *("tpe", "digits", "multi", "single", "adam", "diabetes", "dropout", "variational"),
        *(BENCHMARK, "a:b", ":", "..", "/", "\0", [], {}),
    ]
)


def _benchmarks() -> dict[str, str]:
    """A shipped benchmark of each track, by the track's name."""
    shipped = (catalogue.load("benchmark", name) for name in catalogue.names("benchmark"))
    return {**{entry.track: entry.name for entry in shipped}, tracks.DEFAULT_TRACK: BENCHMARK}


def _keys(track: AnyTrack, table: str) -> tuple[str, ...]:
    """The keys of a table of the track's runs."""
    return tuple(track.spec.model_fields[table].annotation.model_fields)  # type: ignore[union-attr]


_TRACKS = [tracks.find(name) for name in _benchmarks()]
_RECIPES = sorted({key for track in _TRACKS for key in _keys(track, "recipe")})
_DATA = sorted(
    {f"{track.spec.DATA}.{key}" for track in _TRACKS for key in _keys(track, track.spec.DATA)}
)
_OF_DATA = [name.partition(".")[2] for name in _DATA]
_INNER = (*_OF_DATA, *_RECIPES, "low", "high", "log", "step", "choices", "when")

_SETTABLE = {
    "run": (*_RECIPES, *_DATA, "evaluate_on", "options.x"),
    "check": (*_RECIPES, "options.x"),
}
"""Keys that the `--set` of a command takes."""
_SENSIBLE = (
    *(["run", name] for name in _benchmarks().values()),
    *(["sweep", "d2-grid"], ["sweep", "tune-radial"], ["sweep", "tune-retinopathy"]),
    *(["check", "naive"], ["report", "runs"]),
)
"""How command lines begin that have a meaning."""
_VALUES = (
    *("-", "--", "-1", "0", "1", "2", "0.5", "nan", "1e999", "cpu", "cuda", "auto", "ray", "local"),
    *("=", "x=", "stream.=1", "options.=1", "options.x=[", "[]", "a=1\nb=2", "epochs=1"),
    *(BENCHMARK, "naive", "radial-vcl", "radial", "linear", "mc-dropout", "diabetes", "yacht"),
    *("no.toml", "a:b", "x" * 300, "é", "\0", "\ud800", "sqlite:///", "postgresql://", "wandb"),
)


@dataclass(frozen=True)
class _Kind:
    """A kind of TOML: where files of it lie, its keys, and how it is read."""

    name: str
    folder: Path
    keys: Sequence[str]
    read: Callable[[str], object]


def tomls(setting: Setting) -> Iterator[str | None]:
    """Random text, random tables, shipped files with changes, of each kind that there is."""
    file = setting.new_folder() / "fuzzed.toml"
    for kind in _kinds():
        shipped = [path.read_text() for path in sorted(kind.folder.glob("*.toml"))]
        texts = st.text(max_size=200) | _tables(kind.keys).map(_dumped) | _changed(shipped)

        def attempt(text: str, kind: _Kind = kind) -> str | None:
            file.write_text(text, encoding="utf-8", errors="surrogatepass")
            return _wrong(lambda: kind.read(str(file)), f"{kind.name}: {text!r}")

        yield from _cases(setting, texts, attempt)


def _kinds() -> Iterator[_Kind]:
    benchmarks = catalogue.folder("benchmark")
    tables = ("description", "track", "methods", *{key.partition(".")[0] for key in _DATA})

    def plan_benchmark(file: str) -> object:
        return planning.plan(file, [], [0])

    yield _Kind("benchmark", benchmarks, (*tables, "recipe", "evaluate_on"), plan_benchmark)
    yield _Kind("sweep", benchmarks / "sweeps", tuple(Sweep.model_fields), sweeps.read)
    for track, benchmark in _benchmarks().items():
        keys = _keys(tracks.find(track), "recipe")

        def plan_recipe(file: str, benchmark: str = benchmark) -> object:
            return planning.plan(benchmark, [file], [0])

        yield _Kind(f"{track} recipe", catalogue.folder("method", track), keys, plan_recipe)


def command_lines(setting: Setting) -> Iterator[str | None]:
    """Random words, and commands with their own options and keys."""
    root = setting.new_folder()
    options = _options()
    every = sorted({*options, *_VALUES, *(word for own in options.values() for word in own)})
    random_words = st.lists(st.sampled_from(every) | st.text(max_size=8), max_size=8)
    begun = [*_SENSIBLE, *([name] for name in options)]
    sensible = st.sampled_from(begun).flatmap(
        lambda words: st.lists(_clauses(words[0], options[words[0]]), max_size=3).map(
            lambda clauses: [*words, *(word for clause in clauses for word in clause)]
        )
    )

    def attempt(words: list[str]) -> str | None:
        from vcl_radial.cli import main

        def call() -> object:
            with _nothing_begins():
                return main(words)

        return _wrong(call, f"{words!r}")

    with contextlib.chdir(root):
        for lines in (random_words, sensible):
            yield from _cases(setting, lines, attempt)
    if left := sorted(path.name for path in root.iterdir()):
        yield f"a command that did nothing left {left[0]} behind"


def _options() -> dict[str, list[str]]:
    """The options of each command."""
    parsers = {name: Parser(prog=name) for name in COMMANDS}
    for name, parser in parsers.items():
        module_of(name).add(parser)
    return {
        name: sorted(set(re.findall(r"--[a-z-]+", parser.format_help())))
        for name, parser in parsers.items()
    }


def _clauses(command: str, options: Sequence[str]) -> st.SearchStrategy[list[str]]:
    """An option with values of any kind; `--set` more often, with keys that there are."""
    values = st.lists(st.sampled_from(_VALUES) | st.text(max_size=8), max_size=2)
    clauses = st.tuples(st.sampled_from(options), values).map(lambda c: [c[0], *c[1]])
    if command not in _SETTABLE:
        return clauses
    pair = st.tuples(st.sampled_from(_SETTABLE[command]), _LIKELY | _ANY)
    pairs = st.lists(pair.map(lambda p: f"{p[0]}={p[1]!r}"), min_size=1, max_size=3)
    return clauses | pairs.map(lambda words: ["--set", *words])


def _cases(
    setting: Setting, examples: st.SearchStrategy[Any], attempt: Callable[[Any], str | None]
) -> Iterator[str | None]:
    """A case for each example."""
    faults: list[str | None] = []

    @seed(setting.rng.randrange(2**32))
    @settings(
        max_examples=50 * setting.moments,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(examples)
    def search(example: Any) -> None:
        faults.append(attempt(example))

    state = random.getstate()
    search()
    random.setstate(state)
    yield from faults


def _wrong(call: Callable[[], object], what: str) -> str | None:
    """What is wrong with a call that is to give a result or a message in one line, or None."""
    from vcl_radial.errors import VclRadialError

    # As a terminal has them: what cannot be written there is an error on stdout alone.
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    errors = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = call()
    except VclRadialError as error:
        several = "\n" in str(error)
        return f"{what}: a message of several lines: {error}" if several else None
    except SystemExit as error:
        code = error.code
        if code not in (0, 2):
            return f"{what}: exit code {code}"
    except Exception as error:
        return f"{what}: {type(error).__name__}: {error}"
    errors.seek(0)
    lines = errors.read().splitlines()
    if isinstance(code, int) and code not in (0, 130) and len(lines) != 1:
        return f"{what}: code {code} and {len(lines)} lines"
    return None


@contextlib.contextmanager
def _nothing_begins() -> Iterator[None]:
    """What a valid command would do is not done, as if it were stopped at once."""
    begins = (
        "vcl_radial.runs.runner.perform",
        "vcl_radial.reporting.write.write_report",
        "vcl_radial.sweeps.command.sweep",
        "vcl_radial.conformance.check",
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch("signal.signal"))
        stack.enter_context(mock.patch.dict(os.environ))
        os.environ.pop("VCL_RADIAL_DATA", None)  # the same on every machine
        for name in begins:
            stack.enter_context(mock.patch(name, side_effect=KeyboardInterrupt))
        yield


def _tables(keys: Sequence[str]) -> st.SearchStrategy[dict[str, Any]]:
    inner = st.dictionaries(st.sampled_from(_INNER), _LIKELY | _ANY, max_size=4)
    searched = st.dictionaries(st.sampled_from(_RECIPES), inner | _LIKELY | _ANY, max_size=3)
    values = _LIKELY | _ANY | inner | searched | st.lists(inner, max_size=2)
    return st.dictionaries(st.sampled_from(keys) | st.text(max_size=8), values, max_size=8)


def _changed(texts: list[str]) -> st.SearchStrategy[str]:
    """A shipped file with a key given another value, or with letters changed."""

    def other_value(change: tuple[str, int, Any]) -> str:
        text, number, value = change
        table = tomllib.loads(text)
        tables = [table, *(inner for inner in table.values() if isinstance(inner, dict))]
        keys = [(inner, key) for inner in tables for key in inner]
        inner, key = keys[number % len(keys)]
        inner[key] = value
        return _dumped(table)

    def other_letters(change: tuple[str, list[tuple[int, str]]]) -> str:
        letters = list(change[0])
        for number, letter in change[1]:
            letters[number % len(letters)] = letter
        return "".join(letters)

    sources, numbers = st.sampled_from(texts), st.integers(0, 10_000)
    return st.tuples(sources, numbers, _LIKELY | _ANY).map(other_value) | st.tuples(
        sources, st.lists(st.tuples(numbers, st.text(max_size=2)), min_size=1, max_size=4)
    ).map(other_letters)


def _dumped(table: dict[str, Any]) -> str:
    try:
        return tomli_w.dumps(table)
    except (TypeError, ValueError):  # TOML cannot say it
        return repr(table)
