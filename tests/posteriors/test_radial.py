"""The radial density, its draws and its constants."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from vcl_radial.posteriors import Gaussian, Radial

SCALES = [0.5, 1.7, 0.9]


def radial(D, dtype=torch.float64):
    mean = torch.linspace(-1, 1, D, dtype=dtype) if D > 1 else torch.tensor([0.3], dtype=dtype)
    return Radial(mean, torch.tensor(SCALES[:D], dtype=dtype))


def half_line(limit=20.0, n=400):
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return torch.tensor((nodes + 1) * limit / 2), torch.tensor(weights * limit / 2)


def test_the_density_integrates_to_one_on_the_line():
    q = radial(1)
    rho, weight = half_line()
    both_sides = sum(q.log_prob(q.mean + sign * rho[:, None]).exp() for sign in (-1, 1))
    assert (weight @ both_sides).item() == pytest.approx(1, abs=1e-10)


def test_the_density_integrates_to_one_in_the_plane():
    # Polar coordinates of w, not of z: the contours are ellipses.
    q = radial(2)
    rho, weight = half_line()
    angle = torch.linspace(0, 2 * math.pi, 201, dtype=torch.float64)[:-1]
    direction = torch.stack([angle.cos(), angle.sin()], -1)
    density = q.log_prob(q.mean + rho[:, None, None] * direction).exp()
    total = (weight * rho) @ density.mean(1) * 2 * math.pi
    assert total.item() == pytest.approx(1, abs=1e-8)


def test_the_density_integrates_to_one_in_space():
    q = radial(3)
    rho, weight = half_line(n=200)
    cos, cos_weight = (torch.tensor(x) for x in np.polynomial.legendre.leggauss(60))
    angle = torch.linspace(0, 2 * math.pi, 61, dtype=torch.float64)[:-1]
    sin = (1 - cos**2).sqrt()[:, None]
    height = cos[:, None].expand(-1, 60)
    direction = torch.stack([sin * angle.cos(), sin * angle.sin(), height], -1)
    density = q.log_prob(q.mean + rho[:, None, None, None] * direction).exp()
    total = (weight * rho**2) @ density.mean(-1) @ cos_weight * 2 * math.pi
    assert total.item() == pytest.approx(1, abs=1e-7)


def test_a_single_weight_is_a_gaussian():
    generator = torch.Generator().manual_seed(0)
    tensors = torch.randn(4, 6, 1, generator=generator, dtype=torch.float64)
    mean, scale, mean_p, scale_p = tensors[0], tensors[1].exp(), tensors[2], tensors[3].exp()
    inputs = [t.clone().requires_grad_() for t in (mean, scale, mean_p, scale_p)]

    def results(family):
        q, p = family(*inputs[:2]), family(*inputs[2:])
        values = [q.log_prob(mean_p), q.entropy(), q.kl(p), q.kl(Gaussian(*inputs[2:]))]
        gradients = [
            torch.autograd.grad(v.sum(), inputs, allow_unused=True, materialize_grads=True)
            for v in values
        ]
        return values, gradients

    torch.testing.assert_close(results(Radial), results(Gaussian))


def test_the_log_density_of_a_single_weight_has_a_finite_peak_with_gradient_zero():
    mean = torch.zeros(1, requires_grad=True)
    q = Radial(mean, torch.ones(1))
    peak = q.log_prob(torch.zeros(1))
    assert peak.item() == pytest.approx(-math.log(2 * math.pi) / 2)
    assert torch.autograd.grad(peak, mean)[0].item() == 0


def test_the_log_density_at_the_mean_of_a_larger_group_is_infinite():
    q = radial(2)
    assert q.log_prob(q.mean) == math.inf


@pytest.mark.parametrize("D", [2, 3])
def test_draws_have_a_half_normal_radius_and_the_covariance_scale_squared_over_D(D):
    n = 200_000
    q = radial(D)
    centred = q.sample(n, torch.Generator().manual_seed(D)) - q.mean
    z = centred / q.scale
    covariance = z.T @ z / n * D
    # The largest variance of an entry: Var(r^2 u_i^2 D) = 3 * 3 D / (D + 2) - 1 < 5.
    torch.testing.assert_close(
        covariance, torch.eye(D, dtype=q.mean.dtype), rtol=0, atol=4 * math.sqrt(5 / n)
    )
    radius = z.norm(dim=-1).sort().values
    empirical = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    distance = (torch.erf(radius / math.sqrt(2)) - empirical).abs().max()
    assert distance < 1.95 / math.sqrt(n)  # Kolmogorov-Smirnov at 0.1 per cent


def test_the_noise_is_isotropic_and_independent_of_the_radius():
    n = 200_000
    q = Radial(torch.zeros(5, dtype=torch.float64), torch.ones(5, dtype=torch.float64))
    noise = q.noise(n, torch.Generator().manual_seed(0))
    radius = noise.norm(dim=-1)
    first = (noise[:, 0] / radius).square()
    assert noise.mean(0).abs().max() < 5 / math.sqrt(5 * n)
    assert first.mean().item() == pytest.approx(1 / 5, abs=4 * first.std().item() / math.sqrt(n))
    correlation = torch.corrcoef(torch.stack([first, radius]))[0, 1]
    assert abs(correlation) < 4 / math.sqrt(n)


def test_a_draw_of_exactly_zero_gives_a_finite_sample(monkeypatch):
    # Single-precision generators do return 0, and a group of one weight is then all zero.
    monkeypatch.setattr(Radial, "_randn", lambda self, shape, generator: torch.zeros(shape))
    q = Radial(torch.full((1,), 0.3), torch.ones(1))
    assert torch.equal(q.sample(2), torch.full((2, 1), 0.3))


def test_without_data_a_unit_gaussian_prior_wants_scale_sqrt_D():
    D = 10
    prior = Gaussian(torch.zeros(D).double(), torch.ones(D).double())
    scale = torch.full((D,), math.sqrt(D), dtype=torch.float64, requires_grad=True)
    kl = Radial(torch.zeros(D).double(), scale).kl(prior)
    (gradient,) = torch.autograd.grad(kl, scale)
    assert gradient.abs().max() < 1e-12
    for factor in (0.9, 1.1):
        assert Radial(torch.zeros(D).double(), scale.detach() * factor).kl(prior) > kl


def paper_entropy(D):
    """Entropy with unit scales from the constants printed in the paper: -(Eq. 30) + (Eq. 39)."""

    def f(angle, power):
        return math.sin(angle) ** power * power * math.log(math.sin(angle))

    angles = sum(quad(f, 0, math.pi, args=(D - i,))[0] for i in range(1, D))
    eq30 = -(math.log(2 * math.pi) + 1) / 4 + 2 * math.pi + angles
    eq39 = -(D - 1) * np.euler_gamma / 4 - (D - 1) * (2 * D - 3) / 4 * math.log(2)
    return -eq30 + eq39


@pytest.mark.parametrize(("D", "truth"), [(2, 1.928), (3, 1.986)])
def test_the_constants_printed_in_the_paper_are_not_the_entropy_of_the_density(D, truth):
    # Entropy in polar coordinates, with the density of the radius written out:
    # H = -int f log(f / (area r^(D-1))) dr, where f = sqrt(2/pi) exp(-r^2/2).
    area = {2: 2 * math.pi, 3: 4 * math.pi}[D]

    def integrand(r):
        f = math.sqrt(2 / math.pi) * math.exp(-r * r / 2)
        return -f * (math.log(f) - math.log(area) - (D - 1) * math.log(r))

    entropy = quad(integrand, 0, 30)[0]
    assert entropy == pytest.approx(truth, abs=1e-3)
    ours = Radial(torch.zeros(D).double(), torch.ones(D).double()).entropy()
    assert ours.item() == pytest.approx(entropy, abs=1e-7)
    assert abs(paper_entropy(D) - entropy) > 5
    if D == 2:
        assert paper_entropy(2) == pytest.approx(-5.28, abs=5e-3)
