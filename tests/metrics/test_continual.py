"""Scores of a sequence of tasks: hand-worked matrices and identities."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from vcl_radial.errors import DataError
from vcl_radial.metrics import (
    METRICS,
    accuracy,
    accuracy_matrix,
    average_accuracy,
    backward_transfer,
    final_average,
    forgetting,
    forward_transfer,
    learning_accuracy,
    metric,
    minimum_accuracy,
    recency_bias,
    summary,
)

COMPARES_MOMENTS = (
    forgetting,
    backward_transfer,
    forward_transfer,
    learning_accuracy,
    minimum_accuracy,
    recency_bias,
)

# Rows: before training, after task 1, 2, 3. Columns: accuracy on task 1, 2, 3.
WORKED = np.array(
    [
        [50.0, 48.0, 52.0],
        [90.0, 52.0, 50.0],
        [95.0, 80.0, 60.0],
        [70.0, 60.0, 99.0],
    ]
)


def tidy(R, name="accuracy", rows=None):
    """The tidy table of a matrix whose row i belongs to after = i."""
    rows = range(len(R)) if rows is None else rows
    return pd.DataFrame(
        [(i, j + 1, name, R[i][j]) for i in rows for j in range(len(R[i]))],
        columns=["after", "task", "metric", "value"],
    )


def matrices(tasks):
    return hnp.arrays(np.float64, (tasks + 1, tasks), elements=st.floats(0.0, 100.0))


any_matrix = st.integers(2, 6).flatmap(matrices)


def test_the_matrix_of_a_table_is_the_matrix_it_was_made_of():
    matrix = accuracy_matrix(tidy(WORKED))
    assert matrix.index.tolist() == [0, 1, 2, 3]
    assert matrix.columns.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(matrix.to_numpy(), WORKED)


@pytest.mark.parametrize(
    ("score", "by_hand"),
    [
        (average_accuracy, (70 + 60 + 99) / 3),
        # Task 1: best 95 after task 2, now 70. Task 2: best 80, now 60.
        (forgetting, (25 + 20) / 2),
        (learning_accuracy, (90 + 80 + 99) / 3),
        (backward_transfer, (70 - 90 + 60 - 80) / 2),
        (forward_transfer, (52 - 48 + 60 - 52) / 2),
        # Task 1 after tasks 2 and 3: 95, 70. Task 2 after task 3: 60.
        (minimum_accuracy, (70 + 60) / 2),
    ],
)
def test_a_score_is_what_it_is_by_hand(score, by_hand):
    assert score(tidy(WORKED)) == pytest.approx(by_hand)


def test_forgetting_does_not_count_accuracy_before_a_task_was_trained():
    R = WORKED.copy()
    R[1, 1] = 100.0  # task 2 before it was trained
    assert forgetting(tidy(R)) == pytest.approx((25 + 20) / 2)


def test_recency_bias_by_hand():
    newest = np.array([[100.0, 0.0, 0.0], [30.0, 100.0, 0.0], [80.0, 90.0, 100.0]])
    table = tidy(np.vstack([np.zeros(3), newest]), "predicted_as_newest", rows=[1, 2, 3])
    assert recency_bias(pd.concat([tidy(WORKED), table])) == pytest.approx((80 + 90) / 2)


def test_average_nll_and_ece_are_means_of_the_last_row():
    table = pd.concat([tidy(WORKED), tidy(WORKED / 100, "nll"), tidy(WORKED / 10, "ece")])
    assert final_average(table, "nll") == pytest.approx((0.7 + 0.6 + 0.99) / 3)
    assert final_average(table, "ece") == pytest.approx((7 + 6 + 9.9) / 3)


def test_average_sampling_is_the_mean_of_the_last_row_and_0_of_a_point_estimate():
    table = pd.concat([tidy(WORKED), tidy(WORKED / 10, "sampling")])
    assert final_average(table, "sampling") == pytest.approx((7 + 6 + 9.9) / 3)
    assert final_average(tidy(0 * WORKED, "sampling"), "sampling") == 0


@given(any_matrix)
def test_a_run_that_never_falls_does_not_forget(R):
    R = np.maximum.accumulate(R, axis=0)
    assert forgetting(tidy(R)) <= 0.0


@given(any_matrix)
def test_a_run_that_stays_where_it_learnt_has_no_forgetting_and_no_backward_transfer(R):
    for j in range(R.shape[1]):
        R[j + 1 :, j] = R[j + 1, j]
    assert forgetting(tidy(R)) == 0.0
    assert backward_transfer(tidy(R)) == 0.0


@given(any_matrix)
def test_backward_transfer_is_minus_forgetting_when_each_task_is_best_when_learnt(R):
    for j in range(R.shape[1]):
        R[j + 1, j] = R[:, j].max()
    table = tidy(R)
    assert backward_transfer(table) == pytest.approx(-forgetting(table), abs=1e-9)


@given(any_matrix)
def test_what_is_left_is_what_was_learnt_and_what_came_or_went_since(R):
    table, T = tidy(R), R.shape[1]
    since = (T - 1) / T * backward_transfer(table)
    assert average_accuracy(table) == pytest.approx(learning_accuracy(table) + since, abs=1e-9)


@given(any_matrix)
def test_forgetting_is_at_least_minus_backward_transfer(R):
    table = tidy(R)
    assert forgetting(table) >= -backward_transfer(table) - 1e-9


@given(any_matrix)
def test_minimum_accuracy_is_at_most_the_final_accuracy_of_the_earlier_tasks(R):
    assert minimum_accuracy(tidy(R)) <= R[-1, :-1].mean() + 1e-9


@given(any_matrix)
def test_tasks_that_do_not_influence_each_other_have_no_forward_transfer(R):
    for j in range(R.shape[1]):
        R[: j + 1, j] = R[0, j]
    assert forward_transfer(tidy(R)) == 0.0


@settings(max_examples=30)
@given(any_matrix, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(R, random):
    table = pd.concat([tidy(R), tidy(R / 50, "nll")])
    order = list(range(len(table)))
    random.shuffle(order)
    assert summary(table.iloc[order]) == summary(table)


@pytest.mark.parametrize("score", COMPARES_MOMENTS)
def test_a_joint_run_has_no_score_that_compares_moments(score):
    joint = pd.concat([tidy(WORKED, m, rows=[0, 3]) for m in ("accuracy", "predicted_as_newest")])
    assert score(joint) is None
    assert average_accuracy(joint) == pytest.approx(WORKED[3].mean())


@pytest.mark.parametrize("score", COMPARES_MOMENTS)
def test_one_task_has_no_score_that_compares_moments(score):
    one = pd.concat([tidy([[50.0], [99.0]], m) for m in ("accuracy", "predicted_as_newest")])
    assert score(one) is None
    assert average_accuracy(one) == 99.0


def test_what_a_table_does_not_hold_is_none():
    scores = summary(tidy(WORKED, rows=[1, 2, 3]))
    undefined = {name for name, value in scores.items() if value is None}
    averages = {"average_nll", "average_ece", "average_sampling"}
    assert undefined == {"forward_transfer", "recency_bias"} | averages


def test_the_summary_holds_what_the_functions_say():
    table = pd.concat([tidy(WORKED), tidy(WORKED / 100, "nll")])
    scores = summary(table)
    for score in (average_accuracy, *COMPARES_MOMENTS):
        assert scores.pop(score.__name__) == score(table)
    assert scores.pop("average_nll") == final_average(table, "nll")
    assert scores == {"average_ece": None, "average_sampling": None}


def test_a_metric_of_a_function_and_a_line_is_in_the_summary(monkeypatch):
    monkeypatch.setitem(METRICS, "error", None)  # removed afterwards, as the other
    monkeypatch.setitem(METRICS, "worst_task", None)

    @metric("error (%)", 1, "lower")
    def error(log_probs, labels):
        return 100 - accuracy(log_probs, labels)

    @metric("worst task (%)", 2, "higher", of="run")
    def worst_task(tidy):
        return accuracy_matrix(tidy).iloc[-1].min()

    scores = summary(pd.concat([tidy(WORKED), tidy(100 - WORKED, "error")]))
    assert scores["average_error"] == pytest.approx(100 - scores["average_accuracy"])
    assert scores["worst_task"] == 60.0


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda t: t.drop(columns="metric"), "'metric' is missing"),
        (lambda t: t.replace("accuracy", "auc"), "'accuracy'"),
        (lambda t: pd.concat([t, t]), "accuracy of task 1 after task 0 occurs twice"),
        (lambda t: t[t["task"] != 2], r"must be 1 to 3, got \[1, 3\]"),
        (
            lambda t: t[t["after"] != 3],
            "after task 3, the last one; the run is not",
        ),
        (lambda t: t[t["after"] != 1], "task 1"),
    ],
)
def test_a_table_that_is_not_of_one_finished_run_is_refused(harm, words):
    with pytest.raises(DataError, match=words):
        average_accuracy(harm(tidy(WORKED)))
