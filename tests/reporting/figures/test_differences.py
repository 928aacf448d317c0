"""Methods against one of them, paired by seed."""

import math

import pandas as pd
import pytest
from scipy import stats

from vcl_radial.metrics import holm, sign_flip_test
from vcl_radial.reporting.figures import paired_differences
from vcl_radial.reporting.figures.differences import describe_p


def results(scores):
    rows = [
        ("bench", method, seed, trained, task, "accuracy", value)
        for (method, seed), value in scores.items()
        for trained in (0, 1)
        for task in (1,)
    ]
    columns = ["benchmark", "method", "seed", "after", "task", "metric", "value"]
    return pd.DataFrame(rows, columns=columns)


def test_a_hand_worked_example():
    scores = {("a", 0): 90.0, ("a", 1): 80.0, ("b", 0): 93.0, ("b", 1): 81.0, ("b", 2): 10.0}
    (row,) = paired_differences(results(scores), "a").itertuples()
    assert (row.method, row.seeds) == ("b", 2)  # seed 2 has no partner
    assert row.difference == pytest.approx(2.0)
    assert row.difference_se == pytest.approx(1.0)
    assert math.isnan(row.p)


def test_swapping_the_reference_turns_the_sign():
    scores = {(m, s): 50.0 + 7 * s + (m == "b") * (s + 1) for m in "ab" for s in range(6)}
    (forth,) = paired_differences(results(scores), "a").itertuples()
    (back,) = paired_differences(results(scores), "b").itertuples()
    assert forth.difference == -back.difference == 3.5
    assert forth.p == back.p == 2 / 2**6


def test_the_rows_of_a_table_are_one_family():
    gains = {"a": 0.0, "b": 1.0, "c": -2.0, "d": 1.0}
    # Of d two seeds of eight have the other sign, and of b and c none.
    scores = {
        (m, s): 50.0 + 7 * s + gain * (-1 if m == "d" and s < 2 else 1) * (1 + s / 100)
        for m, gain in gains.items()
        for s in range(8)
    }
    rows = paired_differences(results(scores), "a")
    alone = [
        2 / 2**8,
        2 / 2**8,
        sign_flip_test([(1 + s / 100) * (-1 if s < 2 else 1) for s in range(8)]),
    ]
    assert rows["p"].tolist() == pytest.approx(holm(alone))
    assert rows["words"].tolist() == ["higher", "lower", "no difference shown"]


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
    assert math.isnan(row.p)
    assert row.words == "too few seeds: a test takes 6"


def test_from_six_seeds_on_a_difference_can_be_shown():
    assert describe_p(6, 1.0, 2 / 2**6) == "higher"
    assert describe_p(6, -1.0, 2 / 2**6) == "lower"
    assert describe_p(6, 1.0, 4 / 2**6) == "no difference shown"
    assert describe_p(41, 1.0, math.nan) == "no exact test for so many seeds"
