"""The result of a measurement as text: for the terminal, as CSV, as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from benchmarks.speed.pictures import STACK, Picture
from benchmarks.speed.setting import Record, Row
from vcl_radial.reporting import markdown
from vcl_radial.reporting.provenance import origin
from vcl_radial.runs.sections import Block, Column, Figure, Report, Section, Table, Text

_INTRODUCTION = (
    "Medians over rounds, lowest and highest in brackets. Within a section the variants take turns "
    "in one process, in reversed order every other round; ratios are taken within a round. A first "
    "round does not count, but for whole runs, and denormal numbers are flushed to zero. Times are "
    "those of the processor for this process; on a GPU, and for whole runs and worker processes, "
    "of the wall clock."
)


def to_csv(records: Mapping[str, Record]) -> str:
    """All numbers, tidy and in full precision."""
    rows = [row for record in records.values() for row in record.rows]
    return pd.DataFrame(rows, columns=Row._fields, dtype=object).to_csv(index=False)


def to_text(rows: Sequence[Row], notes: Sequence[str]) -> str:
    """The tables of a section in aligned columns, and its notes."""
    parts = [
        (f"  {kind}\n" if kind else "") + markdown.aligned(table)
        for kind, table in tables(rows).items()
    ]
    return "\n".join([*parts, *(f"  {note}" for note in notes)]).rstrip() + "\n"


def to_markdown(
    records: Mapping[str, Record],
    headings: Mapping[str, str],
    pictures: Mapping[str, Sequence[Picture]],
) -> str:
    """The page: every section with its pictures and tables, and where its numbers come from."""
    blocks_by_section = [Section("", [Text(_INTRODUCTION)])]
    for name, record in records.items():
        line = origin(record.command, record.environment, f"data: {record.data}")
        blocks: list[Block] = [
            *(Figure(picture.name, None, picture.title) for picture in pictures[name]),
            *tables(record.rows).values(),
            Text(points=[*record.notes, line]),
        ]
        blocks_by_section.append(Section(f"{name}: {headings[name]}", blocks))
    return markdown.page(Report("Speed", blocks_by_section))


def tables(rows: Sequence[Row]) -> dict[str, Table]:
    """One table for each kind of size, a line per variant and size, a column per metric."""
    by_kind: dict[str, list[Row]] = {}
    for r in rows:
        if r.metric != STACK:  # in the picture alone
            by_kind.setdefault(_kind(r), []).append(r)
    return {kind: _table(kind_rows) for kind, kind_rows in by_kind.items()}


def _kind(r: Row) -> str:
    """The kind of a size, as "width" for "width=400"; memory and exponents are separate kinds."""
    if r.metric.startswith("exponent"):
        return "exponents"
    kind = r.size.partition("=")[0] if "=" in r.size else ""
    return f"{kind}, memory" if r.metric.startswith("memory") else kind


def _table(rows: Sequence[Row]) -> Table:
    metrics = list(dict.fromkeys(r.metric for r in rows))
    lines: dict[str, dict[str, str]] = {}
    for r in rows:
        lines.setdefault(", ".join(filter(None, (r.variant, r.size))), {})[r.metric] = _cell(r)
    body = [[name, *(cells.get(metric, "") for metric in metrics)] for name, cells in lines.items()]
    counts = sorted({r.repeats for r in rows})
    rounds = f"{' or '.join(map(str, counts))} round{'s' * (counts[-1] > 1)}"
    return Table([Column(rounds, is_text=True), *map(Column, metrics)], body)


def _cell(r: Row) -> str:
    if r.low == r.high:
        return number(r.median)
    return f"{number(r.median)} ({number(r.low)} - {number(r.high)})"


def number(value: float) -> str:
    """Write a number with three digits, or more with separated thousands."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
