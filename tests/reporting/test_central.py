"""The blocks of the central question, on small tables whose answer is known."""

import itertools
import math

import pandas as pd
import pytest

from reports.central import analysis, replicates
from reports.central.page import HERE, contents, shown
from reports.central.runs import compare

NOISE = [0.1, -0.1, 0.05, -0.05, 0.0]


def table(columns, rows):
    """Rows of (names ..., accuracy) for each of five seeds, with a little noise."""
    lines = [
        (*row, seed, accuracy + NOISE[seed], accuracy + NOISE[seed], 1.0)
        for *row, accuracy in rows
        for seed in range(5)
    ]
    return pd.DataFrame(lines, columns=[*columns, "seed", "accuracy", "learnt", "forgotten"])


@pytest.mark.parametrize(("apart", "side"), [(2.0, "above"), (-2.0, "below"), (0.0, "within")])
def test_a_difference_that_was_put_in_is_found(apart, side):
    runs = table(["method"], [("a", 90.0 + apart), ("b", 90.0)])
    runs.loc[runs["method"] == "a", "accuracy"] += NOISE[::-1]
    result = compare(*(runs[runs["method"] == m] for m in "ab"))
    assert (result.side, result.mean) == (side, pytest.approx(apart))
    assert result.interval.low < apart < result.interval.high


def test_three_clusters_have_their_values_and_no_interval():
    runs = table(["method"], [("a", 95.0), ("b", 90.0)]).query("seed < 3")
    result = compare(*(runs[runs["method"] == m] for m in "ab"))
    assert math.isnan(result.interval.low)
    assert result.side == "undecided"
    assert str(result) == "+5.00 (+5.00, +5.00, +5.00)"


@pytest.mark.parametrize(
    ("at_large", "h1", "h2"),
    [(95.0, "holds", "holds"), (90.0, "does not hold", "holds"), (85.0, "does not hold", "holds")],
)
def test_h1_is_the_sign_at_both_readings_and_h2_the_margin_at_equal_noise(at_large, h1, h2):
    rows = [
        ("radial-vcl", 0.002476, math.nan, 97.0),
        ("gaussian-vcl", 0.002476, math.nan, 98.0),
        ("radial-vcl", 0.0498, math.nan, at_large),
        ("gaussian-vcl", 0.0498, math.nan, 90.0),
        ("radial-vcl", math.nan, 0.002476, 98.1),
        ("radial-vcl", math.nan, 0.0498, 90.2),
        ("naive", math.nan, math.nan, 79.0),
    ]
    runs = table(["method", "sigma", "initial_noise"], rows).assign(benchmark="s")
    comparisons = analysis.start_comparisons(runs)
    assert analysis.h1(comparisons, "s") == h1
    assert analysis.h2(comparisons, "s") == h2
    assert len(analysis.start(runs)) == len(rows)


def test_the_grid_finds_its_best_cell():
    rows = [("radial-vcl", e, 80.0 + e) for e in (3, 20)] + [("gaussian-vcl", 3, 85.0)]
    runs = table(["method", "epochs"], rows)
    runs = runs.assign(benchmark="s", sigma=0.0498, batch_size=1024)
    best = analysis.grid_best(runs).set_index("method")
    assert best["epochs"].to_dict() == {"radial-vcl": 20, "gaussian-vcl": 3}
    wide = analysis.grid(runs).set_index("epochs")
    assert wide.loc[20, "radial 0.0498"] == pytest.approx(100.0)
    assert math.isnan(wide.loc[20, "Gaussian 0.0498"])


def test_cells_of_the_mechanism_are_compared_at_the_same_slope():
    rows = [
        ("radial-vcl", "layer", math.nan, 1.0, 95.0),
        ("radial-penalty-no-noise", "layer", math.nan, 1.0, 95.1),
        ("radial-penalty-gaussian-noise", "layer", math.nan, 1.0, 92.0),
        ("group-lasso", math.nan, "layer", 506.0, 95.0),
        ("gaussian-vcl", math.nan, math.nan, 1.0, 90.0),
        ("gaussian-vcl-mean", math.nan, math.nan, 1.0, 88.0),
    ]
    runs = table(["method", "grouping", "options.groups", "kl_weight"], rows)
    runs = runs.assign(benchmark="s", moved=1.0, units_at_rest=0.0)
    compared = analysis.mechanism_comparisons(runs).set_index("of")["side"]
    assert compared.to_dict() == {
        "H3, no noise": "within",
        "H3, Gaussian noise": "above",
        "H4, group lasso": "within",
    }
    assert analysis.tally(compared.reset_index(), "H4") == "within 1 of 1"
    assert set(analysis.mechanism(runs)["penalty"]) == {"radial", "Gaussian", "group lasso"}
    assert analysis.mean_networks(runs)["side"].tolist() == ["above"]


def test_a_curve_is_read_where_it_forgets_so_much_and_says_where_it_does_not():
    assert analysis.crossing([4.0, 2.0, 0.0], [99.0, 98.0, 97.0], 1.0) == 1.5
    assert analysis.crossing([1.0, 1.0, 3.0, 0.0], [90.0, 95.0, 99.0, 80.0], 1.0) == 1.0
    assert math.isnan(analysis.crossing([4.0, 2.0, 1.0], [99.0, 98.0, 97.0], 0.5))


