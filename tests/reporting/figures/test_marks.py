"""Which methods a table marks as best."""

import math

import pandas as pd
import pytest
from leaderboards import summary_of, to_markdown, to_text

from vcl_radial.reporting.figures import to_csv
from vcl_radial.reporting.figures.marks import best_methods, legend


def by_seed(**methods: list[float]) -> pd.DataFrame:
    """Average accuracies by seed, as `seed_table` lays them out."""
    rows = [
        {"method": method, "seed": seed, "average_accuracy": value}
        for method, values in methods.items()
        for seed, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def with_forgetting(table: pd.DataFrame, **values: float) -> pd.DataFrame:
    return table.assign(forgetting=table["method"].map(values))


NOISE = [0.1, -0.2, 0.3, -0.1, 0.2, -0.3]


def around(mean: float, spread: float = 1.0) -> list[float]:
    return [mean + spread * noise for noise in NOISE]


def test_all_that_six_seeds_do_not_tell_from_the_best_are_marked():
    table = by_seed(best=around(98.87), near=around(98.86, -1.0), far=around(90.0))
    assert best_methods(table) == {"average_accuracy": {"best", "near"}}


def test_a_difference_in_every_one_of_six_seeds_is_one_however_small():
    table = by_seed(best=around(98.87), below=around(98.86))
    assert best_methods(table) == {"average_accuracy": {"best"}}


def test_five_seeds_mark_nothing_however_far_apart():
    table = by_seed(best=around(99.0)[:5], far=around(20.0)[:5])
    assert best_methods(table) == {"average_accuracy": set()}


def test_nothing_is_marked_where_the_best_has_too_few_seeds():
    table = by_seed(best=[99.9], a=around(99.0), b=around(20.0))
    assert best_methods(table) == {"average_accuracy": set()}


def test_a_method_with_too_few_seeds_is_not_compared_with_the_best():
    table = by_seed(best=around(99.0), near=around(98.9)[:5], far=around(20.0))
    assert best_methods(table) == {"average_accuracy": {"best"}}


def test_seeds_that_only_one_method_has_make_no_pair():
    table = by_seed(best=around(99.0), other=around(20.0))
    table.loc[table["method"] == "other", "seed"] += 1
    assert best_methods(table) == {"average_accuracy": set()}


def test_the_same_scores_are_equally_good():
    table = by_seed(a=around(99.0), b=around(99.0))
    assert best_methods(table) == {"average_accuracy": {"a", "b"}}


def test_forgetting_is_compared_only_among_the_best_in_accuracy():
    table = by_seed(learns=around(90.0), near=around(90.01, -1.0), learns_one_task=around(20.0))
    table = with_forgetting(table, learns=3.0, near=4.0, learns_one_task=0.0)
    assert best_methods(table) == {
        "average_accuracy": {"learns", "near"},
        "forgetting": {"learns"},
    }


def test_a_joint_run_which_has_no_forgetting_keeps_no_other_method_from_a_mark():
    table = by_seed(joint=around(99.0), a=around(90.0), b=around(90.01, -1.0))
    table = with_forgetting(table, a=3.0, b=4.0)
    assert best_methods(table)["forgetting"] == {"a"}


def test_a_method_alone_is_not_marked():
    assert best_methods(by_seed(alone=around(90.0))) == {"average_accuracy": set()}


@pytest.mark.parametrize(("seeds", "best"), [(40, {"a", "b"}), (41, set())])
def test_of_more_seeds_than_the_test_takes_none_is_marked(seeds, best):
    many = [90.0 + k / 100 for k in range(seeds)]
    assert best_methods(by_seed(a=many, b=many))["average_accuracy"] == best


def test_a_score_without_end_is_not_equally_good():
    table = by_seed(a=around(90.0), b=around(90.0))
    table = table.assign(average_nll=[0.2] * 6 + [0.1] * 5 + [math.inf])
    assert best_methods(table)["average_nll"] == {"a"}


@pytest.fixture
def results(make_run):
    """Accuracies 89 and 84 with the same forgetting, and 50 without any: it learned nothing."""
    made = {"good": (90.0, 88.0), "worse": (85.0, 83.0), "idle": (50.0, 50.0)}
    return pd.concat(
        make_run(method, seed, [[50.0, 50.0], [first, 50.0], [last + seed / 10, first]])
        for method, (first, last) in made.items()
        for seed in range(6)
    )


def test_marks_are_bold_in_markdown_and_stars_on_a_terminal(results):
    table = summary_of(results[results["task"] <= results["after"]])
    good, worse, idle = to_markdown(table).splitlines()[2:5]
    assert good.startswith("| good | 6 | **89.12 ± 0.04** |")
    assert "**" not in worse
    assert "| -0.25 ± 0.08 |" in idle  # its forgetting, which is not marked
    lines = to_text(table).splitlines()
    assert "89.12 ± 0.04 *" in lines[2]
    assert len({line.index("6") for line in lines[2:5]}) == 1
    for text in (to_markdown(table), to_text(table)):
        rule = "Marked: not shown to be worse than the best (exact sign-flip test, p ≥ 0.05, at"
        assert rule in " ".join(text.split())


def test_marks_stand_in_the_csv_by_the_names_of_the_scores(results):
    best = dict(zip(*summary_of(results)[["method", "best"]].to_numpy().T, strict=True))
    assert {"average_accuracy", "minimum_accuracy"} <= set(best["good"].split())
    assert "average_accuracy" not in best["worse"]
    assert to_csv(summary_of(results)).splitlines()[0].endswith(",best")


def test_a_table_of_one_method_has_no_line_about_marks(results):
    alone = summary_of(results[results["method"] == "good"])
    assert legend(alone) == ""
    assert to_markdown(alone).count("\n") == 3
