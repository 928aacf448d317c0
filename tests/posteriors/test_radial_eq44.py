"""Eq. 44 as printed: what it equals, and that it is not a divergence."""

import math

import pytest
import torch

from vcl_radial.posteriors import Gaussian, Radial, RadialEq44

D = 6


def random_pair(seed=0):
    generator = torch.Generator().manual_seed(seed)
    mean, mean_p, rho, rho_p = torch.randn(4, D, generator=generator, dtype=torch.float64)
    return (mean, (rho / 2).exp()), (mean_p, (rho_p / 2).exp())


@pytest.mark.parametrize("family", [Radial, RadialEq44])
def test_it_is_the_expectation_of_the_printed_monte_carlo_estimate(family):
    q, p = random_pair()
    n = 400_000
    w = Radial(*q).sample(n, torch.Generator().manual_seed(1))
    z_q, z_p = (w - q[0]) / q[1], (w - p[0]) / p[1]
    draws = (z_p.square().sum(-1) - z_q.square().sum(-1)) / 2 + (p[1].log() - q[1].log()).sum()
    kl = RadialEq44(*q).kl(family(*p))
    assert abs(draws.mean() - kl) < 4 * draws.std() / math.sqrt(n)


def test_it_is_the_corrected_divergence_without_the_jacobian_term():
    # Equal scales and means: ||z_p|| = k |r|, so the Jacobian term is (D - 1) log k exactly.
    q, _ = random_pair()
    k = 1.8
    wide = (q[0], k * q[1])
    corrected = Radial(*wide).kl(Radial(*q))
    uncorrected = RadialEq44(*wide).kl(Radial(*q))
    assert (corrected - uncorrected).item() == pytest.approx((D - 1) * math.log(k))


def test_nothing_stops_the_scales_from_growing_at_the_prior():
    _, p = random_pair()
    k = torch.ones((), dtype=torch.float64, requires_grad=True)
    kl = RadialEq44(p[0], k * p[1]).kl(RadialEq44(*p))
    (slope,) = torch.autograd.grad(kl, k)
    assert kl.item() == pytest.approx(0, abs=1e-14)
    assert slope.item() == pytest.approx(1 - D)


def test_its_minimum_is_negative_and_at_sqrt_D_prior_scales():
    _, p = random_pair()
    k = torch.tensor(math.sqrt(D), dtype=torch.float64, requires_grad=True)
    kl = RadialEq44(p[0], k * p[1]).kl(RadialEq44(*p))
    (slope,) = torch.autograd.grad(kl, k)
    assert kl < 0
    assert slope.item() == pytest.approx(0, abs=1e-12)


def test_all_but_the_divergence_to_a_radial_prior_is_that_of_the_radial():
    q, p = random_pair()
    ours, plain = RadialEq44(*q), Radial(*q)
    w = ours.sample(3, torch.Generator().manual_seed(0))
    assert torch.equal(w, plain.sample(3, torch.Generator().manual_seed(0)))
    assert torch.equal(ours.log_prob(w), plain.log_prob(w))
    assert torch.equal(ours.entropy(), plain.entropy())
    assert torch.equal(ours.kl(Gaussian(*p)), plain.kl(Gaussian(*p)))
    assert torch.equal(plain.kl(RadialEq44(*p)), plain.kl(Radial(*p)))
