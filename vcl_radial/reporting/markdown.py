"""Tables and pages as text: Markdown to keep, aligned columns for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from vcl_radial.runs.sections import Block, Cell, Facts, Figure, Report, Section, Table, Text


def table(shown: Table) -> str:
    """A table as Markdown: what is best is bold, what is published in italics.

    Returns:
        Text that ends with a line break; its title is a paragraph above, its notes are below it.
    """
    heads = shown.heads
    rows = [
        [escaped(head.heading, "|") for head in heads],
        ["---" if head.words else "---:" for head in heads],
        *([_cell(cell) for cell in row] for row in shown.body),
    ]
    text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    above = [f"{escaped(shown.title)}\n"] if shown.title else []
    return "\n".join([*above, text, *(f"{escaped(note)}\n" for note in shown.notes)])


def aligned(shown: Table) -> str:
    """A table for a terminal, in aligned columns; what is best has a star.

    Returns:
        Text that ends with a line break.
    """
    kept = [place for place, head in enumerate(shown.heads) if not head.aside]
    heads = [shown.heads[place] for place in kept]
    body = [[row[place] for place in kept] for row in shown.body]
    stars = [any(row[place].best for row in body) for place in range(len(heads))]
    rows = [[head.heading for head in heads]]
    for row in body:
        marks = [
            ("*" if cell.best else " ") if star else ""
            for cell, star in zip(row, stars, strict=True)
        ]
        rows.append(
            [
                f"{cell.text} {mark}" if mark else cell.text
                for cell, mark in zip(row, marks, strict=True)
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["─" * width for width in widths])
    lines = [
        "  ".join(
            cell.ljust(width) if head.words else cell.rjust(width)
            for cell, width, head in zip(row, widths, heads, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, *(fill(note, 100) for note in shown.notes), ""])


def page(report: Report, *, folded: bool = False) -> str:
    """A report as a page; figures lie beside it as PNG.

    Args:
        report: what to show.
        folded: its folded sections, without what stands behind the numbers; False for the others.
    """
    title = f"# {escaped(report.title)}" + (": details" if folded else "")
    parts = [title, *(f"> {escaped(notice)}" for notice in report.notices if not folded)]
    for section in report.sections:
        if section.folded == folded:
            parts += _section(section)
    if report.facts and not folded:
        parts += ["## Where the numbers come from", facts(report.facts)]
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def facts(of: Facts) -> str:
    """What stands behind numbers, as a list; commands are code."""
    lines = []
    for name, said in of:
        if name == "command":
            words = ", ".join(f"`{line}`" for line in said)
        else:
            words = escaped("; ".join(said))
        lines.append(f"- {escaped(name)}: {words}\n")
    return "".join(lines)


def blocks(of: Sequence[Block]) -> str:
    """Blocks as Markdown, one after another."""
    return "\n\n".join(filter(None, (_block(block).rstrip("\n") for block in of))) + "\n"


def escaped(words: str, more: str = "") -> str:
    """Plain text as Markdown, without what Markdown would take for HTML.

    Args:
        words: the text.
        more: characters that get a backslash.
    """
    text = words.replace("&", "&amp;").replace("<", "&lt;")
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
        return "\n".join(["```", block.words.rstrip("\n"), "```"])
    words = escaped(block.words)
    points = "\n".join(f"- {escaped(point)}" for point in block.points)
    return "\n\n".join(filter(None, [f"> {words}" if block.style == "notice" else words, points]))


def _cell(cell: Cell) -> str:
    text = escaped(" ".join(cell.text.split()), "|")
    mark = "**" if cell.best else "*" if cell.published and text else ""
    return f"{mark}{text}{mark}"
