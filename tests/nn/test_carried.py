"""What every posterior over the weights of a layer keeps: its prior, and its state."""

import copy

import pytest
import torch

from vcl_radial.nn import BayesianConv2d, BayesianLinear, PosteriorSettings
from vcl_radial.nn.grouping import GROUPINGS
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.posteriors.rdp import RDP

POSTERIORS = {
    **{
        f"{family} {grouping}": PosteriorSettings(family, grouping, initial_noise=0.03)
        for family in ("gaussian", "radial", "low-rank", "radial-low-rank")
        for grouping in GROUPINGS
    },
    **{f"rdp {grouping}": RDPSettings(grouping, 0.03) for grouping in RDP.groupings},
}
LAYERS = {
    "linear": lambda settings: BayesianLinear(40, 10, posterior=settings),
    "convolution": lambda settings: BayesianConv2d(4, 10, (2, 5), posterior=settings),
}


@pytest.fixture(params=[f"{name}, {of}" for name in LAYERS for of in POSTERIORS])
def make(request):
    """Makes a layer of a kind with a posterior of a kind."""
    name, of = request.param.split(", ")

    def make(seed=0):
        torch.manual_seed(seed)
        return LAYERS[name](POSTERIORS[of])

    return make


def push(layer, by=0.01):
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(by * torch.randn_like(parameter))


def drawn(layer):
    torch.manual_seed(3)
    return [part.detach() for part in layer.weights.sample()]


def test_carried_the_kl_is_0_without_a_slope_and_rises_with_any_move(make):
    weights = make().weights
    assert weights.kl() > 1
    before = drawn(make())
    weights.consolidate()
    kl = weights.kl()
    assert kl.item() == pytest.approx(0, abs=1e-5)
    for slope in torch.autograd.grad(kl, [*weights.parameters()]):
        torch.testing.assert_close(slope, torch.zeros_like(slope), rtol=0, atol=1e-4)
    for name, parameter in weights.named_parameters():
        held = parameter.detach().clone()
        size = 0.3 if name.endswith("factor") else 0.01  # a row of it is one direction of a group
        with torch.no_grad():
            parameter.add_(size * torch.randn_like(parameter))
            assert weights.kl() > kl + 1e-5
            parameter.copy_(held)
    layer = make()
    layer.weights.consolidate()
    for old, new in zip(before, drawn(layer), strict=True):
        torch.testing.assert_close(new, old)  # the posterior is as it was


def test_a_carried_prior_stays_where_it_was_and_comes_back_with_the_state(make):
    first, second = make(), make(seed=1)
    first.weights.consolidate()
    carried = copy.deepcopy(dict(first.named_buffers()))
    push(first, 0.1)
    assert carried.keys() == dict(first.named_buffers()).keys()
    assert all(torch.equal(buffer, carried[name]) for name, buffer in first.named_buffers())
    state = first.state_dict()
    second.load_state_dict(state)
    torch.manual_seed(1)  # of a divergence that is estimated
    kl = first.weights.kl().item()
    torch.manual_seed(1)
    assert second.weights.kl().item() == kl > 0
    assert all(map(torch.equal, drawn(second), drawn(first)))
    plain = (torch.Tensor, type(None), bool, int, float, str, dict)
    assert all(isinstance(part, plain) for part in state.values())


def test_a_copy_is_a_layer_of_its_own(make):
    first = make()
    before = drawn(first)
    second = copy.deepcopy(first)
    assert all(map(torch.equal, drawn(second), before))
    push(second, 1.0)
    assert all(map(torch.equal, drawn(first), before))
    assert not torch.equal(drawn(second)[0], before[0])
