"""Cells of means: what is known of a mean is shown, and nothing else."""

import math

import pandas as pd
import pytest

from vcl_radial.reporting.blocks import Column
from vcl_radial.reporting.mean_table import Score, cells, mean_table, of_metric

MEANS = pd.DataFrame([{"metric": "auc", "mean": 90.0, "standard_error": 0.5, "error_within": 1.25}])
AUC = Score(Column("AUC"), {"metric": "auc"})


@pytest.mark.parametrize(
    ("changed", "within", "text"),
    [
        ({}, True, "90.0 ± 0.5 (1.2)"),
        ({}, False, "90.0 ± 0.5"),
        ({"standard_error": math.nan}, False, "90.0 (1.2)"),
        ({"error_within": math.nan}, True, "90.0 ± 0.5"),
        ({"mean": math.nan}, True, ""),
        ({"metric": "nll"}, True, ""),
    ],
)
def test_the_error_over_runs_is_shown_and_for_one_run_that_within_it(changed, within, text):
    score = Score(AUC.column, AUC.where, within=within)
    assert cells(MEANS.assign(**changed), [score]) == [text]


def test_a_row_is_a_group_of_means_and_a_column_a_score():
    table = mean_table([(["a"], MEANS), (["b"], MEANS.head(0))], ["method"], [AUC], "title")
    assert table.rows == [["a", "90.0 ± 0.5 (1.2)"], ["b", ""]]
    assert [column.heading for column in table.columns] == ["method", "AUC"]


def test_the_column_of_a_metric_has_its_declared_heading_direction_and_decimals():
    score = of_metric("nll")
    assert (score.column.heading, score.column.better) == ("NLL (nats) ↓", "lower")
    assert cells(MEANS.assign(metric="nll", mean=0.25), [score]) == ["0.250 ± 0.500 (1.250)"]
