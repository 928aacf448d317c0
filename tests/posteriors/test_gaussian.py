"""The Gaussian family against torch.distributions."""

import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from vcl_radial.posteriors import Gaussian


def pair(seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    mean, mean_p, rho, rho_p = torch.randn(4, 3, 5, generator=generator, dtype=dtype)
    return mean, rho.exp(), mean_p, rho_p.exp()


def reference(mean, scale):
    return Independent(Normal(mean, scale), 1)


def test_log_density_and_entropy_are_those_of_independent_normals():
    mean, scale, w, _ = pair()
    q = Gaussian(mean, scale)
    torch.testing.assert_close(q.log_prob(w), reference(mean, scale).log_prob(w))
    torch.testing.assert_close(q.entropy(), reference(mean, scale).entropy())


def test_the_divergence_and_its_gradients_are_those_of_independent_normals():
    tensors = [t.requires_grad_() for t in pair()]
    mean, scale, mean_p, scale_p = tensors
    ours = Gaussian(mean, scale).kl(Gaussian(mean_p, scale_p))
    theirs = kl_divergence(reference(mean, scale), reference(mean_p, scale_p))
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours.sum(), tensors), torch.autograd.grad(theirs.sum(), tensors)
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_divergence_of_a_gaussian_to_itself_and_its_gradient_are_exactly_zero(dtype):
    mean, scale, _, _ = pair(dtype=dtype)
    mean.requires_grad_()
    scale.requires_grad_()
    kl = Gaussian(mean, scale).kl(Gaussian(mean.detach(), scale.detach()))
    gradients = torch.autograd.grad(kl.sum(), [mean, scale])
    assert not kl.any()
    assert not gradients[0].any()
    assert not gradients[1].any()


@pytest.mark.parametrize("ratio", [1e-12, 1e-4, 1.001, 1e6])
def test_single_precision_keeps_the_divergence_at_extreme_scales(ratio):
    scale = torch.full((1000,), ratio, dtype=torch.float32, requires_grad=True)
    kl = Gaussian(torch.zeros(1000), scale).kl(Gaussian(torch.zeros(1000), torch.ones(1000)))
    (gradient,) = torch.autograd.grad(kl, scale)
    s = scale.detach().double()
    e = (s - 1) * (s + 1)
    # In double precision the first form is good near s = 1 and the second one elsewhere.
    truth = e - torch.where(e.abs() < 0.5, torch.log1p(e), 2 * s.log())
    torch.testing.assert_close(kl.double(), truth.sum() / 2, rtol=1e-3, atol=0)
    torch.testing.assert_close(gradient.double(), s - 1 / s, rtol=1e-5, atol=1e-7)
