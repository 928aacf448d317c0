"""The table of a comparison, against hand-worked numbers."""

import csv
import io
import math

import numpy as np
import pandas as pd
import pytest
from leaderboards import summary_of, to_markdown, to_text

from vcl_radial.errors import DataError
from vcl_radial.metrics import summary
from vcl_radial.reporting.figures import to_csv


@pytest.fixture
def results(two_seeds, make_run):
    joint = make_run("joint", 0, [[50.0, 50.0], [0.0, 0.0], [99.0, 98.0]], joint=True)
    return pd.concat([two_seeds, joint])


def test_means_and_standard_errors_by_hand(results):
    row = summary_of(results).iloc[0]
    assert (row["benchmark"], row["method"], row["seeds"]) == ("split-fashion", "radial-vcl", 2)
    # Seed 0: ACC 93.5, forgetting 98 - 90 = 8, FWT 51 - 48. Seed 1: 96, 5, 53 - 48.
    expected = {
        "average_accuracy": (94.75, 1.25),
        "forgetting": (6.5, 1.5),
        "learning_accuracy": (98.0, 0.5),
        "backward_transfer": (-6.5, 1.5),
        "forward_transfer": (4.0, 1.0),
        "minimum_accuracy": (92.0, 2.0),
        "average_nll": (1.895, 0.025),
        "average_ece": (18.95, 0.25),
    }
    for name, (mean, error) in expected.items():
        assert row[name] == pytest.approx(mean)
        assert row[f"{name}_se"] == pytest.approx(error)
    assert math.isnan(row["recency_bias"])


def test_every_score_of_a_run_has_its_column(results):
    columns = summary_of(results).columns.tolist()
    scores = list(summary(results[(results["method"] == "radial-vcl") & (results["seed"] == 0)]))
    assert columns[:3] == ["benchmark", "method", "seeds"]
    scores.remove("average_sampling")  # which a run from before this score was there does not know
    assert columns[3:-1:2] == scores
    assert columns[4::2] == [f"{score}_se" for score in scores]
    assert columns[-1] == "best"


@pytest.mark.parametrize(("moved", "is_shown"), [((0.0, 0.0), False), ((0.0, 0.25), True)])
def test_how_far_sampling_moves_predictions_is_shown_where_some_method_samples(
    make_run, moved, is_shown
):
    runs = [make_run(f"method {i}", 0, [[50.0], [90.0]]) for i in range(2)]
    spread = [
        run[run["metric"] == "ece"].assign(metric="sampling", value=value)
        for run, value in zip(runs, moved, strict=True)
    ]
    table = summary_of(pd.concat([*runs, *spread]))
    assert table["average_sampling"].tolist() == list(moved)
    text = to_markdown(table)
    assert ("sampling (%)" in text) == is_shown
    if is_shown:
        assert [line.split(" | ")[-1] for line in text.splitlines()[2:4]] == ["0.000 |", "0.250 |"]


def test_markdown_by_hand(results):
    assert to_markdown(summary_of(results)) == (
        "| method | seeds | accuracy (%) ↑ | forgetting ↓ | learnt (%) ↑ | BWT ↑ | FWT ↑ "
        "| min-ACC (%) ↑ | NLL (nats) ↓ | ECE (%) ↓ |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| radial-vcl | 2 | 94.75 ± 1.25 | 6.50 ± 1.50 | 98.00 ± 0.50 | -6.50 ± 1.50 "
        "| 4.00 ± 1.00 | 92.00 ± 2.00 | 1.895 ± 0.025 | 18.95 ± 0.25 |\n"
        "| joint | 1 | 98.50 | – | – | – | – | – | 1.970 | 19.70 |\n"
        "\nNothing is marked as best: that needs 6 to 40 seeds that all methods share.\n"
    )


def test_with_a_head_for_each_task_there_is_no_forward_transfer(results):
    table = summary_of(results[results["task"] <= results["after"]])
    assert table["forward_transfer"].isna().all()
    assert "FWT" not in to_markdown(table) + to_text(table)


def test_the_text_for_a_terminal_is_aligned(results):
    *lines, legend = to_text(summary_of(results)).splitlines()
    assert legend == "Nothing is marked as best: that needs 6 to 40 seeds that all methods share."
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    assert lines[2].startswith("radial-vcl  ")
    assert lines[2].split()[1:5] == ["2", "94.75", "±", "1.25"]


def test_the_benchmark_is_shown_only_where_there_are_several(results):
    both = pd.concat([results, results.assign(benchmark="permuted-mnist")])
    assert "split-fashion" not in to_markdown(summary_of(results))
    text = to_markdown(summary_of(both))
    assert text.count("| split-fashion |") == text.count("| permuted-mnist |") == 2


def test_csv_gives_the_table_back_in_full_precision(results):
    table = summary_of(results)
    header, *rows = csv.reader(io.StringIO(to_csv(table)))
    assert header == table.columns.tolist()
    for cells, (_, row) in zip(rows, table.iterrows(), strict=True):
        assert cells[:3] == [row["benchmark"], row["method"], str(row["seeds"])]
        numbers = [float(cell) if cell else math.nan for cell in cells[3:-1]]
        np.testing.assert_array_equal(numbers, row.iloc[3:-1].to_numpy(dtype=float))


def test_methods_keep_the_order_in_which_they_appear(make_run):
    R = [[50.0], [99.0]]
    table = summary_of(pd.concat([make_run(name, 0, R) for name in ("b", "c", "a")]))
    assert table["method"].tolist() == ["b", "c", "a"]


def test_a_bar_in_a_name_does_not_break_the_markdown(make_run):
    text = to_markdown(summary_of(make_run("a|b", 0, [[50.0], [99.0]])))
    assert "| a\\|b |" in text


def test_a_negative_zero_is_printed_as_zero(make_run):
    R = [[50.0, 50.0], [99.0, 50.0], [98.999, 99.0]]
    line = to_markdown(summary_of(make_run("m", 0, R))).splitlines()[2]
    assert line.startswith("| m | 1 | 99.00 | 0.00 | 99.00 | 0.00 | 0.00 |")


def test_an_unfinished_run_is_named(results, make_run):
    stopped = make_run("naive", 7, [[50.0, 50.0], [99.0, 50.0]])
    with pytest.raises(DataError, match=r"split-fashion, naive, seed 7: .* not finished"):
        summary_of(pd.concat([results, stopped]))
