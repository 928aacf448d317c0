"""The KL's gradient without its value, against plain autograd through the posteriors."""

import pytest
import torch

from vcl_radial.nn import MLP, PosteriorSettings, consolidate, kl_divergence
from vcl_radial.nn.weights import softplus

FAMILIES = ["gaussian", "radial", "radial-eq44"]
GROUPINGS = ["layer", "tensor", "unit"]


def network(family, grouping, carried, dtype=torch.float64):
    torch.manual_seed(0)
    net = MLP(
        30, 3, hidden=(20, 10), posterior=PosteriorSettings(family, grouping, initial_rho=-3.0)
    ).to(dtype)
    net.head.adapt([0, 1])
    net = net.to(dtype)
    if carried:
        consolidate(net, [0])
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return net


def gradients(net, loss):
    net.zero_grad(set_to_none=True)
    loss.backward()
    return {name: p.grad for name, p in net.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("carried", [False, True])
def test_the_gradient_without_the_value_is_that_of_the_value(family, grouping, carried):
    """Task 1's head still has the initial prior where the body has a carried one."""
    net = network(family, grouping, carried)
    plain = gradients(net, 0.7 * kl_divergence(net, [0, 1]))
    fast = gradients(net, 0.7 * kl_divergence(net, [0, 1], value=False))
    assert plain.keys() == fast.keys()
    for name, expected in plain.items():
        torch.testing.assert_close(fast[name], expected, rtol=1e-9, atol=1e-9)


def test_only_the_gradient_is_given():
    net = network("radial", "layer", carried=True)
    assert kl_divergence(net, [0], value=False).item() == 0
    assert kl_divergence(net, [0]).item() > 0


def test_where_posterior_and_prior_agree_the_gradient_is_zero():
    net = network("radial", "unit", carried=True, dtype=torch.float32)
    consolidate(net, [0])
    for gradient in gradients(net, kl_divergence(net, [0], value=False)).values():
        torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_training_runs_the_same_course_with_and_without_the_value(family, grouping):
    """Thirty steps of Adam end at the same weights, up to rounding."""
    x, y = torch.randn(64, 30, dtype=torch.float64), torch.randint(3, (64,))
    ends = []
    for value in (True, False):
        net = network(family, grouping, carried=True)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, amsgrad=True)
        torch.manual_seed(1)
        for _ in range(30):
            optimizer.zero_grad()
            nll = torch.nn.functional.cross_entropy(net(x, 0), y)
            (nll + kl_divergence(net, [0], value) / 640).backward()
            optimizer.step()
        ends.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    torch.testing.assert_close(*ends, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_softplus_is_pytorchs_in_value_and_gradient(dtype):
    rho = torch.linspace(-80, 80, 4001, dtype=dtype, requires_grad=True)
    reference = torch.nn.functional.softplus(rho.detach().double(), threshold=1e9)
    tolerance = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(softplus(rho).double(), reference, rtol=tolerance, atol=0)
    (gradient,) = torch.autograd.grad(softplus(rho).sum(), rho)
    torch.testing.assert_close(gradient, torch.sigmoid(rho.detach()))
