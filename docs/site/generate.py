"""The pages of the site that are made of the code: galleries, metrics, commands, keys and names.

`pages()` has a function for every page, by its path. Links lead to files of the repository;
`hook.py` turns them into links of the site.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

import vcl_radial
from docs.site import results
from docs.site.markdown import code, prose, sentence, table
from vcl_radial.cli import COMMANDS, parser_for
from vcl_radial.cli.about import About, AboutMethod, about, names, toml
from vcl_radial.metrics import METRICS, minimum_accuracy
from vcl_radial.posteriors.families import all_families
from vcl_radial.runs import catalogue, tracks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

OF = {
    "points": "Scores of a task's predictions",
    "run": "Scores of a run over all its tasks",
    "rows": "Scores of predicted numbers",
    "intervals": "Scores of intervals of predicted numbers",
    "game": "Scores of a game",
    "table": "Scores that a track computes",
    "cost": "Costs",
}
"""The headings of the page of metrics, by what a metric is of (`vcl_radial.metrics.declared`)."""


def pages() -> dict[str, Callable[[], str]]:
    """What makes each generated page, by its path from the root of the repository."""
    kinds = names()
    result: dict[str, Callable[[], str]] = {
        "methods/README.md": methods_index,
        "posteriors/README.md": posteriors_index,
        "benchmarks/README.md": benchmarks_index,
        "docs/metrics.md": metrics_page,
        "docs/command-line.md": command_line_page,
        "docs/settings.md": settings_page,
        "docs/api.md": api_page,
    }
    for name, kind in kinds.items():
        if kind == "method":
            result[f"methods/{name}.md"] = partial(method_page, name)
        elif kind == "benchmark":
            result[f"benchmarks/{name}.md"] = partial(benchmark_page, name)
    return result | {f"posteriors/{n}.md": partial(posterior_page, n) for n in all_families()}


def _link(folder: str, name: str) -> str:
    return f"[{name}]({folder}{name}.md)"


# Methods


@cache
def _about(name: str) -> Any:
    return about(name)


def _methods() -> list[AboutMethod]:
    return [_about(name) for name, kind in names().items() if kind == "method"]


def methods_index() -> str:
    """All methods in one table."""
    rows = [
        [_link("", m.name), m.description, m.carries, ", ".join(_tracks(m))] for m in _methods()
    ]
    return (
        "# Methods\n\nYou can run each of these methods by its name: `vcl-radial run BENCHMARK "
        "--method NAME`. How each was verified is in [baselines](../baselines/README.md), and why "
        "a method is missing in a track in [methods and tracks](../reports/methods/README.md).\n\n"
        + table(["method", "description", "carries", "tracks"], rows)
    )


def _tracks(method: AboutMethod) -> Iterator[str]:
    return (track for track, gap in method.gaps.items() if not gap)


def method_page(name: str) -> str:
    """The page of a method: what `vcl-radial list NAME` prints, and its figures in the reports."""
    method: AboutMethod = _about(name)
    parts = [f"# {name}\n", f"{sentence(method.description)}\n", code(method.command, "sh")]
    if method.explanation:
        source = f"vcl_radial/methods/{method.strategy}.py"
        parts += [f"## Equation and source\n\nFrom [{source}](../{source}):\n"]
        parts += [prose(method.explanation)]
    parts += ["## Properties\n", table(["property", "value"], [*_properties(method)])]
    if method.options:
        cells = [
            [f"`{o.key}`", o.values, f"`{o.default}`" if o.default else "–", o.meaning]
            for o in method.options
        ]
        parts += ["## Options\n\nKeys of `[options]` in a recipe, or `--set options.KEY=VALUE`.\n"]
        parts += [table(["option", "values", "default", "meaning"], cells)]
    if text := results.verification_of(name):
        parts += [f"## What stands for it\n\n{text}\n"]
    if rows := results.results_of(name):
        parts += [
            "## Results\n\nMean ± standard error over seeds, from the files of the "
            "[reports](../reports/README.md).\n",
            table(["report", "benchmark", "seeds", "accuracy (%)", "forgotten", "carried"], rows),
        ]
    if found := sorted(results.reports_with(name)):
        links = ", ".join(f"[{page}](../reports/{page}/README.md)" for page in found)
        parts += [f"Reports with runs of it: {links}.\n"]
    return "\n".join([*parts, *_files(method)])


def _properties(method: AboutMethod) -> Iterator[tuple[str, str]]:
    yield "carries", method.carries
    yield "posteriors", method.families
    yield "tracks", ", ".join(_tracks(method))
    for track, gap in method.gaps.items():
        if gap:
            yield f"not in {track}", gap
    if method.tuned:
        links = [_link("../benchmarks/", name) for name in method.tuned]
        yield "settings of its own (`--tuned`) for", ", ".join(links)


def _files(page: About) -> Iterator[str]:
    titles = {"benchmark": "The file", "method": "Recipe"}
    for track, text in page.files.items():
        title = titles[page.kind]
        yield f"## {title} ({track})\n" if len(page.files) > 1 else f"## {title}\n"
        yield code(text, "toml")


# Posteriors


def _doc(cls: Any) -> str:
    return inspect.getdoc(cls) or ""


def posteriors_index() -> str:
    """All families in one table, and the first priors."""
    rows = [
        [_link("", name), _doc(cls).partition("\n\n")[0], ", ".join(cls.groupings)]
        for name, cls in all_families().items()
    ]
    return (
        "# Posteriors\n\nYou can give each of these families to a method by `--set "
        'posterior=NAME`; `"none"` is a point estimate. [Own posterior](../docs/own-posterior.md) '
        "says how to write another one, and [what is computed](../docs/what-is-computed.md) how "
        "they are carried.\n\n" + table(["posterior", "what it is", "groupings"], rows)
    )


def posterior_page(name: str) -> str:
    """The page of a family: its mathematics, its traits and the methods that have it."""
    cls = all_families()[name]
    source = f"{cls.__module__.replace('.', '/')}.py"
    users = [m.name for m in _methods() for t in m.files.values() if f'"{name}"' in t]
    extra = ", ".join(f"`{key}`" for key in sorted(cls.options)) or "–"
    rows = [
        ["groupings", ", ".join(f"`{g}`" for g in cls.groupings)],
        ["keys of its own", extra],
        ["trains as lanes of one program", "yes" if cls.has_lanes else "no"],
        ["methods", ", ".join(_link("../methods/", user) for user in dict.fromkeys(users)) or "–"],
    ]
    return "\n".join(
        [
            f"# {name}\n",
            code(f"vcl-radial run split-digits-multi-head --method {_user(users)}", "sh"),
            f"From [{source}](../{source}):\n",
            prose(inspect.getdoc(inspect.getmodule(cls)) or ""),
            table(["property", "value"], rows),
            f"## {cls.__name__}\n",
            prose(_doc(cls).partition("\n\nArgs:")[0]),
        ]
    )


def _user(users: Sequence[str]) -> str:
    return min(users, key=len) if users else "gaussian-vcl"


# Benchmarks


def benchmarks_index() -> str:
    """The benchmarks of every track, and the sweeps."""
    parts = ["# Benchmarks\n\nYou can run each of these by its name: `vcl-radial run NAME`.\n"]
    for track in tracks.names():
        found = catalogue.list_benchmarks(track)
        rows = [[_link("", name), text] for name, text in found.items()]
        parts += [f"## {track.capitalize()}\n", table(["benchmark", "description"], rows)]
    rows = [[f"`{name}`", text] for name, text in catalogue.list_sweeps().items()]
    parts += ["## Sweeps\n\nSearches over settings: `vcl-radial sweep NAME`, see "]
    parts[-1] += "[sweeps](../docs/sweeps.md).\n"
    return "\n".join([*parts, table(["sweep", "description"], rows)])


def benchmark_page(name: str) -> str:
    """The page of a benchmark: its command, tuned methods and file."""
    page = _about(name)
    (track,) = page.files
    tuned = [_link("../methods/", m.name) for m in _methods() if name in m.tuned]
    rows = [["track", track], ["methods with settings of their own", ", ".join(tuned) or "–"]]
    head = [f"# {name}\n", f"{sentence(page.description)}\n", code(page.command, "sh")]
    return "\n".join([*head, table(["property", "value"], rows), *_files(page)])


# Metrics, commands, keys, names


def metrics_page() -> str:
    """Every declared metric, and the definitions of those with a function."""
    for track in tracks.names():  # each declares its own
        tracks.find(track)
    example = pd.DataFrame(
        [(1, 1, 90.0), (2, 1, 80.0), (2, 2, 98.0)], columns=["after", "task", "value"]
    ).assign(metric="accuracy")
    parts = [
        "# Metrics\n\nYou can look up every score of the tables here: its unit, which values are "
        "better, and its formula. R[i, j] is the accuracy on task j after training task i, of T "
        "tasks. More is in [what is computed](what-is-computed.md#scores).\n",
        "## Why can min-ACC exceed the accuracy?\n\nThe accuracy averages over all T tasks, and "
        "min-ACC over the tasks before the last, each at its worst moment after it was learned. "
        "A hard last task lowers the accuracy alone. An easy one does the opposite: with R[1, 1] "
        "= 90, R[2, 1] = 80 and R[2, 2] = 98, the accuracy is 89 and min-ACC "
        f"{minimum_accuracy(example):g}; with R[2, 2] = 60 the accuracy is 70, and min-ACC is "
        f"still {minimum_accuracy(example.replace(98.0, 60.0)):g}.\n",
    ]
    for of, title in OF.items():
        rows = [
            [f"`{m.name}`", m.heading, m.better or "–", m.meaning]
            for m in METRICS.values()
            if m.of == of
        ]
        if rows:
            heads = ["metric", "heading", "better", "meaning"]
            parts += [f"## {title}\n", table(heads, rows)]
        for metric in METRICS.values():
            if metric.of == of and inspect.isfunction(metric.function):
                function = metric.function
                path = f"{function.__module__}.{function.__name__}"
                parts += [_reference(path, function.__name__, 3)]
    return "\n".join(parts)


def command_line_page() -> str:
    """Every command with its arguments, as argparse knows them."""
    parser = parser_for(*COMMANDS)
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    parts = ["# Command line\n\nYou can look up every command and option here.\n"]
    for name, command in commands.choices.items():
        rows = [*_arguments(command)]
        parts += [f"## vcl-radial {name}\n", prose(command.description or COMMANDS[name])]
        parts += [code(_usage(command)), table(["argument", "meaning"], rows)]
    return "\n".join(parts)


def _usage(command: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(command.prog, width=90)
    formatter.add_usage(command.usage, command._actions, command._mutually_exclusive_groups)
    return formatter.format_help()


def _arguments(command: argparse.ArgumentParser) -> Iterator[list[str]]:
    formatter = argparse.HelpFormatter(command.prog)
    for action in command._actions:
        if action.help and action.help is not argparse.SUPPRESS:
            invocation = formatter._format_action_invocation(action)
            yield [f"`{invocation}`", prose(formatter._expand_help(action))]


def settings_page() -> str:
    """Every key of a benchmark and of a recipe, with type, default and meaning, by track."""
    parts = [
        "# Keys of settings\n\nYou can look up the type and the default of every key here. "
        "[Recipes and keys](recipes-and-keys.md) explains them.\n"
    ]
    for track in tracks.names():
        spec = tracks.find(track).spec
        for name in (spec.DATA, "recipe"):
            model = spec.model_fields[name].annotation
            parts += [f"## {track}: [{name}]\n"]
            parts += [table(["key", "type", "default", "meaning"], [*key_rows(model, name)])]
    return "\n".join(parts)


def key_rows(model: Any, name: str) -> Iterator[list[str]]:
    """The rows of a table's keys: key, type, default and meaning."""
    schema = model.model_json_schema()
    for key, field in schema["properties"].items():
        known = field.get("default")
        default = "required" if "default" not in field else f"`{toml(known)}`"
        shown = "–" if "default" in field and known is None else default
        known_names = _known(model.model_fields[key])
        kind = f"{', '.join(f'`{n}`' for n in known_names)}, or your own" if known_names else ""
        yield [f"`{key}`", kind or type_of(field), shown, _meaning(model, name, key)]