def test_the_frontier_scores_tests_at_the_weight_matched_on_validation():
    lines = []
    kinds = itertools.product(["radial-vcl", "gaussian-vcl"], ["validation", "test"], range(4))
    for method, part, seed in kinds:
        for weight, forgotten in ((0.1, 4.0), (1.0, 2.0), (10.0, 0.6)):
            # The validation curves are equal; on test images radial learns a point more.
            learnt = 95.0 + forgotten + (method == "radial-vcl") * (part == "test")
            lines.append((method, part, seed, weight, forgotten, learnt, 90.0 + forgotten))
    columns = ["method", "part", "seed", "kl_weight", "forgotten", "learnt", "accuracy"]
    runs = pd.DataFrame(lines, columns=columns).assign(benchmark="s", sigma=0.0498)
    points = analysis.frontier(runs)
    of = analysis.frontier_means(points).set_index(["method", "forgotten"])
    assert of.loc[("radial-vcl", 2.0), ["weight", "learnt", "accuracy"]].tolist() == [
        1.0,
        98.0,
        92.0,
    ]
    assert of.loc[("radial-vcl", 1.0), "learnt"] == pytest.approx(97.0)
    assert of.loc[("radial-vcl", 5.0), "reached"] == "0 of 4 seeds"
    compared = analysis.frontier_comparisons(points)
    sides = compared[compared["of"] == "radial − Gaussian"].set_index("forgotten")["side"]
    assert sides.to_dict() == {
        0.5: "not reached by both",
        1.0: "above",
        2.0: "above",
        5.0: "not reached by both",
    }


def test_searches_are_tested_by_their_means_and_corrected_for_four_tests():
    lines = []
    apart = {"radial-vcl": 3.0, "gaussian-vcl": 0.0, "radial-vcl-eq44": 3.0}
    for stream, (method, more), search, seed in itertools.product(
        ["split-mnist-multi-head", "omniglot", "cifar10"], apart.items(), range(4), range(4)
    ):
        spread = 0.1 * (search - 1.5) * (method == "radial-vcl")
        lines.append((stream, method, search, seed, 80.0 + more + spread + NOISE[seed]))
    columns = ["benchmark", "method", "search", "seed", "accuracy"]
    tests = replicates.searches(pd.DataFrame(lines, columns=columns))
    confirmatory = tests[tests["benchmark"] != "split-mnist-multi-head"]
    h6, h7 = (tests[tests["of"].str.startswith(name)] for name in ("H6", "H7"))
    assert h6["side"].tolist() == ["above"] * 3
    assert h7["side"].tolist() == ["within"] * 3
    assert h6["difference"].tolist() == pytest.approx([3.0] * 3)
    assert tests[tests["benchmark"] == "split-mnist-multi-head"]["holm"].isna().all()
    first = confirmatory.sort_values("p").iloc[0]
    assert first["holm"] == pytest.approx(4 * first["p"])


def test_orders_count_in_how_many_radial_is_above():
    runs = table(["method"], [("radial-vcl", 92.0), ("gaussian-vcl", 90.0)])
    orders = replicates.orders(runs.assign(benchmark="s", sigma=0.0498)).set_index("of")
    assert orders.loc["radial − Gaussian", ["side", "above in"]].tolist() == ["above", "5 of 5"]


def test_photographs_count_after_the_last_site_and_figures_at_the_end_of_a_curve():
    columns = ["method", "settings", "seed", "after", "task", "metric", "value"]
    rows = [
        (method, "", seed, after, "test", "auc", str(80 + value + int(after) + NOISE[seed]))
        for method, value in (("radial-vcl", 5), ("naive", 0))
        for seed in range(5)
        for after in ("1", "2")
    ]
    rows = pd.DataFrame(rows, columns=columns)
    scores = replicates.photographs(rows).set_index("method")["value"]
    assert scores.to_dict() == pytest.approx({"radial-vcl": 87.0, "naive": 82.0})
    ends = replicates.figures(rows.assign(metric="NLL"))
    assert ends.set_index("method")["value"].to_dict() == pytest.approx(scores.to_dict())
    last = rows[rows["after"] == "2"]
    assert replicates.photograph_comparisons(last, ["naive"])["side"].tolist() == ["above"]


def test_repeats_compare_the_methods_of_the_confirmatory_page():
    rows = [("best-radial-vcl", 95.0), ("best-gaussian-vcl", 95.0), ("best-radial-vcl-eq44", 80.0)]
    repeats = replicates.repeats(table(["method"], rows).assign(benchmark="s"))
    assert repeats["side"].tolist() == ["within", "above", "undecided"]


def test_a_block_that_is_not_finished_is_not_analysed():
    made = contents(HERE)
    for name, tables in made["sections"].items():
        assert tables, name
    unfinished = [name for name, (_, at) in made["blocks"].items() if not at.complete]
    assert not any(f"({name})" in section for name in unfinished for section in made["sections"])


def test_a_mean_and_its_error_share_a_cell():
    text = shown(pd.DataFrame({"of": ["a"], "x": [1.0], "x ±": [0.25], "p": [0.01234]}))
    assert text.splitlines()[-1] == "| a | 1.00 ± 0.25 | 0.01234 |"
