"""Write reports as one HTML page that contains its style, script and pictures."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.reporting import markdown
from vcl_radial.reporting.blocks import Cell, Facts, Report, Table

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_PAGE = Path(__file__).parent / "page"

MARK = '<meta name="generator" content="vcl-radial">'
"""The tag that marks pages of the suite."""


@dataclass(frozen=True)
class Drawn:
    """A report with its pictures.

    Attributes:
        report: the report.
        pictures: its figures as SVG, by name.
    """

    report: Report
    pictures: Mapping[str, bytes]


def html_page(
    reports: Sequence[Drawn],
    *,
    title: str,
    facts: Facts = (),
    passed_over: Sequence[str] = (),
) -> str:
    """One page that needs no other files.

    Args:
        reports: reports in order.
        title: title of the page.
        facts: facts about the page.
        passed_over: lines about runs that are not on the page.

    Returns:
        The page. All names are escaped, and it loads nothing.
    """
    from markupsafe import Markup

    return (
        _templates()
        .get_template("page.html.jinja")
        .render(
            mark=Markup(MARK),
            title=title,
            facts=facts,
            passed_over=passed_over,
            reports=reports,
            style=(_PAGE / "page.css").read_text(encoding="utf-8"),
            script=(_PAGE / "page.js").read_text(encoding="utf-8"),
        )
    )


def table_html(table: Table) -> str:
    """A table as HTML without style or script, for notebooks; the best values are bold."""
    return _templates().get_template("table.html.jinja").render(table=table)


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_PAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"download": _download, "code": _code, "sort_key": _sort_key}
    environment.filters |= {"shown": _shown, "markdown": markdown.blocks, "in_order": _in_order}
    return environment


def _shown(picture: bytes) -> str:
    """The data URL of an SVG picture."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"


def _download(text: str, kind: str) -> str:
    """The data URL of a text, for a link that saves it."""
    # The name of a folder need not be UTF-8: other bytes are written as codes.
    content = text.encode(errors="backslashreplace")
    return f"data:text/{kind};charset=utf-8;base64,{base64.b64encode(content).decode()}"


def _in_order(table: Table) -> list[list[Cell]]:
    """The rows of a table, the better ones first if it names a column to sort by."""
    headings = [head.heading for head in table.heads]
    if table.sorted_by not in headings:
        return table.body
    column = headings.index(table.sorted_by)
    sign = 1.0 if table.heads[column].better == "lower" else -1.0
    return sorted(table.body, key=lambda r: (math.isnan(r[column].key), sign * r[column].key))


def _sort_key(cell: Cell) -> str:
    """A number for the script; an undefined one is empty and stays last."""
    return "" if math.isnan(cell.key) else repr(float(cell.key)).replace("inf", "Infinity")


def _code(text: str) -> Markup:
    """A text whose parts between backticks are code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