def _known(field: Any) -> Sequence[str]:
    """The names that a key takes beside a class or function of a user's own."""
    validators = (getattr(m, "func", None) for m in field.metadata)
    return next((v.keywords["known"] for v in validators if isinstance(v, partial)), ())


def type_of(schema: Mapping[str, Any]) -> str:
    """A type of JSON schema in words."""
    if "anyOf" in schema:
        parts = [part for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(map(type_of, parts))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{toml(value)}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of: {type_of(schema['items'])}"
    words = {"integer": "whole number", "boolean": "true or false", "object": "table"}
    kind = str(schema.get("type", "table"))
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{signs[key]} {schema[key]:g}" for key in signs if schema.get(key, 1e12) < 1e12]
    return ", ".join([words.get(kind, kind), *bounds])


def _meaning(model: Any, name: str, key: str) -> str:
    for owner in model.__mro__:
        field = getattr(owner, "model_fields", {}).get(key)
        if field is not None and field.description:
            return prose(field.description)
        if found := re.search(rf"^ {{4}}{key}: (.+(?:\n {{8}}.+)*)", _doc(owner), re.MULTILINE):
            return prose(found[1])
    return _rows_of_docs().get(f"{name}.{key}", "")


@cache
def _rows_of_docs() -> dict[str, str]:
    """The meanings of keys of benchmarks in the tables of the docs, by `table.key`."""
    result: dict[str, str] = {}
    for page in sorted(DOCS.glob("*.md")):
        prefix = ""  # of a table whose heading names the keys' table
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"\| key of `\[(\w+)\]`", line):
                prefix = f"{found[1]}."
            first, _, rest = line.partition(" | ")
            keys = re.findall(r"`((?:\w+\.)?\w+)`", first) if line.startswith("| `") else ()
            result |= {k if "." in k else prefix + k: rest.partition(" | ")[0] for k in keys}
            prefix = prefix if line.startswith("|") else ""
    return result


def _reference(path: str, name: str, level: int) -> str:
    options = f"heading: {name}\n      heading_level: {level}\n      toc_label: {name}"
    return f"::: {path}\n    options:\n      {options}\n"


def api_page() -> str:
    """The public names of the package and of `vcl_radial.posteriors`."""
    parts = [
        "# Python API\n\nYou can use all of these names: `import vcl_radial as vr`. The page "
        "[Python](python.md) shows them at work.\n"
    ]
    modules = vcl_radial._MODULES
    parts += [_reference(f"{modules[n]}.{n}", f"vcl_radial.{n}", 2) for n in sorted(modules)]
    parts += ["## vcl_radial.posteriors\n"]
    for path in _imported(ROOT / "vcl_radial" / "posteriors" / "__init__.py"):
        parts += [_reference(path, path.rpartition(".")[2], 3)]
    return "\n".join(parts)


def _imported(init: Path) -> Iterable[str]:
    """The names that a package imports from its modules, each with its module."""
    tree = ast.parse(init.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
