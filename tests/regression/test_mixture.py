import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from regression_helpers import lane_data
from scipy import integrate, stats
from scipy.special import logsumexp

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.likelihoods.noise_precision import NoisePrecision
from vcl_radial.metrics.rows import Intervals, answered_rmse
from vcl_radial.tracks.regression.scores import interval_scores, score
from vcl_radial.training.lane_data import LaneData


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


def test_the_quantiles_of_one_component_are_scipys():
    torch.manual_seed(0)
    mean, scale = torch.randn(1, 2, 5), torch.rand(2, 5) + 0.1
    degrees = torch.tensor([[3.0], [41_000.0]])
    for p in (0.05, 0.5, 0.95):
        expected = stats.norm.ppf(p, mean[0], scale)
        np.testing.assert_allclose(Mixture(mean, scale).quantile(p), expected, rtol=1e-6)
        expected = stats.t.ppf(p, degrees, mean[0], scale)
        np.testing.assert_allclose(Mixture(mean, scale, degrees).quantile(p), expected, rtol=1e-6)


@pytest.mark.parametrize("degrees", [None, torch.tensor([[4.0]])])
def test_the_quantiles_of_many_components_are_those_of_their_draws(degrees):
    generator = np.random.default_rng(0)
    mean = torch.tensor([-3.0, 0.0, 4.0]).view(3, 1, 1).expand(3, 2, 5)
    mixture = Mixture(mean, torch.tensor([[0.3], [2.0]]), degrees)
    n = 400_000
    noise = generator.standard_normal(n) if degrees is None else generator.standard_t(4, n)
    for lane, scale in enumerate((0.3, 2.0)):
        drawn = generator.choice([-3.0, 0.0, 4.0], n) + scale * noise
        for p in (0.05, 0.4, 0.95):
            found = mixture.quantile(p)[lane]
            assert np.isclose(mixture.cdf(mixture.quantile(p))[lane], p, atol=1e-12).all()
            assert np.mean(drawn < float(found[0])) == pytest.approx(p, abs=0.003)


def test_parts_of_the_rows_have_the_predictions_of_all():
    mixture = Mixture(torch.randn(4, 2, 7), torch.rand(2, 1), torch.tensor([[3.0], [9.0]]))
    first, rest = mixture.split(5)
    y = torch.randn(2, 7)
    both = torch.cat([first.log_density(y[:, :5]), rest.log_density(y[:, 5:])], 1)
    assert torch.equal(both, mixture.log_density(y))


def of_the_model(seed, bias=0.0):
    """Scores of a mixture on rows that are drawn from it, shifted by a bias."""
    torch.manual_seed(seed)
    parts = []
    for rows in (600, 300):
        mean = torch.randn(3, 1, rows)
        y = mean.gather(0, torch.randint(3, (1, 1, rows)))[0] + 0.5 * torch.randn(1, rows) + bias
        data = LaneData.of([(torch.zeros(rows, 1), y[0])])
        parts.append((Mixture(mean, torch.full((1, 1), 0.5)), data))
    predicted, rows = zip(*parts, strict=True)
    return interval_scores(predicted, rows, torch.tensor([10.0]).double())[0]


def test_intervals_cover_nine_tenths_of_rows_of_the_model_and_conformal_ones_of_any():
    def mean(scores, name):
        return np.mean([score[name] for score in scores])

    true, biased = [of_the_model(s) for s in range(20)], [of_the_model(s, 2.0) for s in range(20)]
    assert mean(true, "interval_coverage") == pytest.approx(90, abs=0.8)
    assert mean(true, "conformal_coverage") == pytest.approx(90, abs=1.2)
    assert mean(biased, "interval_coverage") < 60
    assert mean(biased, "conformal_coverage") == pytest.approx(90, abs=1.2)
    assert mean(biased, "conformal_width") > mean(biased, "interval_width") + 10
    assert mean(true, "conformal_width") == pytest.approx(mean(true, "interval_width"), rel=0.03)


def test_the_surer_rows_are_those_of_the_smallest_spread():
    y = torch.zeros(10).double()
    error = torch.tensor([1.0] * 8 + [100.0] * 2).double()
    spread = torch.arange(10).double()
    intervals = Intervals(y, error, spread, error - 1, error + 1, 0.0)
    assert answered_rmse(intervals) == 1
    assert answered_rmse(replace(intervals, spread=-spread)) > 50


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
