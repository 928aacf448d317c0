"""Methods against one of them, paired by seed."""

import math

import pandas as pd
import pytest
from scipy import stats

from vcl_radial.report.figures import paired_differences
from vcl_radial.report.figures.differences import in_words


def results(scores):
    rows = [
        ("bench", method, seed, trained, task, "accuracy", value)
        for (method, seed), value in scores.items()
        for trained in (0, 1)
        for task in (1,)
    ]
    columns = ["benchmark", "method", "seed", "task_trained", "task_evaluated", "metric", "value"]
    return pd.DataFrame(rows, columns=columns)


def test_a_hand_worked_example():
    scores = {("a", 0): 90.0, ("a", 1): 80.0, ("b", 0): 93.0, ("b", 1): 81.0, ("b", 2): 10.0}
    (row,) = paired_differences(results(scores), "a").itertuples()
    assert (row.method, row.seeds) == ("b", 2)  # seed 2 has no partner
    assert row.difference == pytest.approx(2.0)
    assert row.difference_se == pytest.approx(1.0)
    assert row.p == 0.5


def test_swapping_the_reference_turns_the_sign():
    scores = {(m, s): 50.0 + 7 * s + (m == "b") * (s + 1) for m in "ab" for s in range(4)}
    (forth,) = paired_differences(results(scores), "a").itertuples()
    (back,) = paired_differences(results(scores), "b").itertuples()
    assert forth.difference == -back.difference == 2.5
    assert forth.p == back.p == 2 / 2**4


def test_one_seed_is_no_comparison():
    assert paired_differences(results({("a", 0): 90.0, ("b", 0): 93.0}), "a").empty


def test_the_effect_size_is_that_of_the_paired_t_test():
    differences = [1.0, 2.5, -0.5, 4.0]
    scores = {("a", s): 80.0 for s in range(4)} | {
        ("b", s): 80.0 + d for s, d in enumerate(differences)
    }
    (row,) = paired_differences(results(scores), "a").itertuples()
    t = stats.ttest_1samp(differences, 0.0).statistic
    assert row.effect == pytest.approx(t / math.sqrt(4))


@pytest.mark.parametrize(("gain", "effect"), [(0.1, math.inf), (-0.3, -math.inf)])
def test_the_same_difference_for_all_seeds_has_no_end_of_an_effect(gain, effect):
    scores = {(m, s): 70.1 + 3.3 * s + gain * (m == "b") for m in "ab" for s in range(3)}
    (row,) = paired_differences(results(scores), "a").itertuples()
    assert row.effect == effect


def test_no_difference_at_all_has_no_effect_size():
    scores = {(m, s): 70.1 + s for m in "ab" for s in range(3)}
    (row,) = paired_differences(results(scores), "a").itertuples()
    assert math.isnan(row.effect)


@pytest.mark.parametrize("seeds", [2, 3, 4, 5])
def test_too_few_seeds_are_said_to_be_so_however_clear_the_difference(seeds):
    scores = {(m, s): 50.0 + 7 * s + 20 * (m == "b") for m in "ab" for s in range(seeds)}
    (row,) = paired_differences(results(scores), "a").itertuples()
    assert row.p == 2 / 2**seeds
    assert row.words == f"too few seeds: with {seeds}, p is at least {row.p:.4g}"


def test_from_six_seeds_on_a_difference_can_be_shown():
    assert in_words(6, 1.0, 2 / 2**6) == "higher"
    assert in_words(6, -1.0, 2 / 2**6) == "lower"
    assert in_words(6, 1.0, 4 / 2**6) == "no difference shown"
    assert in_words(41, 1.0, math.nan) == "no exact test for so many seeds"
