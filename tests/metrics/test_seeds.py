"""Mean and standard error over seeds."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vcl_radial.metrics import mean_and_standard_error

values = st.lists(st.floats(0.0, 100.0), min_size=2, max_size=20)


@given(values)
def test_standard_error_agrees_with_scipy(x):
    _, error = mean_and_standard_error(x)
    assert error == pytest.approx(stats.sem(x), abs=1e-9)


@given(values, st.floats(-50.0, 50.0))
def test_a_shift_moves_the_mean_and_not_the_standard_error(x, shift):
    mean, error = mean_and_standard_error(x)
    shifted_mean, shifted_error = mean_and_standard_error([value + shift for value in x])
    assert shifted_mean == pytest.approx(mean + shift, abs=1e-9)
    assert shifted_error == pytest.approx(error, abs=1e-9)


def test_a_hand_worked_example():
    # Deviations -1, 0, 1: variance 1, standard error 1 / sqrt(3).
    assert mean_and_standard_error([97.0, 98.0, 99.0]) == pytest.approx((98.0, 1 / math.sqrt(3)))


def test_one_seed_has_a_mean_and_no_spread():
    mean, error = mean_and_standard_error([98.7])
    assert mean == 98.7
    assert math.isnan(error)


def test_no_seed_has_neither():
    assert all(math.isnan(value) for value in mean_and_standard_error([]))
