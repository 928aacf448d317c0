"""Methods against one of them, paired by seed."""

import pandas as pd
import pytest

from vcl_radial.figures import paired_differences


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
