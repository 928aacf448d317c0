"""Mean and standard error over seeds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vcl_radial.metrics import holm, mean_and_standard_error, sign_flip_test, sign_test

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


@given(st.lists(st.floats(-50.0, 50.0).map(lambda x: round(x, 3)), min_size=2, max_size=9))
def test_the_sign_flip_test_agrees_with_scipys_permutation_test(differences):
    expected = stats.permutation_test(
        (np.array(differences),),
        lambda x, axis: x.sum(axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert sign_flip_test(differences) == pytest.approx(expected.pvalue)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_sign_test_agrees_with_scipys_binomial_test(counts):
    assert sign_test(*counts) == pytest.approx(stats.binomtest(*counts).pvalue)


def test_the_sign_test_of_no_pair_is_not_known():
    assert math.isnan(sign_test(0, 0))


def test_five_seeds_that_agree_give_the_smallest_p_that_five_can():
    assert sign_flip_test([1.0, 2.0, 0.5, 3.0, 0.1]) == 2 / 2**5
    assert sign_flip_test([-1.0, -2.0, -0.5, -3.0, -0.1]) == 2 / 2**5


def test_forty_seeds_that_agree_give_the_smallest_p_that_forty_can():
    assert sign_flip_test([1.0 + 0.01 * seed for seed in range(40)]) == 2 / 2**40


def test_many_seeds_without_a_difference_give_a_p_near_that_of_a_normal():
    d = np.random.default_rng(1).normal(0.2, 1.0, 40)
    normal = 2 * stats.norm.sf(abs(d.sum()) / np.sqrt((d**2).sum()))
    assert sign_flip_test(d) == pytest.approx(normal, abs=0.01)


def test_no_difference_at_all_gives_one():
    assert sign_flip_test([0.0, 0.0, 0.0]) == 1.0


def test_without_or_with_too_many_seeds_there_is_no_exact_test():
    assert math.isnan(sign_flip_test([]))
    assert math.isnan(sign_flip_test([1.0] * 41))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_difference_that_is_not_finite_tells_nothing(value):
    assert math.isnan(sign_flip_test([1.0, value, 2.0]))


def test_holm_agrees_with_a_hand_worked_example():
    # 3 x 0.01, 2 x 0.03 and 0.04, which may not be below the one before it.
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([]) == []


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_holm_lies_between_no_correction_and_that_of_bonferroni_and_keeps_the_order(p):
    corrected = holm(p)
    for raw, value in zip(p, corrected, strict=True):
        assert raw <= value <= min(1.0, len(p) * raw) + 1e-12
    order = sorted(range(len(p)), key=lambda i: p[i])
    assert [corrected[i] for i in order] == sorted(corrected)


def test_no_more_pairs_are_above_than_there_are():
    with pytest.raises(ValueError, match="7 of 5 pairs cannot be above"):
        sign_test(7, 5)
