"""Format tables and pages as text: Markdown for files, aligned columns for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from vcl_radial.reporting.blocks import Block, Cell, Facts, Figure, Report, Section, Table, Text


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


def aligned(shown: Table) -> str:
    """A table in aligned columns for a terminal; the best values have a star.

    Returns:
        Text that ends with a line break.
    """
    columns = []
    for head, *cells in zip(shown.heads, *shown.body, strict=True):
        if not head.aside:
            marks = (" *", "  ") if any(cell.best for cell in cells) else ("", "")
            texts = [head.heading, *(cell.text + marks[not cell.best] for cell in cells)]
            width = max(map(len, texts))
            texts.insert(1, "─" * width)
            columns.append([t.ljust(width) if head.is_text else t.rjust(width) for t in texts])
    lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
    return "\n".join([*lines, *(fill(note, 100) for note in shown.notes), ""])


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
