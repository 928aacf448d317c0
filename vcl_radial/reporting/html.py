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
from vcl_radial.runs.sections import Block, Cell, Facts, Figure, Report, Section, Table, Text

if TYPE_CHECKING:
    from jinja2 import Template
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

    return _template().render(
        mark=Markup(MARK),
        title=title,
        facts=facts,
        passed_over=passed_over,
        reports=reports,
        style=(_PAGE / "page.css").read_text(encoding="utf-8"),
        script=(_PAGE / "page.js").read_text(encoding="utf-8"),
    )


def table_html(table: Table) -> str:
    """A table as HTML without style or script, for notebooks; the best values are bold."""
    from markupsafe import Markup, escape

    def row(tag: str, texts: Sequence[Markup]) -> Markup:
        sides = ["left" if head.is_text else "right" for head in table.heads]
        cells = Markup(f'<{tag} style="text-align: {{}}">{{}}</{tag}>')
        return Markup("<tr>{}</tr>").format(
            Markup("").join(cells.format(*cell) for cell in zip(sides, texts, strict=True))
        )

    def text(cell: Cell) -> Markup:
        return Markup("<b>{}</b>").format(cell.text) if cell.best else escape(cell.text)

    caption = Markup("<caption>{}</caption>").format(table.title) if table.title else ""
    head = row("th", [escape(head.heading) for head in table.heads])
    body = Markup("\n").join(row("td", [text(cell) for cell in cells]) for cells in table.body)
    notes = Markup("").join(Markup("<p>{}</p>").format(note) for note in table.notes)
    return Markup("<table>{}<thead>{}</thead>\n<tbody>{}</tbody></table>{}").format(
        caption, head, body, notes
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_PAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"download": _download, "code": _code, "sort_key": _sort_key}
    environment.filters |= {
        "kind": _kind,
        "shown": _shown,
        "tables": _tables,
        "in_order": _in_order,
    }
    return environment.get_template("page.html.jinja")


def _kind(block: Block) -> str:
    kinds = ((Text, "text"), (Table, "table"), (Figure, "figure"))
    return next(word for kind, word in kinds if isinstance(block, kind))


def _shown(picture: bytes) -> str:
    """The data URL of an SVG picture."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"


def _download(text: str, kind: str) -> str:
    """The data URL of a text, for a link that saves it."""
    # The name of a folder need not be UTF-8: other bytes are written as codes.
    content = text.encode(errors="backslashreplace")
    return f"data:text/{kind};charset=utf-8;base64,{base64.b64encode(content).decode()}"


def _tables(section: Section) -> str:
    """The tables of a section as Markdown; empty where it has none."""
    shown = [block for block in section.blocks if isinstance(block, Table)]
    return markdown.blocks(shown) if shown else ""


def _in_order(table: Table) -> list[list[Cell]]:
    """The rows of a table, the better ones first if it names a column to sort by."""
    column = next(
        (c for c, head in enumerate(table.heads) if head.heading == table.sorted_by), None
    )
    if column is None:
        return table.body
    sign = 1.0 if table.heads[column].better == "lower" else -1.0
    keys = [row[column].key for row in table.body]
    order = sorted(range(len(keys)), key=lambda k: (math.isnan(keys[k]), sign * keys[k]))
    return [table.body[k] for k in order]


def _sort_key(cell: Cell) -> str:
    """A number for the script; an undefined one is empty and stays last."""
    return "" if math.isnan(cell.key) else repr(float(cell.key)).replace("inf", "Infinity")


def _code(text: str) -> Markup:
    """A text whose parts between backticks are code."""
    from markupsafe import Markup, escape

    parts = re.split(r"`([^`]+)`", text)
    pairs = zip(parts[::2], [*parts[1::2], None], strict=True)
    return Markup("").join(
        escape(plain) + (Markup("<code>{}</code>").format(code) if code is not None else "")
        for plain, code in pairs
    )
