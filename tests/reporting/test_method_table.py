"""The table of methods shows what the sources know of each of them, and nothing else."""

import math

import pandas as pd

from reports.method_table import method_table
from vcl_radial.reporting.rows import Rows


def rows(**columns):
    return Rows(pd.DataFrame(columns), "runs.csv")


def cells(text):
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines()]


def test_a_score_is_of_the_first_source_with_a_value_and_a_dash_without_one():
    runs = rows(
        method=["best-a", "best-a", "joint"],
        seed=[0, 1, 0],
        average_accuracy=[90.0, 92.0, 99.0],
        forgetting=[1.0, 3.0, math.nan],
    )
    costs = rows(method=["a", "l2"], seed=[0, 0], carried_bytes=[2000.0, 1000.0])
    head, _, *body = cells(method_table(runs, costs))
    assert head == ["method", "seeds", "accuracy (%)", "forgotten", "carried"]
    assert body == [
        ["`a`", "2", "91.00 ± 1.00", "2.00 ± 1.00", "2.00 kB"],
        ["`joint`", "1", "99.00", "–", "–"],
        ["`l2`", "1", "–", "–", "1.00 kB"],
    ]


def test_the_methods_come_in_the_order_that_is_named():
    runs = rows(method=["a", "b"], seed=[0, 0], average_accuracy=[1.0, 2.0])
    assert [row[0] for row in cells(method_table(runs, methods=["b", "a"]))[2:]] == ["`b`", "`a`"]
