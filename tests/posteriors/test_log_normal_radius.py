import math

import pytest
import torch
from scipy import stats
from scipy.integrate import quad
from torch.distributions import LogNormal as TorchLogNormal
from torch.distributions import kl_divergence

from vcl_radial.posteriors.log_normal_radius import LogNormal

CASES = [(0.0, 1.0), (-1.5, 0.3), (2.0, 0.05), (0.7, 1.8)]


def t(x):
    return torch.tensor(x, dtype=torch.float64)


def of(loc, scale):
    return LogNormal(t(loc), t(scale))


def mean_log_ratio(loc, scale, log_prior):
    """E log q - log p by quadrature over log x ~ N(loc, scale^2)."""

    def integrand(z):
        log_x = loc + scale * z
        log_q = -z * z / 2 - math.log(scale * math.sqrt(2 * math.pi)) - log_x
        return stats.norm.pdf(z) * (log_q - log_prior(math.exp(log_x)))

    return quad(integrand, -12, 12, epsabs=1e-12, limit=200)[0]


@pytest.mark.parametrize(("loc", "scale"), CASES)
def test_density_and_mean_are_those_of_a_log_normal(loc, scale):
    x = t([0.01, 0.4, 1.0, 9.0])
    reference = TorchLogNormal(t(loc), t(scale))
    torch.testing.assert_close(of(loc, scale).log_prob(x), reference.log_prob(x))
    torch.testing.assert_close(of(loc, scale).mean(), reference.mean)


def test_the_divergence_of_two_is_that_of_their_logarithms():
    for loc, scale in CASES:
        for loc_p, scale_p in CASES:
            ours = of(loc, scale).kl(of(loc_p, scale_p))
            theirs = kl_divergence(
                TorchLogNormal(t(loc), t(scale)), TorchLogNormal(t(loc_p), t(scale_p))
            )
            torch.testing.assert_close(ours, theirs)
        assert of(loc, scale).kl(of(loc, scale)) == 0


@pytest.mark.parametrize(("loc", "scale"), CASES)
@pytest.mark.parametrize(("shape", "prior_scale"), [(0.5, 1.0), (0.5, 0.01), (3.0, 2.5)])
def test_divergences_to_gamma_and_inverse_gamma_are_those_of_the_densities(
    loc, scale, shape, prior_scale
):
    """Also the figures that Eqs. 51 and 52 of the paper ought to give."""
    q = of(loc, scale)
    gamma = mean_log_ratio(loc, scale, stats.gamma(shape, scale=prior_scale).logpdf)
    assert q.kl_to_gamma(shape, prior_scale).item() == pytest.approx(gamma, rel=1e-8, abs=1e-8)
    inverse = mean_log_ratio(loc, scale, stats.invgamma(shape, scale=prior_scale).logpdf)
    assert q.kl_to_inverse_gamma(shape, prior_scale).item() == pytest.approx(
        inverse, rel=1e-8, abs=1e-8
    )


def test_a_half_cauchy_number_is_a_root_of_gamma_times_inverse_gamma():
    """The decomposition of the prior that the two divergences rest on."""
    scale = 0.3
    a = stats.gamma(0.5, scale=scale**2).rvs(50_000, random_state=1)
    b = stats.invgamma(0.5, scale=1.0).rvs(50_000, random_state=2)
    assert stats.kstest((a * b) ** 0.5, stats.halfcauchy(scale=scale).cdf).pvalue > 1e-3


@pytest.mark.parametrize("method", ["kl_to_gamma", "kl_to_inverse_gamma"])
def test_the_nearest_log_normal_has_no_slope_and_cannot_be_negative(method):
    loc, scale = t(0.0).requires_grad_(), t(1.0).requires_grad_()
    optimizer = torch.optim.LBFGS([loc, scale], max_iter=100, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        kl = getattr(LogNormal(loc, scale), method)(0.5, 0.2)
        kl.backward()
        return kl

    optimizer.step(closure)
    # At the optimum E x / scale = shape (or E 1/x), and the log's variance is 1 / shape.
    assert scale.item() ** 2 == pytest.approx(2, rel=1e-4)
    assert closure().item() > 0
    sign = 1 if method == "kl_to_gamma" else -1
    assert sign * loc.item() == pytest.approx(sign * math.log(0.2) + math.log(0.5) - 1, abs=1e-3)
