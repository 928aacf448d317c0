"""The values of Avalanche's metrics of finished runs, as a table and as a section of a report."""

from __future__ import annotations

from collections.abc import Sequence

from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.reporting.blocks import Cell, Column, Section, Table, Text, mean_cell
from vcl_radial.reporting.scores import joined
from vcl_radial.runs.track import FinishedRun

FILE = "avalanche.csv"
"""The table in the folder of a run."""

TYPES = {"task_trained": int, "metric": str, "value": float}
COLUMNS = [*TYPES]


def section(runs: Sequence[FinishedRun]) -> Section | None:
    """The values after the last task, by metric and method; None without any."""
    table = joined(runs, "avalanche")
    if table.empty:
        return None
    last = table[table["task_trained"] == table["task_trained"].max()]
    values = last.groupby(["metric", "method"], sort=False)["value"]
    cells = {key: mean_cell(*mean_and_standard_error(v), decimals=4) for key, v in values}
    methods = list(dict.fromkeys(last["method"]))
    rows = [
        [metric, *(cells.get((metric, method), Cell("–")) for method in methods)]
        for metric in dict.fromkeys(last["metric"])
    ]
    note = "After the last task, in Avalanche's names and units; mean ± standard error over seeds."
    columns = [Column("metric", is_text=True), *methods]
    files = {FILE: table.to_csv(index=False)}
    return Section("Avalanche's metrics", [Text(note), Table(columns, rows)], files)
