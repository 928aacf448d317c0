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
    assert verdicts.of_difference(differences) is verdict


def test_noise_alone_is_called_a_difference_in_at_most_one_of_twenty():
    draws = np.random.default_rng(0).normal(size=(400, 8))
    wrong = [verdicts.of_difference(list(row)) is not Verdict.NO_EVIDENCE for row in draws]
    assert np.mean(wrong) < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def test_a_figure_is_reproduced_within_students_interval():
    values = [11.0, 12.0, 13.0, 14.0]
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert verdicts.interval(values) == pytest.approx((low, high))
    assert verdicts.of_figure(values, low + 1e-9) is Verdict.REPRODUCED
    assert verdicts.of_figure(values, high + 0.04) is Verdict.NOT_REPRODUCED
    assert verdicts.of_figure(values, high + 0.04, rounding=0.05) is Verdict.REPRODUCED
    assert verdicts.of_figure([1.0], 1.0) is Verdict.NO_EVIDENCE


def test_a_wide_interval_reproduces_nothing_and_can_refute():
    assert verdicts.of_figure([217.0, 267.0, 370.0], 125.0) is Verdict.NO_EVIDENCE
    assert verdicts.of_figure([217.0, 267.0, 370.0], 900.0) is Verdict.NOT_REPRODUCED


def test_a_claim_of_several_parts_is_as_its_weakest():
    yes, no, open_ = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.NO_EVIDENCE
    assert verdicts.together([yes, yes]) is yes
    assert verdicts.together([yes, open_]) is open_
    assert verdicts.together([yes, open_, no]) is no
    assert verdicts.together(["reproduced", "not reproduced"]) is no
    assert verdicts.together([]) is open_
