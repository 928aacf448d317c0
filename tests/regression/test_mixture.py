import math

import numpy as np
import pytest
import torch
from regression_helpers import lane_data
from scipy import integrate, stats
from scipy.special import logsumexp

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.likelihoods.noise_precision import NoisePrecision
from vcl_radial.tracks.regression.scores import score


def test_the_log_density_is_scipys_for_gaussian_and_student_t_components():
    torch.manual_seed(0)
    mean, scale = torch.randn(6, 2, 5), torch.rand(2, 5) + 0.1
    degrees, y = torch.tensor([[3.0], [41_000.0]]), torch.randn(2, 5) * 3
    log_densities = stats.norm.logpdf(y, mean, scale)
    np.testing.assert_allclose(
        Mixture(mean, scale).log_density(y),
        logsumexp(log_densities, axis=0) - math.log(6),
        rtol=1e-6,
    )
    log_densities = stats.t.logpdf(y, degrees, mean, scale)
    np.testing.assert_allclose(
        Mixture(mean, scale, degrees).log_density(y),
        logsumexp(log_densities, axis=0) - math.log(6),
        rtol=1e-6,
    )


def test_the_noise_is_integrated_out():
    """Student-t against the integral of Gaussians over the Gamma posterior of the precision."""
    noise = NoisePrecision(torch.tensor([5]), (2.0, 0.7))
    noise.update(torch.tensor([0.4]))
    shape, rate = float(noise.shape), float(noise.rate)
    mixture = Mixture.under_noise(torch.full((1, 1, 1), 0.3), noise)
    for y in (0.3, 1.0, 4.0):
        expected, _ = integrate.quad(
            lambda tau, y=y: (
                stats.norm.pdf(y, 0.3, tau**-0.5) * stats.gamma.pdf(tau, shape, scale=1 / rate)
            ),
            0,
            np.inf,
        )
        found = mixture.log_density(torch.tensor([[y]])).exp().item()
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_it_is_the_log_of_the_mean_density_and_not_the_mean_of_logs():
    mixture = Mixture(torch.tensor([-1.0, 1.0]).view(2, 1, 1), torch.ones(1))
    expected = math.log((stats.norm.pdf(2) + stats.norm.pdf(0)) / 2)
    found = mixture.log_density(torch.ones(1, 1)).item()
    assert math.isclose(found, expected, rel_tol=1e-6)
    assert found > (stats.norm.logpdf(2) + stats.norm.logpdf(0)) / 2 + 0.1


def test_scores_in_other_units_shift_by_the_log_of_the_unit():
    test = lane_data(points=(6, 4))
    mixture = Mixture(torch.randn(3, 2, 6), torch.ones(1))
    units = torch.tensor([10.0, 0.1]).double()
    one, other = (score(mixture, test, unit) for unit in (torch.ones(2).double(), units))
    for before, after, unit in zip(one, other, units.tolist(), strict=True):
        assert after["rmse"] == pytest.approx(before["rmse"] * unit)
        assert after["log_likelihood"] == pytest.approx(before["log_likelihood"] - math.log(unit))


def test_scores_are_those_of_the_predictive_mean_over_each_lanes_own_rows():
    test = lane_data(points=(6, 4))
    mean = torch.randn(3, 2, 6)
    scores = score(Mixture(mean, torch.ones(1)), test, torch.ones(2).double())
    expected = (mean.mean(0)[1, :4] - test.y[1, :4]).square().mean().sqrt()
    assert scores[1]["rmse"] == pytest.approx(float(expected))
