"""The table of methods of a page: what each of them keeps, learns, carries and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.reporting.blocks import number, size, with_spread
from vcl_radial.reporting.rows import Rows

COLUMNS: Mapping[str, tuple[str, int]] = {
    "average_accuracy": ("accuracy (%)", 2),
    "forgetting": ("forgotten", 2),
    "learning_accuracy": ("learnt (%)", 2),
    "average_nll": ("NLL (nats)", 3),
    "average_ece": ("ECE (%)", 2),
    "average_sampling": ("sampling (%)", 1),
    "carried_bytes": ("carried", 0),
    "training_seconds": ("training (s)", 0),
    "cpu_seconds": ("run (s)", 0),
}
"""Heading and decimals of each column; see `vcl_radial.metrics` for their meaning.

`cpu_seconds` is the processor time of a whole run, evaluation included.
"""


def method_table(*sources: Rows, methods: Sequence[str] = ()) -> str:
    """A Markdown table with a row for each method: mean ± standard error over seeds.

    A score that no source has is left out; one that a method lacks is a dash.

    Args:
        sources: rows with `method`, `seed` and scores. A score is of the first source with a value.
        methods: the methods in order, without `best-` before them; by default all of the sources.
    """
    tables = [s.table.assign(method=s.table["method"].str.removeprefix("best-")) for s in sources]
    shown = list(methods) or list(dict.fromkeys(m for t in tables for m in t["method"]))
    lines = [[_mean(tables, method, column) for column in COLUMNS] for method in shown]
    used = [n for n in range(len(COLUMNS)) if any(line[n] != "–" for line in lines)]
    heads = [heading for heading, _ in COLUMNS.values()]
    rows = [
        ["method", "seeds", *(heads[n] for n in used)],
        ["---", *["---:"] * (1 + len(used))],
    ]
    for method, line in zip(shown, lines, strict=True):
        seeds = next(filter(None, ((t["method"] == method).sum() for t in tables)), 0)
        rows.append([f"`{method}`", str(seeds), *(line[n] for n in used)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _mean(tables: Sequence[pd.DataFrame], method: str, column: str) -> str:
    for table in tables:
        values = table[table["method"] == method].get(column, pd.Series()).dropna()
        if len(values):
            mean, error = mean_and_standard_error(values)
            if column == "carried_bytes":
                return size(mean)
            if column.endswith("_seconds"):
                return number(mean, 0 if mean >= 10 else 1)
            return with_spread(mean, error, COLUMNS[column][1])
    return "–"
