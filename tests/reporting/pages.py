"""A made-up report with one of everything."""

from __future__ import annotations

import math

from vcl_radial.reporting.blocks import (
    Cell,
    Column,
    Figure,
    Report,
    Section,
    Table,
    Text,
    mean_cell,
)
from vcl_radial.reporting.html import Drawn, html_page

SCORES = {"alpha": (70.0, 30.0), "beta": (90.0, 10.0), "gamma": (80.0, 20.0)}
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"/>'


def drawn(name: str = "radial", title: str = "split") -> Drawn:
    """A leaderboard of four methods, the last without forgetting, with `name` wherever one fits."""
    rows = [
        [Cell(method), mean_cell(score, 0.5, best=score == 90.0), mean_cell(loss), name]
        for method, (score, loss) in SCORES.items()
    ]
    rows.append([Cell("joint"), mean_cell(85.0), mean_cell(math.nan), "none"])
    columns = [
        Column("method", is_text=True),
        Column("accuracy (%) ↑", meaning=name, better="higher"),
        Column("forgetting ↓", better="lower"),
        Column(f"by {name}", is_text=True),
    ]
    board = Table(columns, rows, title=name, notes=[name], sorted_by="accuracy (%) ↑")
    blocks = [board, Text(f"{name} with `code`", [name]), Figure("bars", None, name)]
    hidden = Figure("heatmap", None, "hidden", on_page=False)
    report = Report(
        title,
        [
            Section("Leaderboard", [*blocks, hidden], {"summary.csv": "a,b\n1,2\n"}),
            Section(name, [Text(name, style="code"), Text(name, style="notice")], folded=True),
        ],
        [("commit", ["0123456789ab"]), ("command", [name])],
        [name],
    )
    return Drawn(report, {"bars": SVG, "heatmap": SVG})


def page_of(*reports: Drawn, name: str = "a") -> str:
    """A page of reports."""
    return html_page(reports, title=name, facts=[(name, [name])], passed_over=[name])
