import math

import pytest
import torch
from scipy import stats
from scipy.integrate import quad
from torch.distributions import Weibull as TorchWeibull

from vcl_radial.posteriors.weibull_radius import EULER, Weibull

CASES = [(0.0, 1.0), (-1.5, 0.3), (2.0, 0.05), (0.7, 1.8)]


def t(x):
    return torch.tensor(x, dtype=torch.float64)


def of(loc, scale):
    """Weibull factors a and a_g in row 0, and b and b_g with the same parameters in row 1."""
    return Weibull(t(loc).expand(2, 2), t(scale).expand(2, 2))


def mean_log_ratio(loc, scale, sign, log_prior):
    """E log q - log p by quadrature over log x = loc + sign scale log e, e ~ Exp(1)."""

    def integrand(y):
        log_x = loc + sign * scale * y
        log_q = y - math.exp(y) - math.log(scale) - log_x
        return math.exp(y - math.exp(y)) * (log_q - log_prior(log_x))

    return quad(integrand, -40, 4, epsabs=1e-11, limit=400)[0]


def log_density(loc, scale, sign):
    def log_prob(log_x):
        z = sign * (log_x - loc) / scale
        return z - math.exp(z) - math.log(scale) - log_x

    return log_prob


def printed(loc_q, scale_q, loc_p, scale_p):
    """Eq. 50 of the paper as it is printed."""
    lambda_q, k_q, k_p = math.exp(loc_q), 1 / scale_q, 1 / scale_p
    logs = (math.log(k_q) - k_q * loc_q) - (math.log(k_p) - k_p * loc_p)
    power = math.exp((loc_q - loc_p) * k_p)
    return (
        logs
        + (k_q - k_p) * math.log(lambda_q - EULER / k_q)
        + power * math.gamma(k_q / k_p + 1)
        - 1
    )


@pytest.mark.parametrize(("loc", "scale"), CASES)
def test_densities_are_those_of_a_weibull_number_and_of_the_inverse_of_one(loc, scale):
    x = t([0.01, 0.4, 1.0, 9.0])
    a, b = of(loc, scale).log_prob(x[:, None, None].expand(-1, 2, 2))[..., 0].unbind(-1)
    torch.testing.assert_close(a, TorchWeibull(t(loc).exp(), 1 / t(scale)).log_prob(x))
    inverse = TorchWeibull((-t(loc)).exp(), 1 / t(scale))
    torch.testing.assert_close(b, inverse.log_prob(1 / x) - 2 * x.log())


def test_draws_have_these_densities():
    noise = Weibull.noise((20_000, 2, 2), torch.Generator().manual_seed(0), torch.float64, "cpu")
    x = (0.3 + 0.6 * noise).exp()[..., 0]
    reference = stats.weibull_min(1 / 0.6, scale=math.exp(0.3))
    assert stats.kstest(x[:, 0].numpy(), reference.cdf).pvalue > 1e-3
    inverse = stats.weibull_min(1 / 0.6, scale=math.exp(-0.3))
    assert stats.kstest(1 / x[:, 1].numpy(), inverse.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("loc", "scale"), CASES)
@pytest.mark.parametrize(("loc_p", "scale_p"), CASES)
def test_the_divergence_of_two_is_the_mean_log_ratio(loc, scale, loc_p, scale_p):
    kl = of(loc, scale).kl(of(loc_p, scale_p))[:, 0]
    if scale / scale_p > 10:  # E exp(z) then needs more than quadrature
        assert (kl > 0).all()
        return
    for row, sign in enumerate((1, -1)):
        expected = mean_log_ratio(loc, scale, sign, log_density(loc_p, scale_p, sign))
        assert kl[row].item() == pytest.approx(expected, rel=1e-7, abs=1e-8)


