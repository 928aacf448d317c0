"""Thousands of TOMLs and command lines, in this process: a message or a valid spec, no traceback.

Nothing is trained: what a valid command would begin is left out.
"""

import contextlib
import io
import random
import tomllib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import tomli_w
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from work import BENCHMARK, SWEEP, Setting

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
_STREAM = ("kind", "dataset", "tasks", "heads", "class_order", "validation", "split_seed")
_RECIPE = (
    *("strategy", "posterior", "grouping", "initial_rho", "initial_noise", "prior_scale", "hidden"),
    *("kl_weight", "point_heads", "optimizer", "learning_rate", "schedule", "epochs", "options"),
    *("first_task_epochs", "batch_size", "drop_last", "train_samples", "eval_samples", "precision"),
)
_SWEEP = (
    *("kind", "benchmark", "method", "objective", "seeds", "seed", "trials", "hours", "at_once"),
    *("pruning", "fixed", "search", "description", "evaluate_on"),
)
_SEARCHED = ("low", "high", "log", "step", "choices", "when")
_LIKELY = st.sampled_from(
    [
        *(0, 1, -1, 3, 0.5, 1e400, -1e-400, True, "", "naive", "vcl", "radial", "random", "grid"),
        *("tpe", "digits", "multi", "single", "adam", BENCHMARK, "a:b", ":", "..", "/", "\0"),
        *([], {}),
    ]
)
_WORDS = st.sampled_from(
    [
        *("run", "sweep", "list", "report", "check", "bench", "regress", "refer", "sweep-report"),
        *("--method", "--seeds", "--jobs", "--sets", "--splits", "--good", "synthetic", "uci"),
        *("--set", "--out", "--device", "--lanes", "--log", "--data-dir", "--trials", "--to"),
        *("--executor", "--storage", "--help", "--version", "--quick", "--", "-", "-1", "0", "1"),
        *("2", "nan", "1e999", "cpu", "cuda", "auto", "ray", "local", "epochs=1", "hidden=[8]"),
        *("=", "x=", "stream.tasks=2", "stream.=1", "options.=1", "options.x=[", "[]", "a=1\nb=2"),
        *("evaluate_on=validation", BENCHMARK, "naive", "radial-vcl", "no.toml", "d2-grid", "kl"),
        *("a:b", "x" * 300, "é", "\0", "sqlite:///", "postgresql://", "wandb", "\ud800", "step"),
    ]
)


def tomls(setting: Setting) -> Iterator[str | None]:
    """Benchmarks, recipes and sweeps: random text, random tables, shipped ones with changes."""
    from vcl_radial.experiments import catalogue
    from vcl_radial.sweeps import specification

    place = setting.place()
    file = place / "fuzzed.toml"
    shipped = {
        kind: [path.read_text() for path in sorted(catalogue.folder(kind).glob("*.toml"))]
        for kind in ("benchmark", "method")
    }
    shipped["sweep"] = [SWEEP]
    shipped["sweep"] += [
        path.read_text()
        for path in sorted((catalogue.folder("benchmark") / "sweeps").glob("*.toml"))
    ]
    read: dict[str, Callable[[], object]] = {
        "benchmark": lambda: catalogue.plan(str(file), ["naive"], [0]),
        "method": lambda: catalogue.plan(BENCHMARK, [str(file)], [0]),
        "sweep": lambda: specification.read(file),
    }
    keys = {"benchmark": ("stream", "recipe", "evaluate_on"), "method": _RECIPE, "sweep": _SWEEP}
    for kind, reader in read.items():
        tables = _tables(keys[kind]).map(_dumped)
        texts = st.text(max_size=200) | tables | _changed(shipped[kind])

        def attempt(
            text: str, kind: str = kind, reader: Callable[[], object] = reader
        ) -> str | None:
            file.write_text(text, encoding="utf-8", errors="surrogatepass")
            return _wrong(reader, f"{kind}: {text!r}")

        yield from _cases(setting, texts, attempt)


def command_lines(setting: Setting) -> Iterator[str | None]:
    """Random words, in the order of a real command or in none."""
    place = setting.place()
    random_words = st.lists(_WORDS | st.text(max_size=8), max_size=8)
    runs = random_words.map(lambda words: ["run", BENCHMARK, *words])
    sets = st.lists(st.sampled_from(_RECIPE + _STREAM), max_size=3).flatmap(
        lambda keys: st.tuples(*(st.tuples(st.just(k), _LIKELY | _ANY) for k in keys))
    )
    settings_of = sets.map(
        lambda pairs: ["run", BENCHMARK, "--set", *(f"{k}={v!r}" for k, v in pairs)]
    )

    def attempt(words: list[str]) -> str | None:
        from vcl_radial.cli import main

        def call() -> object:
            with _nothing_begins():
                return main(words)

        return _wrong(call, f"{words!r}")

    with contextlib.chdir(place):
        yield from _cases(setting, random_words | runs | settings_of, attempt)
    if left := sorted(path.name for path in place.iterdir()):
        yield f"a command that did nothing left {left[0]} behind"


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
    """What a valid command would do is not done."""
    names = {
        "vcl_radial.experiments.runner.perform": [],
        "vcl_radial.experiments.report.write_report": None,
        "vcl_radial.sweeps.command.sweep": KeyboardInterrupt,
        "vcl_radial.sweeps.report.write_sweep_report": None,
        "vcl_radial.regression.command.regress": None,
        "vcl_radial.referral.command.refer": [],
        "vcl_radial.conformance.check": [],
        "vcl_radial.bench.command.bench": None,
    }
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch("signal.signal"))
        for name, result in names.items():
            if result is KeyboardInterrupt:
                stack.enter_context(mock.patch(name, side_effect=KeyboardInterrupt))
            else:
                stack.enter_context(mock.patch(name, return_value=result))
        yield


def _tables(keys: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    inner = st.dictionaries(
        st.sampled_from(_STREAM + _RECIPE + _SEARCHED), _LIKELY | _ANY, max_size=4
    )
    searched = st.dictionaries(st.sampled_from(_RECIPE), inner | _LIKELY | _ANY, max_size=3)
    return st.dictionaries(
        st.sampled_from(keys) | st.text(max_size=8), _LIKELY | _ANY | inner | searched, max_size=8
    )


def _changed(texts: list[str]) -> st.SearchStrategy[str]:
    """A shipped file with a key given another value, or with letters changed."""

    def other_value(change: tuple[str, int, Any]) -> str:
        text, number, value = change
        table = tomllib.loads(text)
        tables = [table, *(inner for inner in table.values() if isinstance(inner, dict))]
        places = [(inner, key) for inner in tables for key in inner]
        inner, key = places[number % len(places)]
        inner[key] = value
        return _dumped(table)

    def other_letters(change: tuple[str, list[tuple[int, str]]]) -> str:
        letters = list(change[0])
        for number, letter in change[1]:
            letters[number % len(letters)] = letter
        return "".join(letters)

    sources, place = st.sampled_from(texts), st.integers(0, 10_000)
    return st.tuples(sources, place, _LIKELY | _ANY).map(other_value) | st.tuples(
        sources, st.lists(st.tuples(place, st.text(max_size=2)), min_size=1, max_size=4)
    ).map(other_letters)


def _dumped(table: dict[str, Any]) -> str:
    try:
        return tomli_w.dumps(table)
    except (TypeError, ValueError):  # TOML cannot say it
        return repr(table)
