"""The scale-mixture prior: a density, and its limiting case."""

import math

import pytest
import torch
from scipy.integrate import quad

from vcl_radial.errors import UserError
from vcl_radial.posteriors import Gaussian, Radial, ScaleMixture


def test_the_density_of_one_weight_integrates_to_one():
    prior = ScaleMixture(0.25, 1.5, 0.05)

    def density(x):
        return prior.log_prob(torch.tensor([x], dtype=torch.float64)).exp().item()

    total = 2 * (quad(density, 0, 0.5)[0] + quad(density, 0.5, 20)[0])
    assert total == pytest.approx(1, abs=1e-7)


def test_the_mixture_is_the_weighted_sum_of_its_components():
    w = torch.linspace(-3, 3, 7, dtype=torch.float64)[:, None]
    wide = Gaussian(torch.zeros(1).double(), torch.full((1,), 2.0).double())
    narrow = Gaussian(torch.zeros(1).double(), torch.full((1,), 0.1).double())
    mixed = 0.3 * wide.log_prob(w).exp() + 0.7 * narrow.log_prob(w).exp()
    torch.testing.assert_close(ScaleMixture(0.3, 2.0, 0.1).log_prob(w).exp(), mixed)


def test_weights_are_independent():
    prior = ScaleMixture(0.25, 1.5, 0.05)
    w = torch.tensor([[0.1, -2.0, 0.7]])
    torch.testing.assert_close(prior.log_prob(w), prior.log_prob(w.T).sum()[None])


def test_far_in_the_tails_the_log_density_stays_finite():
    w = torch.tensor([1e4], requires_grad=True)
    log_p = ScaleMixture(0.5, 1.0, math.exp(-8)).log_prob(w)
    (gradient,) = torch.autograd.grad(log_p, w)
    assert log_p.item() == pytest.approx(-5e7, rel=1e-5)
    assert gradient.item() == pytest.approx(-1e4)


@pytest.mark.parametrize("family", [Gaussian, Radial])
def test_with_equal_scales_the_estimated_divergence_is_that_to_a_gaussian(family):
    D, n = 4, 200_000
    q = family(torch.linspace(-1, 1, D).double(), torch.linspace(0.3, 1.2, D).double())
    scale = 0.8
    gaussian = Gaussian(torch.zeros(D).double(), torch.full((D,), scale).double())
    estimate = q.kl(ScaleMixture(0.4, scale, scale), n, torch.Generator().manual_seed(0))
    noise = gaussian.log_prob(q.sample(10_000, torch.Generator().manual_seed(1))).std()
    assert abs(estimate - q.kl(gaussian)) < 4 * noise / math.sqrt(n)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((0.0, 1.0, 1.0), "pi"), ((1.0, 1.0, 1.0), "pi"), ((0.5, 0.0, 1.0), "scale1"),
     ((0.5, 1.0, -1.0), "scale2"), ((0.5, math.inf, 1.0), "scale1")],
)  # fmt: skip
def test_values_out_of_range_are_named(arguments, name):
    with pytest.raises(UserError, match=name):
        ScaleMixture(*arguments)