def test_the_divergence_is_zero_and_flat_where_both_agree_and_positive_elsewhere():
    for loc, scale in CASES:
        parts = [t([[loc] * 2] * 2).requires_grad_(), t([[scale] * 2] * 2).requires_grad_()]
        kl = Weibull(*parts).kl(of(loc, scale)).sum()
        assert kl.item() == pytest.approx(0, abs=1e-14)
        for gradient in torch.autograd.grad(kl, parts):
            assert gradient.abs().max() < 1e-14 / scale
        for moved in (of(loc + 0.01, scale), of(loc, 1.01 * scale), of(loc - 0.01, 0.99 * scale)):
            assert (moved.kl(of(loc, scale)) > 0).all()


def test_gradients_are_those_of_finite_differences():
    loc, scale = t([[0.3, -0.2], [0.1, 0.5]]), t([[0.4, 1.2], [0.7, 2.5]])
    prior = of(0.1, 0.8)
    inputs = (loc.requires_grad_(), scale.requires_grad_())
    assert torch.autograd.gradcheck(lambda m, s: Weibull(m, s).kl(prior), inputs)
    assert torch.autograd.gradcheck(lambda m, s: Weibull(m, s).kl_to_half_cauchy(0.3), inputs)


def test_as_printed_eq_50_is_no_divergence():
    """With both misprints corrected it is the divergence."""
    q, p = (1.5, 1.0), (1.5, 0.5)
    ours = of(*q).kl(of(*p))[0, 0].item()
    assert ours == pytest.approx(mean_log_ratio(*q, 1, log_density(*p, 1)), rel=1e-8)
    assert printed(*q, *p) < 0 < ours
    corrected = printed(*q, *p)
    corrected += (1 / q[1] - 1 / p[1]) * (q[0] - EULER * q[1] - math.log(math.exp(q[0]) - EULER))
    corrected += math.gamma(q[1] / p[1] + 1) - math.gamma(p[1] / q[1] + 1)
    assert corrected == pytest.approx(ours, rel=1e-12)


@pytest.mark.parametrize(("loc", "scale"), CASES)
@pytest.mark.parametrize("gamma", [1.0, 0.1])
def test_divergences_to_the_half_cauchy_factors_are_those_of_the_densities(loc, scale, gamma):
    """Also for k <= 1, where that of a Weibull number to an inverse gamma is infinite."""

    def log_gamma(unit):  # log density of Gamma(1/2, unit) by log x
        return lambda y: -y / 2 - math.exp(y) / unit - math.lgamma(0.5) - math.log(unit) / 2

    def log_inverse_gamma(y):
        return -1.5 * y - math.exp(-y) - math.lgamma(0.5)

    kl = of(loc, scale).kl_to_half_cauchy(gamma).view(2, 2)
    priors = [[log_gamma(1.0), log_gamma(gamma**2)], [log_inverse_gamma] * 2]
    for row, sign in enumerate((1, -1)):
        for column in (0, 1):
            expected = mean_log_ratio(loc, scale, sign, priors[row][column])
            assert kl[row, column].item() == pytest.approx(expected, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("share", [1e-7, 0.01, 0.3, 5.0])
def test_the_start_has_the_variance_that_is_said(share):
    scale, log_mean = Weibull.start(share)
    assert of(0.0, scale).mean_radius().item() == pytest.approx(math.exp(log_mean), rel=1e-12)
    # E x = Gamma(1 +- scale), and r^2 is the product of two a and two b
    second = (math.gamma(1 + scale) * math.gamma(1 - scale)) ** 2
    assert second / math.exp(2 * log_mean) - 1 == pytest.approx(share, rel=1e-6)


def test_the_mean_radius_is_that_of_draws_and_infinite_where_b_has_no_root_mean():
    q = of(0.2, 0.4)
    noise = Weibull.noise((100_000, 2, 2), torch.Generator().manual_seed(1), torch.float64, "cpu")
    r = ((q.loc + q.scale * noise).sum((-1, -2)) / 2).exp()
    assert abs(r.mean() - q.mean_radius().item()) < 5 * r.std() / math.sqrt(100_000)
    assert of(0.0, 2.0).mean_radius().item() == math.inf
    assert of(0.0, 1.99).mean_radius().item() < math.inf
