"""The tables of a report as files, and what they say."""

import io
import math

import numpy as np
import pandas as pd
import pytest

from vcl_radial.report.figures.detail_tables import matrix_rows, matrix_table, signed
from vcl_radial.report.figures.over_seeds import accuracy_over_seeds
from vcl_radial.report.figures.report_files import report_files
from vcl_radial.report.figures.scores import COSTS
from vcl_radial.report.figures.tables import printed, seed_table, summary_table


def costs_of(results, **values):
    runs = results[["benchmark", "method", "seed"]].drop_duplicates()
    return runs.assign(**{name: values.get(name, math.nan) for name in COSTS})


@pytest.fixture
def results(two_seeds, make_run):
    joint = make_run("joint", 0, [[50.0, 50.0], [0.0, 0.0], [99.0, 98.0]], joint=True)
    return pd.concat([two_seeds, joint])


def read(text):
    return pd.read_csv(io.StringIO(text))


def test_every_table_reads_back_in_full_precision(results):
    files = report_files(results, costs_of(results), ["a", "b"], [("seeds", ["0, 1"])])
    summary = read(files["summary.csv"])
    np.testing.assert_array_equal(
        summary["average_accuracy"], summary_table(results)["average_accuracy"]
    )
    assert len(read(files["runs.csv"])) == 3
    cells = read(files["matrices.csv"])
    assert len(cells) == 2 * 3 + 1 * 3  # two tasks and their mean, at two moments or one
    assert set(cells["task_evaluated"]) == {"1", "2", "seen"}
    pd.testing.assert_frame_equal(read(files["results.csv"]), results.reset_index(drop=True))
    assert "- seeds: 0, 1" in files["summary.md"]


def test_costs_stand_in_the_tables_where_they_are_known(results):
    costs = costs_of(results, training_seconds=12.0)
    costs.loc[costs["method"] == "joint", "parameters"] = 1234567.0
    row = summary_table(results, costs).set_index("method").loc["joint"]
    assert (row["training_seconds"], row["parameters"]) == (12.0, 1234567.0)
    page = report_files(results, costs, ["a", "b"], [])["summary.md"]
    assert "| parameters |" in page.splitlines()[2]
    assert "| 12.0 | 1,234,567 |" in page
    assert "evaluation (s)" not in page
    assert page.count("| 12.0 ± 0.0 | – |") == 1


def test_a_run_has_one_row_of_costs(results):
    costs = costs_of(results)
    with pytest.raises(ValueError, match="not a one-to-one merge"):
        seed_table(results, pd.concat([costs, costs]))


def test_a_matrix_by_hand(results):
    table = matrix_table(results).set_index(["method", "task_trained", "task_evaluated"])
    assert table.loc[("radial-vcl", 2, 1), ["mean", "se"]].tolist() == [92.0, 2.0]
    assert table.loc[("radial-vcl", 2, "seen"), "mean"] == 94.75
    rows = matrix_rows(accuracy_over_seeds(results, "radial-vcl"), ["a", "b"])
    assert rows == [
        ["after training", "a", "b", "mean of tasks seen"],
        ["task 1", "98.50 ± 0.50", "52.00 ± 1.00", "98.50 ± 0.50"],
        ["task 2", "92.00 ± 2.00", "97.50 ± 0.50", "94.75 ± 1.25"],
    ]
    assert matrix_rows(accuracy_over_seeds(results, "joint"))[1][0] == "all tasks"


def test_names_cannot_break_out_of_the_markdown(make_run):
    R = [[50.0, 50.0], [99.0, 50.0], [99.0, 99.0]]
    name = "a|b <script>&"
    runs = pd.concat([make_run(m, s, R) for m in (name, "other") for s in (0, 1)])
    files = report_files(runs, costs_of(runs), ["<i>", "|"], [("commit", ["<b>"])])
    text = files["summary.md"] + files["details.md"]
    assert "<" not in text
    assert r"a\|b &lt;script>&amp;" in text
    for line in files["details.md"].splitlines():
        if line.startswith("| task"):
            assert line.replace(r"\|", "").count("|") == 5


@pytest.mark.parametrize(
    ("value", "text"), [(1.234, "+1.23"), (-1.234, "-1.23"), (0.001, "0.00"), (math.nan, "–")]
)
def test_a_difference_has_its_sign(value, text):
    assert signed(value, 2) == text


def test_what_is_the_same_for_all_seeds_has_no_spread():
    assert printed("parameters", 1234567.0, 0.0) == "1,234,567"
    assert printed("average_accuracy", 99.0, 0.0) == "99.00 ± 0.00"
    assert printed("parameters", math.nan) == "–"
