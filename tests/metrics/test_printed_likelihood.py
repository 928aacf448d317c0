import math

import numpy as np
import pytest

from vcl_radial.metrics.printed_likelihood import log_likelihood_over_points


@pytest.mark.parametrize(("points", "rmse", "deviation"), [(4573, 4.57, 6.12), (160, 0.65, 0.81)])
def test_the_printed_likelihood_sums_over_points_and_mixes_units(points, rmse, deviation):
    # As their code has it: errors of 100 draws in the target's unit, the precision of a
    # standardised target, a sum over the points.
    rng = np.random.default_rng(0)
    errors = rng.normal(scale=rmse, size=(points, 100))
    tau = (deviation / rmse) ** 2
    sums = np.exp(-tau / 2 * errors**2).sum(axis=0)
    printed = np.mean(np.log(sums) - math.log(100) - math.log(2 * math.pi) / 2 + math.log(tau) / 2)
    assert log_likelihood_over_points(rmse, deviation, points) == pytest.approx(printed, abs=0.03)
