"""Format tables and pages as text: Markdown for files, aligned columns for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from textwrap import fill, wrap

from vcl_radial.reporting.blocks import (
    Block,
    Cell,
    Column,
    Facts,
    Figure,
    Report,
    Section,
    Table,
    Text,
)

_LEAST_TEXT = 16
"""Fewest characters to which a column of longer texts is narrowed."""


def table(shown: Table) -> str:
    """A table as Markdown: the best values are bold, published values in italics.

    Returns:
        Text that ends with a line break, with the title above the table and the notes below.
    """
    heads = shown.heads
    rows = [
        [escaped(head.heading, "|") for head in heads],
        ["---" if head.is_text else "---:" for head in heads],
        *([_cell(cell) for cell in row] for row in shown.body),
    ]
    text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    above = [f"{escaped(shown.title)}\n"] if shown.title else []
    return "\n".join([*above, text, *(f"{escaped(note)}\n" for note in shown.notes)])


def aligned(shown: Table, width: int | None = None) -> str:
    """A table in aligned columns for a terminal; the best values have a star.

    A table that is too wide gets headings in several lines, then texts in several lines; then its
    last columns are left out, and a note says so.

    Args:
        shown: the table.
        width: most characters of a line; None for no limit.

    Returns:
        Text that ends with a line break.
    """
    columns: list[tuple[Column, list[str]]] = []
    for head, *cells in zip(shown.heads, *shown.body, strict=True):
        if not head.aside:
            marks = (" *", "  ") if any(cell.best for cell in cells) else ("", "")
            columns.append((head, [cell.text + marks[not cell.best] for cell in cells]))
    note_width, width = width or 100, width or sys.maxsize
    widths, left_out = _widths(columns, width), 0
    while sum(widths) + 2 * len(widths) - 2 > width and len(columns) > 2:
        columns, left_out = columns[:-1], left_out + 1
        widths = _widths(columns, width)
    is_text = [head.is_text for head, _ in columns]
    lines = _lines([head.heading for head, _ in columns], widths, is_text, at_end=True)
    lines.append("  ".join("─" * each for each in widths))
    for row in zip(*(cells for _, cells in columns), strict=True):
        lines += _lines(row, widths, is_text)
    more = f"{left_out} more column{'s' * (left_out > 1)} in summary.md and on the page"
    notes = [*shown.notes, *([more] if left_out else [])]
    return "\n".join([*lines, *(fill(note, note_width) for note in notes), ""])


def _widths(columns: Sequence[tuple[Column, Sequence[str]]], width: int) -> list[int]:
    """The widths of columns: of one line each, or where these are too wide, of several."""
    cells = [max(map(len, texts), default=0) for _, texts in columns]
    widths = [max(len(head.heading), of) for (head, _), of in zip(columns, cells, strict=True)]
    gaps = 2 * len(columns) - 2
    if sum(widths) + gaps > width:
        words = [max(map(len, head.heading.split()), default=0) for head, _ in columns]
        widths = [max(pair) for pair in zip(words, cells, strict=True)]
    for number, (head, _) in enumerate(columns):
        if head.is_text:
            surplus = sum(widths) + gaps - width
            least = min(widths[number], _LEAST_TEXT)
            widths[number] = max(least, widths[number] - max(0, surplus))
    return widths


def _lines(
    row: Sequence[str], widths: Sequence[int], is_text: Sequence[bool], *, at_end: bool = False
) -> list[str]:
    """A row of a table in as many lines as its cells need; short cells begin or end with it."""
    cells = [
        wrap(text, each) or [""] if len(text) > each else [text]
        for text, each in zip(row, widths, strict=True)
    ]
    height = max(map(len, cells))
    padded = [
        [""] * (height - len(c)) + c if at_end else c + [""] * (height - len(c)) for c in cells
    ]
    return [
        "  ".join(
            text.ljust(each) if left else text.rjust(each)
            for text, each, left in zip(line, widths, is_text, strict=True)
        ).rstrip()
        for line in zip(*padded, strict=True)
    ]


def page(report: Report, *, folded: bool = False) -> str:
    """A report as a page; figures lie beside it as PNG.

    Args:
        report: the report.
        folded: whether the page has the folded sections, without facts, or else all others.
    """
    title = f"# {escaped(report.title)}" + (": details" if folded else "")
    parts = [title, *(f"> {escaped(notice)}" for notice in report.notices if not folded)]
    for section in report.sections:
        if section.folded == folded:
            parts += _section(section)
    if report.facts and not folded:
        parts += ["## Where the numbers come from", facts(report.facts)]
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def facts(facts: Facts) -> str:
    """Facts as a list; commands are code."""
    lines = []
    for name, values in facts:
        if name == "command":
            text = ", ".join(f"`{value}`" for value in values)
        else:
            text = escaped("; ".join(values))
        lines.append(f"- {escaped(name)}: {text}\n")
    return "".join(lines)


def blocks(shown: Sequence[Block]) -> str:
    """Blocks as Markdown, one after another."""
    return "\n\n".join(filter(None, (_block(block).rstrip("\n") for block in shown))) + "\n"


def escaped(text: str, more: str = "") -> str:
    """Escape plain text so that Markdown does not read it as HTML.

    Args:
        text: the text.
        more: characters that get a backslash.
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    for character in more:
        text = text.replace(character, f"\\{character}")
    return text


def _section(section: Section) -> list[str]:
    heading = [f"## {escaped(section.title)}"] if section.title else []
    return [*heading, *(_block(block) for block in section.blocks)]


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return table(block)
    if isinstance(block, Figure):
        if not block.on_page:
            return ""
        return f"![{escaped(block.alt)}]({block.name}.png)"
    return _text(block)


def _text(block: Text) -> str:
    if block.style == "code":
        return "\n".join(["```", block.text.rstrip("\n"), "```"])
    text = escaped(block.text)
    points = "\n".join(f"- {escaped(point)}" for point in block.points)
    return "\n\n".join(filter(None, [f"> {text}" if block.style == "notice" else text, points]))


def _cell(cell: Cell) -> str:
    text = escaped(" ".join(cell.text.split()), "|")
    mark = "**" if cell.best else "*" if cell.published and text else ""
    return f"{mark}{text}{mark}"
