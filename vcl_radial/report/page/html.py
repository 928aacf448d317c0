"""The page: what its template shows, and the template."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vcl_radial.report.figures.detail_tables import (
    difference_rows,
    matrix_rows,
    matrix_table,
    seed_rows,
)
from vcl_radial.report.figures.differences import paired_differences
from vcl_radial.report.figures.layer_table import FIRST_PRIOR, SPREAD
from vcl_radial.report.figures.layout import task_names
from vcl_radial.report.figures.marks import legend
from vcl_radial.report.figures.over_seeds import all_over_seeds, method_names
from vcl_radial.report.figures.tables import markdown, seed_table, summarised, to_csv, to_markdown
from vcl_radial.report.page import charts as drawing
from vcl_radial.report.page.board import STRIP_HEIGHT, STRIP_WIDTH, board
from vcl_radial.report.page.board import differences as against
from vcl_radial.report.page.heatmaps import heatmaps
from vcl_radial.report.page.layers import layer_charts
from vcl_radial.report.page.looks import looks

if TYPE_CHECKING:
    from jinja2 import Template

_WORDS = ("method", "in words", "after training", "folder")


@dataclass(frozen=True)
class Detail:
    """A method behind its numbers.

    Attributes:
        spec: The resolved spec, but for the seed, as it is to be shown.
        folders: Where the runs lie, by seed.
    """

    spec: str
    folders: Mapping[int, str]


@dataclass(frozen=True)
class Section:
    """A benchmark.

    Attributes:
        results: Tidy tables of its finished runs, with `benchmark, method, seed`.
        costs: What they cost, as `seed_table` takes it.
        tasks: The names of its tasks.
        details: Its methods behind their numbers, by name.
        facts: What stands behind the numbers: a name, and what is to be said.
        notices: Lines that a reader has to know.
        multi_head: Whether each task has a head of its own; then there is no forward transfer.
        layers: Tidy tables of what the layers did, with `benchmark, method, seed`, if any.
    """

    results: pd.DataFrame
    costs: pd.DataFrame
    tasks: Sequence[str]
    details: Mapping[str, Detail]
    facts: Sequence[tuple[str, Sequence[str]]]
    notices: Sequence[str] = ()
    multi_head: bool = False
    layers: pd.DataFrame | None = None


def html_page(
    sections: Sequence[Section],
    *,
    title: str,
    facts: Sequence[tuple[str, Sequence[str]]] = (),
    passed_over: Sequence[str] = (),
) -> str:
    """One HTML page that needs nothing beside it: style, script, drawings and data are inside.

    Args:
        sections: The benchmarks, in order.
        title: Of the page.
        facts: As in a section, about the page.
        passed_over: Lines about what is not on the page.

    Returns:
        The page. All names are escaped; it may load nothing from anywhere.

    Raises:
        DataError: A table is damaged or a run is not finished.
    """
    folder = Path(__file__).parent
    return _template().render(
        title=title,
        facts=facts,
        passed_over=passed_over,
        sections=[_shown(section, number) for number, section in enumerate(sections, start=1)],
        style=(folder / "page.css").read_text(encoding="utf-8"),
        script=(folder / "page.js").read_text(encoding="utf-8"),
        strip=(STRIP_WIDTH, STRIP_HEIGHT),
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["download"] = _download
    return environment.get_template("page.html.jinja")


def _download(text: str, kind: str) -> str:
    """A text as the address of a link that saves it."""
    return f"data:text/{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


def _shown(section: Section, number: int) -> dict[str, Any]:
    """What the template shows of a benchmark."""
    results = section.results
    summaries = all_over_seeds(results)
    tasks = task_names(section.tasks, max(s.tasks for s in summaries))
    by_seed = seed_table(results, section.costs, multi_head=section.multi_head)
    summary = summarised(by_seed)
    methods = method_names(results)
    differences = paired_differences(results, methods[0])
    look = looks(methods, level={s.method for s in summaries if s.joint})
    return {
        "id": f"b{number}",
        "name": summaries[0].benchmark,
        "notices": section.notices,
        "facts": section.facts,
        "look": look,
        "methods": methods,
        "board": board(summary, by_seed),
        "legend": legend(summary, "Marked"),
        "charts": drawing.charts(summaries, tasks),
        "layers": [] if section.layers is None else layer_charts(section.layers),
        "layer_methods": [] if section.layers is None else method_names(section.layers),
        "layers_note": f"{SPREAD}; {FIRST_PRIOR}.".capitalize(),
        "heatmaps": heatmaps(summaries),
        "tasks": tasks,
        "differences": against(differences),
        "not_compared": sorted(set(methods[1:]) - set(differences["method"])),
        "details": [
            {
                "method": method,
                "spec": section.details[method].spec,
                "runs": _with_folders(
                    seed_rows(by_seed[by_seed["method"] == method]), section.details[method].folders
                ),
            }
            for method in methods
        ],
        "files": {
            "leaderboard": (to_csv(summary), to_markdown(summary)),
            "differences": (to_csv(differences), markdown(difference_rows(differences), _WORDS)),
            "matrices": (
                to_csv(matrix_table(results)),
                "\n".join(f"{s.method}\n\n{markdown(matrix_rows(s, tasks))}" for s in summaries),
            ),
            "runs": (to_csv(by_seed), markdown(seed_rows(by_seed))),
        },
    }


def _with_folders(rows: list[list[str]], folders: Mapping[int, str]) -> list[list[str]]:
    """The runs of one method: its name is left out, their folders are added."""
    header, *body = [row[1:] for row in rows]
    return [[*header, "folder"], *([*row, folders.get(int(row[0]), "")] for row in body)]
