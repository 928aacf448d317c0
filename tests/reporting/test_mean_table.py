"""Tables of means: what is known of a mean is shown, and nothing else."""

import math

import pandas as pd
import pytest

from vcl_radial.reporting.mean_table import (
    Value,
    Values,
    mean_table,
    metric_column,
    score_column,
)

MEANS = pd.DataFrame([{"metric": "auc", "mean": 90.0, "standard_error": 0.5, "error_within": 1.25}])
WHERE = {"metric": "auc"}


@pytest.mark.parametrize(
    ("changed", "within", "text"),
    [
        ({}, True, "90.0 ± 0.5 (1.2)"),
        ({}, False, "90.0 ± 0.5"),
        ({"standard_error": math.nan}, False, "90.0 (1.2)"),
        ({"error_within": math.nan}, True, "90.0 ± 0.5"),
        ({"mean": math.nan}, True, "–"),
        ({"metric": "nll"}, True, "–"),
    ],
)
def test_the_error_over_runs_is_shown_and_for_one_run_that_within_it(changed, within, text):
    column = score_column("AUC", {"a": MEANS.assign(**changed)}, WHERE, within=within)
    assert column.cell("a").text == text


def test_a_row_is_a_group_of_means_and_a_column_a_score():
    auc = score_column("AUC", {"a": MEANS, "b": MEANS.head(0)}, WHERE, better="higher")
    table = mean_table(["method"], {"a": ["A"], "b": ["B"]}, [auc], "title")
    assert [[cell.text for cell in row] for row in table.body] == [
        ["A", "90.0 ± 0.5 (1.2)"],
        ["B", "–"],
    ]
    assert [column.heading for column in table.heads] == ["method", "AUC"]
    assert [column.better for column in table.heads] == [None, "higher"]


def test_the_column_of_a_metric_has_its_declared_heading_direction_and_decimals():
    column = metric_column("nll", {"a": MEANS.assign(metric="nll", mean=0.25)})
    assert (column.heading, column.better) == ("NLL (nats) ↓", "lower")
    assert column.cell("a").text == "0.250 ± 0.500 (1.250)"


def test_published_values_are_in_italics_and_missing_values_are_dashes():
    ours = {"a": Value(1.004, 0.1), "b": Value(2.0), "c": Value(math.nan)}
    theirs = Values("theirs", {"a": Value(1.0, 0.5), "b": Value(2.01)}, published=True)
    rows = {name: [name] for name in "abc"}
    table = mean_table(["set"], rows, [Values("ours", ours, lambda row: 3), theirs])
    assert [[cell.text for cell in row] for row in table.body] == [
        ["a", "1.004 ± 0.100", "1.00 ± 0.50"],
        ["b", "2.000", "2.01"],
        ["c", "–", "–"],
    ]
    assert [cell.published for cell in table.body[0]] == [False, False, True]
