"""The numbers of sections as text and tables, and as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType

import pandas as pd

from benchmarks.speed.setting import Record, Row
from vcl_radial.reporting import markdown
from vcl_radial.reporting.blocks import Column, Table


def title_and_notes(section: ModuleType) -> tuple[str, list[str]]:
    """The first line of a section's docstring, and its other paragraphs."""
    title, *notes = (" ".join(part.split()) for part in str(section.__doc__).split("\n\n"))
    return title.rstrip("."), notes


def to_csv(records: Mapping[str, Record]) -> str:
    """All numbers, tidy and in full precision."""
    rows = [(name, *row) for name, record in records.items() for row in record.rows]
    return pd.DataFrame(rows, columns=["section", *Row._fields], dtype=object).to_csv(index=False)


def to_text(rows: Sequence[Row]) -> str:
    """The tables of a section in aligned columns."""
    return "\n".join(map(markdown.aligned, tables(rows)))


def tables(rows: Sequence[Row]) -> list[Table]:
    """For each axis of sizes a table, and one for memory; one line per variant and size."""
    frame = pd.DataFrame(rows, columns=Row._fields)
    frame["line"] = [", ".join(filter(None, (row.variant, row.size))) for row in rows]
    frame["cell"] = [_cell(row) for row in rows]
    axes = frame["size"].str.rpartition("=")[0]
    kinds = frame.groupby([axes, frame["metric"].str.startswith("memory")], sort=False)
    return [_table(kind) for _, kind in kinds]


def _table(kind: pd.DataFrame) -> Table:
    wide = kind.set_index(["line", "metric"])["cell"].unstack(fill_value="", sort=False)
    counts = sorted(kind["repeats"].unique())
    rounds = " or ".join(map(str, counts)) + (" round" if counts == [1] else " rounds")
    body = [[line, *cells] for line, cells in zip(wide.index, wide.to_numpy(), strict=True)]
    return Table([Column(rounds, is_text=True), *map(Column, wide.columns)], body)


def _cell(row: Row) -> str:
    if row.low == row.high:
        return number(row.median)
    return f"{number(row.median)} ({number(row.low)} - {number(row.high)})"


def number(value: float) -> str:
    """Write a number with three digits, or more with separated thousands."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
