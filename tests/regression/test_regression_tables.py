import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from regression_helpers import final_scores, toy
from scipy import stats

from vcl_radial.metrics import METRICS, metric
from vcl_radial.reporting.blocks import Table, with_spread
from vcl_radial.reporting.scores import means as over_splits
from vcl_radial.runs.finished import Spec
from vcl_radial.runs.track import FinishedRun, objectives
from vcl_radial.tracks.regression import pictures, published, tables
from vcl_radial.tracks.regression.sections import report
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.tracks.regression.track import Regression


def tidy(rows):
    return pd.DataFrame(
        rows, columns=["part", "method", "task", "seed", "after", "metric", "value"]
    )


def scores(
    name="yacht", method="gaussian-vcl", values=(-1.0, -2.0), number=0, metric="log_likelihood"
):
    return [(name, method, "", k, number, metric, value) for k, value in enumerate(values)]


def lines(table):
    """The rows of a table as text."""
    return [[cell.text for cell in row] for row in table.body]


def test_a_gap_is_paired_by_split():
    """Splits differ far more than the ways to learn; a split that one way lacks is left out."""
    rng = np.random.default_rng(0)
    at_once = rng.normal(size=9) * 10
    after = at_once - 0.5 + 0.01 * rng.normal(size=9)
    rows = [
        *scores(values=at_once, number=0),
        *scores(values=at_once - 7, number=1),
        *scores(values=[*after[:-1], math.nan], number=2),
    ]
    (row,) = tables.gaps(tidy(rows)).to_dict("records")
    expected = (after - at_once)[:-1]
    assert row["splits"] == 8
    assert row["gap"] == pytest.approx(expected.mean())
    assert row["gap_error"] == pytest.approx(stats.sem(expected))
    assert row["gap"] == pytest.approx(row["in_sequence"] - row["at_once"])


def test_the_table_of_a_sequence_has_the_bytes_carried_where_they_are_known():
    rows = tidy([*scores(number=0), *scores(number=1), *scores(number=2)])
    plain = tables.gap_table(tables.gaps(rows), "log_likelihood")
    # Runs of all rows at once carry nothing.
    known = rows.assign(carried_bytes=np.where(rows["after"] > 0, 1234.0, np.nan))
    gaps = tables.gaps(known)
    assert gaps["carried_bytes"].tolist() == [1234.0]
    table = tables.gap_table(gaps, "log_likelihood")
    assert [column.heading for column in table.heads] == [
        *(column.heading for column in plain.heads),
        "carried",
    ]
    assert lines(table) == [[*line, "1.23 kB"] for line in lines(plain)]


def test_differences_are_paired_by_split_and_account_for_shared_rows():
    likelihoods = np.array([-1.0, -2.0, -9.0]), np.array([-1.5, -1.9, -9.5])
    rows = []
    for method, values in zip(("radial-vcl", "gaussian-vcl"), likelihoods, strict=True):
        rows += scores(method=method, values=values)
    rows += scores("power", "radial-vcl")
    # Not where the other was not measured.
    (line,) = tables.differences(tidy(rows), "radial-vcl", "gaussian-vcl").to_dict("records")
    gap = likelihoods[0] - likelihoods[1]
    assert (line["set"], line["seeds"]) == ("yacht", 3)
    assert line["difference"] == pytest.approx(gap.mean())
    # Nadeau and Bengio: the variance is (1/n + 1/9) s^2.
    assert line["difference_se"] == pytest.approx(gap.std(ddof=1) * (1 / 3 + 1 / 9) ** 0.5)
    assert tables.differences(tidy(scores()), "radial-vcl", "gaussian-vcl").empty


def test_ours_stand_beside_the_cell_of_the_same_set_and_column():
    means = over_splits(tidy([*scores("yacht"), *scores("power", values=(-2.8, -2.9))]))
    table = published.beside(means, "farquhar2020", "log_likelihood")
    assert [head.heading for head in table.heads] == [
        "set",
        "gaussian-vcl (MFVI): ours",
        "theirs",
    ]  # radial-vcl was not run
    assert lines(table) == [
        ["yacht", "-1.50 ± 0.50", "-4.20 ± 0.05"],
        ["power", "-2.85 ± 0.05", "-7.54 ± 0.00"],
    ]
    assert [cell.published for cell in table.body[0]] == [False, False, True]


def test_a_set_that_no_paper_has_stands_beside_nothing():
    means = over_splits(tidy(scores("diabetes")))
    assert published.beside(means, "farquhar2020", "log_likelihood") is None
    assert published.verdicts(means) == published.impossible_pairs(means) == []


