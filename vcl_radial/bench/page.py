"""The result of a measurement in words and numbers: for the terminal, as CSV, as a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vcl_radial.bench.record import Record
from vcl_radial.bench.sections import SECTIONS
from vcl_radial.bench.setting import Row


class Table(NamedTuple):
    """Cells of text under a heading; names below how many rounds there were, then numbers."""

    heading: str
    header: list[str]
    rows: list[list[str]]


def to_csv(records: Mapping[str, Record]) -> str:
    """All numbers, tidy and in full precision."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    for record in records.values():
        writer.writerows(record.rows)
    return text.getvalue()


def tables(rows: Sequence[Row]) -> list[Table]:
    """One table for each kind of size, a line per variant and size, a column per metric."""
    by_kind: dict[str, list[Row]] = {}
    for r in rows:
        by_kind.setdefault(_kind(r), []).append(r)
    return [_table(kind, group) for kind, group in by_kind.items()]


def to_text(rows: Sequence[Row], notes: Sequence[str]) -> str:
    """The tables of a section in aligned columns, and its notes."""
    lines: list[str] = []
    for table in tables(rows):
        if table.heading:
            lines.append(f"  over {table.heading}")
        cells = [table.header, *table.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            padded = (cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))
            lines.append("  ".join(["", line[0].ljust(widths[0]), *padded]).rstrip())
        lines.append("")
    return "\n".join([*lines, *(f"  {note}" for note in notes)]).rstrip() + "\n"


def to_markdown(
    records: Mapping[str, Record], pictures: Mapping[str, Sequence[tuple[str, str]]]
) -> str:
    """The page: every section with its tables, and where its numbers come from.

    Args:
        records: of the sections, by name.
        pictures: file and description of every figure of a section.
    """
    lines = [
        "# Speed",
        "",
        "Medians over rounds, lowest and highest in brackets. Within a section the variants take "
        "turns in one process, in reversed order every other round; ratios are taken within a "
        "round. A first round does not count, but for whole runs, and denormal numbers are "
        "flushed to zero. Times are those of the processor for this process; on a GPU, and for "
        "whole runs and worker processes, of the wall clock.",
    ]
    for name, record in records.items():
        lines += ["", f"## {name}: {SECTIONS[name]}"]
        for file, description in pictures.get(name, []):
            lines += ["", f"![{description}]({file})"]
        for table in tables(record.rows):
            rule = ["---", *("---:" for _ in table.header[1:])]
            lines.append("")
            lines += [f"| {' | '.join(cells)} |" for cells in (table.header, rule, *table.rows)]
        lines += ["", *(f"- {note}" for note in record.notes), _origin(record)]
    return "\n".join([*lines, ""])


def _origin(record: Record) -> str:
    where = record.environment
    device = f"{where['device']} ({where['processor']}), {where['threads']} thread(s)"
    packages = ", ".join(f"{name} {v}" for name, v in where["packages"].items() if v)
    return (
        f"- `{record.command}`; data: {record.data}; commit: "
        f"{where['commit'] or 'none (no checkout)'}; device: {device}; "
        f"Python {where['python']}, {packages}"
    )


def number(value: float) -> str:
    """Three digits, and the thousands apart where there are more."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _kind(r: Row) -> str:
    """What the size is a value of, as "width" of "width=400"; memory has tables of its own."""
    kind = r.size.partition("=")[0] if "=" in r.size else ""
    return f"{kind}, memory" if r.metric.startswith("memory") else kind


def _table(kind: str, rows: Sequence[Row]) -> Table:
    metrics = list(dict.fromkeys(r.metric for r in rows))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for r in rows:
        cells.setdefault((r.variant, r.size), {})[r.metric] = _cell(r)
    body = [
        [", ".join(filter(None, name)), *(found.get(metric, "") for metric in metrics)]
        for name, found in sorted(cells.items(), key=lambda item: list(cells).index(item[0]))
    ]
    return Table(kind, [_rounds(rows), *metrics], body)


def _rounds(rows: Sequence[Row]) -> str:
    counts = sorted({r.repeats for r in rows})
    return f"{' or '.join(map(str, counts))} round{'s' * (counts[-1] > 1)}"


def _cell(r: Row) -> str:
    if r.low == r.high:
        return number(r.median)
    return f"{number(r.median)} ({number(r.low)} - {number(r.high)})"
