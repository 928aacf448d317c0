import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad

from vcl_radial import native
from vcl_radial.nn.rdp import angles_of_key
from vcl_radial.posteriors.bessel import ratio_and_slope
from vcl_radial.posteriors.vmf_angle import angle_slope, draw_angle, with_gradient

CASES = [(2, 0.5), (2, 1e4), (3, 0.0), (3, 8.0), (10, 5.0), (10, 1e6), (785, 30.0), (785, 3e5)]


def t(x):
    return torch.tensor(x, dtype=torch.float64)


def sample_angle(shape, concentration, D, generator=None):
    return with_gradient(draw_angle(shape, concentration, D, generator), concentration, D)


def draws(D, kappa, n, seed=0):
    return sample_angle((n,), t(kappa), D, torch.Generator().manual_seed(seed))


def density(D, kappa):
    """p(theta) up to its normaliser, and where it has its mass."""
    mean = ratio_and_slope(D / 2, t(kappa))[0]
    mode = math.acos(min(mean.item(), 1.0))

    def p(theta):
        return math.exp(kappa * (math.cos(theta) - math.cos(mode))) * (
            (math.sin(theta) / math.sin(mode)) ** (D - 2)
        )

    width = 1 / math.sqrt(max(kappa, D - 2, 1))
    return p, max(0.0, mode - 12 * width), min(math.pi, mode + 12 * width)


def cdf(D, kappa, angles):
    p, low, high = density(D, kappa)
    grid = np.linspace(low, high, 10_001)
    values = np.array([p(x) for x in grid])
    steps = np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2)])
    return np.interp(angles, grid, steps / steps[-1])


def draws_of_key(D, kappa, n):
    return angles_of_key(n, t(kappa), D, 5)


@pytest.mark.parametrize("draws", [draws, draws_of_key])
@pytest.mark.parametrize(("D", "kappa"), CASES)
def test_draws_have_the_density_of_the_angle(D, kappa, draws):
    angles = draws(D, kappa, 20_000).numpy()
    assert stats.kstest(angles, lambda x: cdf(D, kappa, x)).pvalue > 1e-3


@pytest.mark.parametrize("draws", [draws, draws_of_key])
@pytest.mark.parametrize(("D", "kappa"), CASES)
def test_moments_of_the_cosine_are_those_of_the_bessel_ratio(D, kappa, draws):
    """E cos theta = A and Var cos theta = A', within five standard errors."""
    n = 100_000
    cosine = draws(D, kappa, n).cos()
    mean, variance = ratio_and_slope(D / 2, t(kappa))
    assert abs(cosine.mean() - mean) < 5 * (variance / n).sqrt()
    squares = (cosine - mean).square()
    assert abs(squares.mean() - variance) < 5 * squares.std() / math.sqrt(n)


@pytest.mark.parametrize(("D", "kappa"), CASES)
def test_the_gradient_of_the_mean_cosine_is_the_slope_of_the_bessel_ratio(D, kappa):
    """d/d kappa of E cos theta and of E cos^2 theta, within five standard errors."""
    n = 30_000
    angle = draws(D, kappa, n)
    slope = angle_slope(angle, t(kappa), D)
    gradient = -angle.sin() * slope
    mean, variance = ratio_and_slope(D / 2, t(kappa))
    assert abs(gradient.mean() - variance) < 5 * gradient.std() / math.sqrt(n)
    # E cos^2 = 1 - (D - 1) A / kappa, and d/d kappa of it
    if kappa > 0:
        expected = (D - 1) * (mean / kappa**2 - variance / kappa)
        second = 2 * angle.cos() * gradient
        assert abs(second.mean() - expected) < 5 * second.std() / math.sqrt(n)


@pytest.mark.parametrize(("D", "kappa"), [case for case in CASES if case[1] < 1e5])
def test_the_slope_is_that_of_the_quantiles(D, kappa):
    """d theta / d kappa = -dF/dkappa / p, with F differentiated numerically under the integral."""
    p, low, _ = density(D, kappa)
    mean = ratio_and_slope(D / 2, t(kappa))[0].item()
    for angle in draws(D, kappa, 5).tolist():
        inner, _ = quad(lambda x: (math.cos(x) - mean) * p(x), low, angle, epsrel=1e-10, limit=200)
        expected = -inner / p(angle)
        assert angle_slope(t(angle), t(kappa), D).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.skipif(native.library() is None, reason=str(native.unavailable()))
@pytest.mark.parametrize(("D", "kappa"), CASES)
def test_the_compiled_slope_is_that_of_pytorch(D, kappa):
    mean = ratio_and_slope(D / 2, t(kappa))[0].item()
    angle = draws(D, kappa, 1000)
    compiled = [native.library().vcl_angle_slope(a, kappa, mean, D) for a in angle.tolist()]
    torch.testing.assert_close(t(compiled), angle_slope(angle, t(kappa), D), rtol=1e-4, atol=0)


@pytest.mark.parametrize("kappa", [0.1, 2.0, 40.0])
def test_in_three_dimensions_the_slope_is_in_closed_form(kappa):
    """F = (exp(kappa cos theta) - exp(-kappa)) / (exp(kappa) - exp(-kappa)) can be inverted."""
    angle = draws(3, kappa, 20)
    k = t(kappa)
    tail = ((k * (angle.cos() - 1)).exp() - (-2 * k).exp()) / (1 - (-2 * k).exp())
    k.requires_grad_()
    cosine = 1 + (tail + (1 - tail) * (-2 * k).exp()).log() / k
    torch.testing.assert_close(cosine, angle.cos())
    expected = torch.stack([torch.autograd.grad(c, k, retain_graph=True)[0] for c in cosine])
    slope = -angle.sin() * angle_slope(angle, k.detach(), 3)
    torch.testing.assert_close(slope, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(("D", "kappa"), CASES)
def test_more_concentration_always_narrows_the_angle(D, kappa):
    assert (angle_slope(draws(D, kappa, 1000), t(kappa), D) < 0).all()


def test_the_gradient_reaches_each_concentration():
    kappa = t([3.0, 300.0]).requires_grad_()
    angle = sample_angle((7, 2), kappa, 5)
    angle.sum().backward()
    expected = angle_slope(angle.detach(), kappa.detach(), 5).sum(0)
    torch.testing.assert_close(kappa.grad, expected)


def test_each_group_has_its_own_concentration():
    angle = sample_angle((20_000, 2), t([2.0, 2000.0]), 6, torch.Generator().manual_seed(0))
    for column, kappa in zip(angle.T, (2.0, 2000.0), strict=True):
        assert stats.kstest(column.numpy(), lambda x, k=kappa: cdf(6, k, x)).pvalue > 1e-3


def test_with_a_generator_the_draws_depend_on_it_alone():
    before = torch.get_rng_state()
    first = draws(50, 40.0, 100, seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, draws(50, 40.0, 100, seed=3))
    assert not torch.equal(first, draws(50, 40.0, 100, seed=4))
    assert torch.equal(draws_of_key(50, 40.0, 100), draws_of_key(50, 40.0, 100))


def test_a_concentration_that_has_diverged_draws_nan_and_comes_to_an_end():
    angle = sample_angle((4, 3), t([math.nan, 3.0, math.inf]), 5)
    assert angle.isnan().all(0).tolist() == [True, False, True]
    assert angle[:, 1].isfinite().all()
    assert angles_of_key(3, t(math.inf), 5, 0).isnan().all()
