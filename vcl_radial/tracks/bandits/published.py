"""Table 1 of Kessler et al. 2020: reward over the optimum, mean ± sd of 10 runs."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from importlib.resources import files


def _read() -> dict[str, dict[str, tuple[float, float]]]:
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    table: dict[str, dict[str, tuple[float, float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        pair = float(row["mean"]), float(row["standard_deviation"])
        table.setdefault(row["table"], {})[row["method"]] = pair
    return table


PUBLISHED: Mapping[str, Mapping[str, tuple[float, float]]] = _read()
"""Table 1 by data set and method: the paper says BBB for gaussian-vcl, and greedy for naive."""

_ALL = (
    ("BAdam outperforms BBB", "badam", "gaussian-vcl"),
    ("VADAM outperforms BAdam", "vadam", "badam"),
)
CONCLUSIONS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "mushroom": (*_ALL, ("the greedy bandit underperforms BAdam", "badam", "naive")),
    "statlog": _ALL,
    "adult": _ALL,
}
"""Conclusions of the paper by data set, with the better and the worse method."""