def test_only_columns_that_stand_beside_a_method_are_spoken_of():
    rows = [*scores("kin8nm", "gaussian-vcl"), *scores("yacht", "gaussian-vcl")]
    means = over_splits(tidy(rows))
    assert not any("Dropout" in sentence for sentence in published.verdicts(means))
    lines = published.impossible_pairs(means)
    assert [line.split(" of ")[0] for line in lines] == ["kin8nm, MFVI"]
    with_dropout = over_splits(tidy([*rows, *scores("yacht", "mc-dropout")]))
    assert any("mc-dropout (Dropout)" in s for s in published.verdicts(with_dropout))


def test_a_verdict_counts_ties_at_two_decimals_and_names_what_is_worse():
    values = {"boston": -2.584, "yacht": -4.9, "power": -2.8}  # theirs: -2.58, -4.20, -7.54
    rows = [
        row for name, value in values.items() for row in scores(name, "gaussian-vcl", [value] * 2)
    ]
    (sentence,) = [s for s in published.verdicts(over_splits(tidy(rows))) if "(MFVI)" in s]
    assert "at least as high on 2 of 3 sets: worse on yacht" in sentence


def test_a_metric_is_one_function_and_one_line(monkeypatch):
    monkeypatch.setitem(METRICS, "mae", None)

    @metric("MAE", 2, "lower", of="rows")
    def mae(predicted):
        return predicted.average((predicted.mean - predicted.y).abs()) * predicted.scale

    results = final_scores(
        toy(), [0, 1], [Recipe(strategy="bayes_linear", posterior="none", steps=5)] * 2
    )
    assert all(0 < result["mae"] <= result["rmse"] for result in results)
    assert objectives("rows")["mae"].direction == "minimize"
    rows = pd.DataFrame([(0, name, value) for name, value in results[0].items()])
    stored = rows.set_axis(["slice", "metric", "value"], axis=1)
    spec = Spec(benchmark="b", method="m", seed=0, recipe={}, data={"set": "toy"})
    run = FinishedRun(Path(), Regression(), spec, {"seconds": 1.0}, {"scores": stored}, "b", "m")
    titles = [block.title for block in report([run])[0].blocks if isinstance(block, Table)]
    assert titles == ["log-likelihood (nats)", "RMSE", "MAE"]


def test_a_score_without_a_number_is_a_dash():
    assert with_spread(math.nan, math.nan, 2) == "–"
    assert with_spread(-1.234, math.nan, 2) == "-1.23"


def drawn_texts(figure):
    """What is written where: each text with its box."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    found = list(figure.texts)
    for axes in figure.axes:
        found += [*axes.texts, axes._left_title, axes.xaxis.label, axes.yaxis.label]
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            low, high = sorted(limits)
            found += [
                tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high
            ]
    return [(t.get_text(), t.get_window_extent(renderer)) for t in found if t.get_text()]


@pytest.mark.parametrize(("count", "first"), [(1, -9), (1, -5000), (4, -60)])
def test_no_label_of_the_pictures_covers_another(count, first):
    names = ["boston", "concrete", "power", "yacht"][:count]
    methods = ["bayes-linear", "gaussian-vcl", "radial-vcl", "deep-ensemble"]
    rng = np.random.default_rng(0)
    one = [r for n in names for m in methods for r in scores(n, m, rng.normal(-2, 0.3, 5))]
    several = [
        r
        for n in names
        for m in methods
        for k in range(4)
        for r in scores(n, m, rng.normal(first * 0.1 ** max(k - 1, 0), 0.3, 5), number=k)
    ]
    for figure in (
        pictures.log_likelihoods(over_splits(tidy(one))),
        pictures.over_slices(tidy(several)),
    ):
        texts = drawn_texts(figure)
        assert len(texts) > 5
        for k, (text, box) in enumerate(texts):
            assert "$" not in text
            for other, place in texts[:k]:
                assert not box.overlaps(place), (text, other)


def test_a_method_of_all_rows_at_once_stands_beside_others_in_sequence():
    sliced = [r for k in range(3) for r in scores("boston", "naive", number=k)]
    figure = pictures.over_slices(tidy([*sliced, *scores("boston", "bayes-linear")]))
    assert [line.get_linestyle() for line in figure.axes[0].lines].count("-") == 1
    assert not any("linear" in text for text, _ in drawn_texts(figure))


def test_pictures_are_drawn_where_everything_has_diverged():
    nothing = tidy(scores(values=(math.nan, math.nan)))
    pictures.log_likelihoods(over_splits(nothing)).canvas.draw()
    in_sequence = tidy([r for k in range(3) for r in scores(values=(math.nan,) * 2, number=k)])
    pictures.over_slices(in_sequence).canvas.draw()
