"""Differences between methods and a reference method, paired by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from vcl_radial.metrics import average_accuracy, holm
from vcl_radial.metrics.seeds import FEWEST_SEEDS
from vcl_radial.metrics.verdicts import LEVEL
from vcl_radial.reporting.blocks import Cell, Column, Table, number, signed, with_spread
from vcl_radial.reporting.figures.over_seeds import method_names
from vcl_radial.reporting.rows import Difference


def paired_differences(results: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Average accuracy of every other method minus the reference's, over their common seeds.

    The effect size is Cohen's d_z, the mean of the differences over their standard deviation
    (Lakens, "Calculating and reporting effect sizes" (2013), Eq. 6): it is infinite if all seeds
    have the same difference, and nan if this difference is 0.

    Args:
        results: Tidy tables of the finished runs of one benchmark, with `benchmark, method, seed`.
        reference: The method to compare with.

    Returns:
        One row per method that shares at least two seeds with the reference: `method, seeds`, the
        mean difference in points and its standard error `difference, difference_se`, the `effect`
        size, the `p` of the exact sign-flip test by Holm's correction over all rows (nan for fewer
        than six seeds) and its meaning in `words`.
    """
    by_run = {
        (str(method), seed): average_accuracy(run)
        for (method, seed), run in results.groupby(["method", "seed"])
    }
    return corrected(paired(by_run, method_names(results), reference))


def paired(
    by_run: Mapping[Any, float], methods: Sequence[str], reference: str, overlap: float = 0.0
) -> pd.DataFrame:
    """A score of every method minus the reference's, with p-values before Holm's correction.

    Args:
        by_run: the score of each run, by its method and seed.
        methods: the methods in the order of the table; the reference may be among them.
        reference: the method to compare with.
        overlap: test rows over training rows, where seeds are random splits that share rows.
    """
    rows = []
    for method in methods:
        differences = [
            value - by_run[reference, seed]
            for (name, seed), value in by_run.items()
            if name == method != reference and (reference, seed) in by_run
        ]
        n = len(differences)
        if n > 1:
            change = Difference(differences, overlap=overlap)
            mean, error, _ = change.estimate
            effect = _ratio(mean, error / math.sqrt(1 / n + overlap))
            rows.append((method, n, mean, error, effect, change.p))
    columns = ["method", "seeds", "difference", "difference_se", "effect", "p"]
    return pd.DataFrame(rows, columns=columns)


def corrected(differences: pd.DataFrame) -> pd.DataFrame:
    """Rows of `paired` with `p` by Holm's correction over all rows, and its meaning in `words`."""
    family = differences.assign(p=holm(differences["p"].tolist()))
    rows = zip(family["seeds"], family["difference"], family["p"], strict=True)
    return family.assign(words=[describe_p(*row) for row in rows])


def difference_table(
    differences: pd.DataFrame, names: Sequence[str] = ("method",), unit: str = " (points)"
) -> Table:
    """Format a table of `corrected`.

    Args:
        differences: the differences; a column `decimals` sets the number of digits (2 without it).
        names: columns of text that identify a row.
        unit: the unit of all differences, for the heading.
    """
    rows: list[list[Cell | str]] = []
    for d in differences.to_dict("records"):
        decimals = d.get("decimals", 2)
        text = with_spread(d["difference"], d["difference_se"], decimals, sign=True)
        rows.append(
            [
                *(str(d[name]) for name in names),
                str(d["seeds"]),
                Cell(text, d["difference"]),
                Cell(signed(d["effect"], 2), d["effect"]),
                number(d["p"], 4),
                str(d["words"]),
            ]
        )
    columns: list[Column | str] = [
        *(Column(name, is_text=True) for name in names),
        *("seeds", f"difference{unit}", "effect size d_z"),
        Column("p", better="lower"),
        Column("in words", is_text=True),
    ]
    return Table(columns, rows)


def describe_p(seeds: int, difference: float, p: float) -> str:
    """Describe a p-value in plain words.

    Args:
        seeds: The number of differences.
        difference: The mean difference.
        p: The p-value; nan below six and above 40 seeds.
    """
    if seeds < FEWEST_SEEDS:
        return f"too few seeds: a test takes {FEWEST_SEEDS}"
    if math.isnan(p):
        return "no exact test for so many seeds"
    if p >= LEVEL:
        return "no difference shown"
    return "higher" if difference > 0 else "lower"


def _ratio(mean: float, deviation: float) -> float:
    if deviation > 1e-9 * abs(mean):  # smaller deviations come from rounding
        return mean / deviation
    return math.copysign(math.inf, mean) if mean else math.nan
