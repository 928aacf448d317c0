import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from reports.analysis.soap_bubble import (
    distances,
    distances_between,
    gaussian_density,
    radial_density,
)
from vcl_radial.posteriors import Gaussian, Radial


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("D", [1, 3, 10, 1000, 36_864])
def test_the_density_of_a_gaussians_distance_is_equation_6_and_integrates_to_one(D):
    r = math.sqrt(D) + np.array([-0.6, -0.1, 0.5, 1.3])
    log_p = (1 - D / 2) * math.log(2) - math.lgamma(D / 2) + (D - 1) * np.log(r) - r**2 / 2
    assert gaussian_density(r, D) == pytest.approx(np.exp(log_p), rel=1e-6)
    low, high = max(0.0, math.sqrt(D) - 9), math.sqrt(D) + 9
    whole, _ = integrate.quad(lambda r: float(gaussian_density(r, D)), low, high)
    assert whole == pytest.approx(1, abs=1e-7)


def test_the_density_of_a_radial_distance_integrates_to_one_and_is_highest_at_the_mean():
    assert integrate.quad(lambda r: float(radial_density(r)), 0, 40)[0] == pytest.approx(1)
    density = radial_density(np.linspace(0, 5, 100))
    assert (np.diff(density) < 0).all()


@pytest.mark.parametrize("D", [1, 2, 10, 300])
def test_the_draws_of_the_posteriors_have_these_densities(D):
    for family, law in ((Gaussian, stats.chi(D)), (Radial, stats.halfnorm)):
        assert stats.kstest(distances(family, D, 4000).numpy(), law.cdf).pvalue > 1e-3


def test_as_many_draws_as_asked_for_come_in_blocks_too():
    # Two blocks and a rest.
    assert distances(Radial, 900_000, 5).shape == (5,)
    assert distances_between(Radial, 900_000, 5).shape == (5,)


@pytest.mark.parametrize("D", [100, 2500])
def test_two_draws_are_apart_by_sqrt_2d_for_a_gaussian_and_by_sqrt_2_for_a_radial(D):
    for family, expected in ((Gaussian, 2 * D), (Radial, 2.0)):
        squares = distances_between(family, D, 2000).square()
        error = float(squares.std()) / math.sqrt(2000)
        assert abs(float(squares.mean()) - expected) < 4 * error
