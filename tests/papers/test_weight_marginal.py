import math

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats

from reports.analysis.weight_marginal import density, draws, kurtosis, tail

SIZES = (2, 3, 10, 100)


def moment(power, D):
    """E |w|^power: the pole at 0 on a logarithmic axis."""
    value, _ = integrate.quad(
        lambda y: math.exp(y * (power + 1)) * density(math.exp(y), D), -25, 2.5, limit=200
    )
    return 2 * value


@pytest.mark.parametrize("D", SIZES)
def test_the_density_is_tricomis_function(D):
    for w in np.array([0.003, 0.2, 1.2, 4.0]) / math.sqrt(D):  # further out SciPy's is inexact
        z = w**2 / 2
        constant = math.exp(math.lgamma(D / 2)) / (math.pi * math.sqrt(2))
        expected = constant * math.exp(-z) * special.hyperu((D - 1) / 2, 1, z)
        assert density(w, D) == pytest.approx(expected, rel=1e-6)
        assert density(-w, D) == density(w, D)


@pytest.mark.parametrize("D", SIZES)
def test_mass_variance_and_kurtosis_of_the_density(D):
    assert moment(0, D) == pytest.approx(1, abs=1e-6)
    assert moment(2, D) == pytest.approx(1 / D, rel=1e-6)
    assert moment(4, D) / moment(2, D) ** 2 == pytest.approx(kurtosis(D), rel=1e-6)


def test_a_group_of_one_is_normal():
    for w in (0.0, 0.3, 2.0):
        assert density(w, 1) == pytest.approx(stats.norm.pdf(w))
        assert tail(w, 1) == pytest.approx(2 * stats.norm.sf(w))
    assert kurtosis(1) == 3


@pytest.mark.parametrize("D", SIZES)
def test_the_tail_is_the_integral_of_the_density(D):
    assert tail(0.0, D) == pytest.approx(1, abs=1e-6)
    for low, high in ((0.05, 0.2), (0.5, 2.0)):
        between, _ = integrate.quad(density, low, high, args=(D,))
        assert tail(low, D) - tail(high, D) == pytest.approx(2 * between, rel=1e-6)


def test_the_pole_at_zero_is_logarithmic():
    steps = [density(10.0**-k, 10) - density(10.0 ** -(k - 1), 10) for k in (5, 6, 7)]
    assert steps[0] > 0
    assert steps == pytest.approx([steps[0]] * 3, rel=1e-4)


@pytest.mark.parametrize("D", [1, 10])
def test_the_draws_of_the_posterior_have_this_tail(D):
    torch.manual_seed(0)
    sample = np.abs(draws(D, 100_000))
    assert len(sample) == 100_000
    for x in (0.05, 0.3, 1.0):
        p = tail(x, D)
        assert abs((sample > x).mean() - p) < 4 * math.sqrt(p * (1 - p) / len(sample))
