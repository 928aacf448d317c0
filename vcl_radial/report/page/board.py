"""The leaderboard as the page's template wants it: cells, sort keys, dots for the seeds."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vcl_radial.report.figures.accuracy_scale import AccuracyScale, accuracy_scale
from vcl_radial.report.figures.detail_tables import signed
from vcl_radial.report.figures.over_seeds import number
from vcl_radial.report.figures.scores import SCORES
from vcl_radial.report.figures.tables import printed

LEFT_OUT = ("forward_transfer", "evaluation_seconds")
"""Scores that stand in the table of single runs and in the files only."""

STRIP_WIDTH, STRIP_HEIGHT = 124, 24
_MARGIN = 6


@dataclass(frozen=True)
class Column:
    """A column of scores: its key, heading, meaning and which order puts the best first."""

    key: str
    heading: str
    meaning: str
    first: str


@dataclass(frozen=True)
class Cell:
    """A mean and its spread as text, the number to sort by, and whether it is marked as best."""

    mean: str
    spread: str
    sort: str
    best: bool = False


@dataclass(frozen=True)
class Row:
    """A method: its seeds' places on the strip, the mean's, the spread's ends, and the scores."""

    method: str
    seeds: int
    dots: list[float]
    mean: float
    spread: tuple[float, float]
    cells: list[Cell]


@dataclass(frozen=True)
class Board:
    """The leaderboard, best accuracy first; `ticks` are the strip's labelled places."""

    columns: list[Column]
    rows: list[Row]
    ticks: list[tuple[float, str]]
    stretched: bool


def board(summary: pd.DataFrame, by_seed: pd.DataFrame) -> Board:
    """The leaderboard of one benchmark.

    Args:
        summary: What `summary_table` returned.
        by_seed: What `seed_table` returned.

    Returns:
        The board.
    """
    keys = [
        key
        for key in SCORES
        if key in summary and key not in LEFT_OUT and not summary[key].isna().all()
    ]
    columns = [
        Column(
            key,
            SCORES[key].heading.rstrip(" ↑↓"),
            SCORES[key].meaning,
            "descending" if SCORES[key].better == "higher" else "ascending",
        )
        for key in keys
    ]
    scale = accuracy_scale(by_seed["average_accuracy"])
    rows = [
        _row(
            record,
            [_cell(record, key) for key in keys],
            list(by_seed.loc[by_seed["method"] == record["method"], "average_accuracy"]),
            scale,
        )
        for record in summary.to_dict("records")
    ]
    order = sorted(range(len(rows)), key=lambda i: -float(summary["average_accuracy"].iloc[i]))
    ticks = [(_x(scale, tick), f"{tick:g}") for tick in _few(scale)]
    return Board(columns, [rows[i] for i in order], ticks, scale.stretched)


@dataclass(frozen=True)
class Difference:
    """A method against another: seeds, difference, effect size and p, and what they say."""

    method: str
    cells: list[Cell]
    words: str


def differences(table: pd.DataFrame) -> list[Difference]:
    """What `paired_differences` returned, as cells."""
    rows = []
    for d in table.to_dict("records"):
        spread = number(d["difference_se"], 2)
        cells = [
            Cell(str(d["seeds"]), "", sort_key(d["seeds"])),
            Cell(signed(d["difference"], 2), spread, sort_key(d["difference"])),
            Cell(signed(d["effect"], 2), "", sort_key(d["effect"])),
            Cell(number(d["p"], 4), "", sort_key(d["p"])),
        ]
        rows.append(Difference(str(d["method"]), cells, str(d["words"])))
    return rows


def sort_key(value: float) -> str:
    """A number as the script reads it; what is not defined is empty and stays last."""
    return "" if math.isnan(value) else repr(float(value)).replace("inf", "Infinity")


def _cell(record: Mapping[Hashable, Any], key: str) -> Cell:
    value, error = float(record[key]), float(record[f"{key}_se"])
    mean, _, spread = printed(key, value, error).partition(" ± ")
    return Cell(mean, spread, sort_key(value), key in record["best"].split())


def _row(
    record: Mapping[Hashable, Any], cells: list[Cell], accuracies: list[float], scale: AccuracyScale
) -> Row:
    mean, error = (float(record[f"average_accuracy{end}"]) for end in ("", "_se"))
    error = 0.0 if math.isnan(error) else error
    return Row(
        method=str(record["method"]),
        seeds=len(accuracies),
        dots=[_x(scale, value) for value in accuracies],
        mean=_x(scale, mean),
        spread=(_x(scale, mean - error), _x(scale, min(mean + error, 100.0))),
        cells=cells,
    )


def _x(scale: AccuracyScale, accuracy: float) -> float:
    inner = STRIP_WIDTH - 2 * _MARGIN
    return round(_MARGIN + inner * min(max(scale.place(accuracy), 0.0), 1.0), 1)


def _few(scale: AccuracyScale) -> list[float]:
    """Ticks that have room above a strip."""
    chosen: list[float] = []
    for tick in reversed(scale.ticks):
        if not chosen or _x(scale, chosen[-1]) - _x(scale, tick) >= 30:
            chosen.append(tick)
    return chosen[::-1]
