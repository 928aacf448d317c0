"""What our numbers say of a published claim."""

import numpy as np
import pytest
from scipy import stats

from vcl_radial.metrics import verdicts
from vcl_radial.metrics.verdicts import Verdict


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([1.0, 2.0, 1.5, 0.5, 2.5, 1.0], Verdict.REPRODUCED),  # p = 2 / 64
        ([-1.0, -2.0, -1.5, -0.5, -2.5, -1.0], Verdict.NOT_REPRODUCED),
        ([1.0, 2.0, 1.5, 0.5, 2.5], Verdict.NO_EVIDENCE),  # p = 2 / 32, whatever the size
        ([1.0, -2.0, 1.5, -0.5, 2.5, -1.0], Verdict.NO_EVIDENCE),
        ([0.0] * 10, Verdict.NO_EVIDENCE),
        ([1.0, float("nan"), 1.0, 1.0, 1.0, 1.0, 1.0], Verdict.NO_EVIDENCE),
        ([], Verdict.NO_EVIDENCE),
    ],
)
def test_a_difference_is_reproduced_where_its_sign_is_beyond_chance(differences, verdict):
    assert verdicts.verdict_of_difference(differences) is verdict


def test_noise_alone_is_called_a_difference_in_at_most_one_of_twenty():
    draws = np.random.default_rng(0).normal(size=(400, 8))
    wrong = [verdicts.verdict_of_difference(list(row)) is not Verdict.NO_EVIDENCE for row in draws]
    assert np.mean(wrong) < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def test_several_differences_are_told_by_holms_correction():
    clear, small, noise = [1.0] * 7, [0.5] * 6, [1.0, -2.0, 1.5, -0.5, 2.5, -1.0, 0.3]
    family = [clear, clear, [-d for d in clear], small, noise]  # p = 1/64 three times, 1/32
    assert verdicts.verdict_of_difference(clear) is Verdict.REPRODUCED
    assert verdicts.verdicts_of_family(family) == [Verdict.NO_EVIDENCE] * 5
    assert verdicts.verdicts_of_family([clear, noise]) == [Verdict.REPRODUCED, Verdict.NO_EVIDENCE]
    assert verdicts.verdicts_of_family([[-d for d in clear], noise])[0] is Verdict.NOT_REPRODUCED


def test_a_figure_is_reproduced_exactly_where_ours_is_equivalent_to_it():
    values = [98.0, 98.2, 98.1, 98.3]
    low, high = stats.t.interval(0.9, 3, np.mean(values), stats.sem(values))
    for edge, inwards in ((low + 0.5, -1e-6), (high - 0.5, 1e-6)):
        assert verdicts.verdict_of_figure(values, edge + inwards, 0.5) is Verdict.REPRODUCED
        assert verdicts.verdict_of_figure(values, edge - inwards, 0.5) is not Verdict.REPRODUCED
    # Equivalence comes first: a difference that a test shows may be one that does not count.
    assert stats.ttest_1samp(values, 98.4).pvalue < 0.05
    assert verdicts.verdict_of_figure(values, 98.4, 0.5) is Verdict.REPRODUCED


def test_a_figure_that_ours_is_not_equivalent_to_is_refuted_beyond_its_rounding():
    values = [98.0, 98.2, 98.1, 98.3]
    _, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert verdicts.verdict_of_figure(values, high + 0.04, 0.01) is Verdict.NOT_REPRODUCED
    rounded = verdicts.verdict_of_figure(values, high + 0.04, 0.01, rounding=0.05)
    assert rounded is Verdict.NO_EVIDENCE
    assert verdicts.verdict_of_figure([98.0], 98.0, 0.5) is Verdict.NO_EVIDENCE


def test_fewer_seeds_and_wider_spreads_reproduce_nothing():
    assert verdicts.verdict_of_figure([217.0, 267.0, 370.0], 285.0, 28.5) is Verdict.NO_EVIDENCE
    assert verdicts.verdict_of_figure([217.0, 267.0, 370.0], 900.0, 90.0) is Verdict.NOT_REPRODUCED
    many = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.1, 0.9]
    assert verdicts.verdict_of_figure(many, 1.0, 0.1) is Verdict.REPRODUCED
    assert verdicts.verdict_of_figure(many[:3], 1.0, 0.1) is Verdict.NO_EVIDENCE


def test_a_figure_with_a_spread_of_its_own_is_met_by_welchs_test():
    values = [98.0, 98.2, 98.1, 98.3]
    assert verdicts.verdict_of_figure(values, 97.4, 0.5) is Verdict.NOT_REPRODUCED
    wide = verdicts.verdict_of_figure(values, 97.4, 0.5, deviation=2.0, count=10)
    assert wide is Verdict.NO_EVIDENCE
    narrow = verdicts.verdict_of_figure(values, 97.4, 0.5, deviation=0.1, count=10)
    assert narrow is Verdict.NOT_REPRODUCED


def test_a_claim_of_several_parts_is_as_its_weakest():
    yes, no, open_ = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.NO_EVIDENCE
    assert verdicts.verdict_of_parts([yes, yes]) is yes
    assert verdicts.verdict_of_parts([yes, open_]) is open_
    assert verdicts.verdict_of_parts([yes, open_, no]) is no
    assert verdicts.verdict_of_parts(["reproduced", "not reproduced"]) is no
    assert verdicts.verdict_of_parts([]) is open_
