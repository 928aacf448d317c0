import pytest
import torch

from vcl_radial.likelihoods.objectives import gaussian_nll
from vcl_radial.tracks.bandits.likelihood import ChosenReward


@pytest.fixture
def batch():
    torch.manual_seed(0)
    outputs = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    actions = torch.randint(4, (7,))
    return outputs, torch.stack([actions.double(), torch.randn(7, dtype=torch.float64)], dim=1)


def nll_of_point(likelihood, targets):
    return lambda f: likelihood.nll(f[None], targets[None])


@pytest.mark.parametrize("noise", [None, 0.3])
def test_an_action_that_was_not_taken_has_no_gradient(batch, noise):
    outputs, targets = batch
    ChosenReward(noise).nll(outputs, targets).backward()
    taken = torch.nn.functional.one_hot(targets[:, 0].long(), 4).bool()
    assert bool((outputs.grad[taken] != 0).all())
    assert bool((outputs.grad[~taken] == 0).all())


@pytest.mark.parametrize("noise", [None, 0.3])
def test_residual_and_root_are_the_derivatives_of_the_nll(batch, noise):
    outputs, targets = batch
    likelihood = ChosenReward(noise)
    (root,) = likelihood.hessian_root(outputs.detach(), targets)
    for row, (f, y) in enumerate(zip(outputs.detach(), targets, strict=True)):
        nll = nll_of_point(likelihood, y)
        gradient = torch.func.grad(nll)(f)
        torch.testing.assert_close(likelihood.residual(f[None], y[None])[0], gradient)
        torch.testing.assert_close(torch.outer(root[row], root[row]), torch.func.hessian(nll)(f))


@pytest.mark.parametrize("noise", [None, 0.3])
def test_the_nll_of_samples_is_their_mean(batch, noise):
    outputs, targets = batch
    samples = torch.stack([outputs, 2 * outputs, outputs - 1])
    likelihood = ChosenReward(noise)
    one_by_one = torch.stack([likelihood.nll(sample, targets) for sample in samples])
    torch.testing.assert_close(likelihood.nll(samples, targets), one_by_one.mean())
    torch.testing.assert_close(likelihood.predictive(samples), (samples).mean(0))


def test_the_squared_error_is_the_nll_of_a_variance_of_a_half_but_for_a_constant(batch):
    outputs, targets = batch
    noise = 0.5**0.5
    zero = gaussian_nll(torch.zeros(1), torch.zeros(1), noise)
    nll = ChosenReward(noise).nll(outputs, targets)
    torch.testing.assert_close(ChosenReward().nll(outputs, targets), nll - zero)
