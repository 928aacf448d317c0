"""The Laplace family against SciPy, quadrature and draws."""

import math
from itertools import pairwise

import pytest
import torch
from scipy import integrate, stats

from vcl_radial.conformance import check_family
from vcl_radial.conformance.family import LOOKS
from vcl_radial.posteriors import Gaussian, Radial
from vcl_radial.posteriors.double_exponential import DoubleExponential

PAIRS = [(0.0, 1.0), (0.0, 0.3), (0.4, 1.0), (-2.0, 0.5), (3.0, 2.5), (1e-3, 1.001)]
"""Shifts and scales of a posterior against the standard prior."""
PRIORS = {DoubleExponential: stats.laplace, Gaussian: stats.norm}


def one(family, mean, scale):
    values = torch.tensor([[mean], [scale]], dtype=torch.float64)
    return family(*values)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("shift", "ratio"), PAIRS)
def test_both_divergences_are_the_integrals_that_quadrature_gives(shift, ratio, prior):
    mean_p, scale_p = 0.7, 0.2
    q = stats.laplace(mean_p + shift * scale_p, ratio * scale_p)
    p = PRIORS[prior](mean_p, scale_p)

    def integrand(w):
        return q.pdf(w) * (q.logpdf(w) - p.logpdf(w))

    ends = sorted(
        {q.mean() - 60 * ratio * scale_p, q.mean(), mean_p, q.mean() + 60 * ratio * scale_p}
    )
    expected = sum(integrate.quad(integrand, *piece, epsabs=1e-12)[0] for piece in pairwise(ends))
    kl = one(DoubleExponential, q.mean(), ratio * scale_p).kl(one(prior, mean_p, scale_p))
    assert kl.item() == pytest.approx(expected, abs=1e-9)


def test_density_and_entropy_are_those_of_scipy():
    mean, scale = torch.tensor([[0.3, -1.0], [0.2, 3.0]], dtype=torch.float64)
    w = torch.linspace(-8, 8, 33).double()[:, None] * torch.ones(2).double()
    q, reference = DoubleExponential(mean, scale), stats.laplace(mean.numpy(), scale.numpy())
    expected = torch.from_numpy(reference.logpdf(w.numpy()).sum(-1))
    torch.testing.assert_close(q.log_prob(w), expected)
    assert q.entropy().item() == pytest.approx(reference.entropy().sum())


def test_draws_have_the_distribution_function_of_scipy_far_into_the_tails():
    q = DoubleExponential(torch.zeros(1), torch.ones(1))
    z = q.noise(200_000, torch.Generator().manual_seed(0)).flatten()
    assert stats.kstest(z.double().numpy(), stats.laplace.cdf).pvalue > 0.01
    for quantile in (6.0, 9.0):  # 248 and 12 draws on each side are expected
        expected = len(z) * math.exp(-quantile) / 2
        for beyond in (z > quantile, z < -quantile):
            assert abs(int(beyond.sum()) - expected) < 4 * math.sqrt(expected)


def test_the_divergence_to_itself_is_exactly_0_and_nowhere_below():
    q = one(DoubleExponential, 0.4, 0.3)
    assert q.kl(q).item() == 0
    close = [one(DoubleExponential, 0.4 + a, 0.3 * s).kl(q) for a in (0, 1e-6) for s in (1, 1.0001)]
    assert all(kl.item() >= 0 for kl in close)
    single = DoubleExponential(torch.full((1000,), 0.4), torch.full((1000,), 0.3))
    assert single.kl(single).item() == 0


def test_no_gaussian_prior_is_nearer_than_that_of_equal_variance():
    scales = torch.linspace(0.3, 1.5, 2001).double()[:, None]
    kls = DoubleExponential(torch.zeros_like(scales), scales).kl(one(Gaussian, 0.0, 1.0))
    nearest = scales[kls.argmin()].item()
    assert nearest == pytest.approx(1 / math.sqrt(2), abs=1e-3)
    assert kls.min().item() == pytest.approx(math.log(math.pi) / 2 - 0.5, abs=1e-6)


def test_another_prior_has_no_closed_form():
    q, radial = one(DoubleExponential, 0.0, 1.0), one(Radial, 0.0, 1.0)
    assert q.closed_kl(radial) is None
    assert DoubleExponential.kl_gradients(Radial, []) is None


def test_it_passes_every_check_of_a_family():
    outcomes = {v.name: v.outcome for v in check_family(DoubleExponential)}
    assert outcomes == dict.fromkeys(LOOKS, "ok")
