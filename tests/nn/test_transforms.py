"""The transforms of `torch.func` on networks with a posterior give what autograd gives."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

from vcl_radial.errors import UserError
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import kl_divergence
from vcl_radial.nn.blocks import softplus
from vcl_radial.nn.convert import to_bayesian
from vcl_radial.posteriors import families

FAMILIES = list(families())
SHAPES = {"mlp": (3,), "convolutions": (1, 3, 3)}


def network(kind, posterior):
    torch.manual_seed(0)
    layers = {
        "mlp": [nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)],
        "convolutions": [nn.Conv2d(1, 2, 2), nn.Tanh(), nn.Flatten(-3), nn.Linear(8, 2)],
    }
    return to_bayesian(nn.Sequential(*layers[kind]), posterior).double()


def call(net, weights, x):
    torch.manual_seed(1)  # one draw, whoever asks
    return functional_call(net, weights, (x,))


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("posterior", FAMILIES)
def test_gradients_by_weights_and_inputs_are_those_of_autograd(kind, posterior):
    net, x = network(kind, posterior), torch.randn(5, *SHAPES[kind], dtype=torch.float64)
    weights = dict(net.named_parameters())

    def loss(weights, x):
        return call(net, weights, x).square().sum()

    expected = torch.autograd.grad(loss(weights, x), list(weights.values()))
    found = grad(loss)(weights, x)
    for name, slope in zip(weights, expected, strict=True):
        torch.testing.assert_close(found[name], slope)
    by_input = torch.autograd.functional.jacobian(lambda x: call(net, weights, x), x[0])
    torch.testing.assert_close(jacrev(lambda x: call(net, weights, x))(x[0]), by_input)
    forward = jacfwd(lambda x: call(net, weights, x), randomness="same")(x[0])
    torch.testing.assert_close(forward, by_input)


@pytest.mark.parametrize("posterior", FAMILIES)
def test_second_derivatives_by_scales_are_those_of_autograd(posterior):
    net, x = network("mlp", posterior), torch.randn(5, 3, dtype=torch.float64)
    weights = dict(net.named_parameters())
    name = next(name for name in weights if name.endswith("rho"))

    def loss(rho):
        return call(net, weights | {name: rho}, x).square().sum()

    expected = torch.autograd.functional.hessian(loss, weights[name].detach())
    found = jacfwd(jacrev(loss), randomness="same")(weights[name].detach())
    torch.testing.assert_close(found, expected)
    _, along = jvp(loss, (weights[name],), (torch.ones_like(weights[name]),))
    slope = torch.autograd.grad(loss(weights[name]), weights[name])[0]
    torch.testing.assert_close(along, slope.sum())


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("posterior", FAMILIES)
def test_vmap_draws_once_for_all_or_for_each(kind, posterior):
    net, x = network(kind, posterior), torch.ones(5, 2, *SHAPES[kind], dtype=torch.float64)
    same = vmap(net, randomness="same")(x)
    assert torch.equal(same, same[:1].expand_as(same))
    different = vmap(net, randomness="different")(x)
    assert len(different[:, 0, 0].unique()) == 5
    assert torch.equal(different[:, 0], different[:, 1])


@pytest.mark.parametrize("at", [-30.0, 0.0, 30.0])
def test_the_scale_and_its_slope_are_the_same_under_a_transform(at):
    rho = torch.tensor([at], dtype=torch.float64, requires_grad=True)
    scale = softplus(rho)
    slope = torch.autograd.grad(scale, rho)[0]
    torch.testing.assert_close(vmap(softplus)(rho), scale)
    torch.testing.assert_close(grad(lambda r: softplus(r).sum())(rho), slope)


def test_in_the_middle_of_a_task_the_weights_are_those_of_the_transform():
    net, x = network("mlp", "radial").float(), torch.randn(5, 3)
    method = VCL(net)
    method.begin_task(Task(0, 5, lambda: iter([Batch(x, torch.zeros(5).long())])))
    weights = {name: torch.zeros_like(w) for name, w in net.named_parameters()}
    slopes = grad(lambda weights: call(net, weights, x).sum())(weights)
    assert all(slope.isfinite().all() for slope in slopes.values())
    assert slopes["2.weights.blocks.0.mean"][0, -2:].tolist() == [5.0, 5.0]


def test_what_has_no_rule_is_refused_in_one_line():
    x = torch.ones(3, dtype=torch.float64)
    net, drawn = network("mlp", "rdp"), network("mlp", "radial")
    with pytest.raises(UserError, match=r"^the transforms of torch\.func[^\n]+$"):
        jacrev(net)(x)
    with pytest.raises(UserError, match=r"^the weights are drawn at random: give[^\n]+$"):
        hessian(drawn)(x)
    with pytest.raises(UserError, match=r"^the weights are drawn at random: give[^\n]+$"):
        vmap(drawn)(x.expand(2, 3))
    low_rank = network("mlp", "low-rank")
    low_rank.forward = lambda: kl_divergence(low_rank, [])
    with pytest.raises(UserError, match=r"^the transforms of torch\.func"):
        grad(lambda weights: functional_call(low_rank, weights, ()))(
            dict(low_rank.named_parameters())
        )
