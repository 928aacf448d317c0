"""Two heaps beside a threshold."""

import numpy as np
import pytest

from vcl_radial.metrics.bimodality import bimodality_gap_fraction


def test_far_heaps_have_nothing_between_them_and_one_heap_has():
    draws = np.random.default_rng(0).normal(size=4000)
    far = np.concatenate([draws - 10, draws + 10])
    assert bimodality_gap_fraction(far, 0.0) == 0.0
    # Of one Gaussian, cut at its middle: the medians are at -0.674 and 0.674, a third of that is
    # 0.2248 on either side of 0, and it holds 17.8 %.
    assert bimodality_gap_fraction(draws, 0.0) == pytest.approx(0.178, abs=0.02)


def test_bars_say_what_their_numbers_say():
    values, counts = [-3.0, -1.0, 0.5, 2.0, 3.0], [4, 2, 1, 3, 5]
    whole = np.repeat(values, counts)
    assert bimodality_gap_fraction(values, 0.0, counts) == bimodality_gap_fraction(whole, 0.0)
    assert bimodality_gap_fraction([1.0, 2.0], 0.0) == 1.0
