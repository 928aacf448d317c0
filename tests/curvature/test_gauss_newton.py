import pytest
import torch
from failing import refuses
from torch import nn
from torch.func import functional_call, hessian, jacrev
from torch.nn.functional import cross_entropy

from vcl_radial.curvature import diagonal_fisher
from vcl_radial.curvature.gauss_newton import (
    joint_weight,
    layer_passes,
    layers_in_full,
    linear_layers,
    softmax_hessian_root,
)
from vcl_radial.nn import MLP, PointLinear

pytestmark = pytest.mark.usefixtures("double_precision")


def points(n=12, classes=3):
    return torch.randn(n, 3), torch.randint(classes, (n,))


def make_network(hidden=(4, 5), classes=3):
    mlp = MLP(3, classes, hidden=hidden, multi_head=False, posterior=None)
    for p in mlp.parameters():  # biases too
        nn.init.normal_(p)
    return mlp


def blocks(network, data):
    """H_layer = sum_nk (a a') (x) (g g') of every layer, without any factorisation."""
    found = {}
    for name, (a, g) in layer_passes(
        network, linear_layers(network, dict(network.named_parameters())), data
    ):
        columns = torch.einsum("nj,kni->knji", a, g).flatten(0, 1).flatten(1)
        found[name] = found.get(name, 0) + columns.t() @ columns
    return found


def by_columns(weights):
    """`[..., out, in]` to `[..., in * out]`."""
    return weights.mT.flatten(-2)


def test_the_root_is_one_of_the_hessian_of_the_log_likelihood():
    logits, labels = 3 * torch.randn(6, 4), torch.arange(6) % 4
    root = torch.stack(softmax_hessian_root(logits, labels))
    for n in range(6):
        expected = hessian(cross_entropy)(logits[n], labels[n])
        torch.testing.assert_close(root[:, n].t() @ root[:, n], expected)


def test_it_is_the_hessian_of_a_linear_softmax_model():
    network = make_network(hidden=())
    x, y = points()

    def nll(weights):
        W = weights.reshape(4, 3).t()
        return cross_entropy(x @ W[:, :3].t() + W[:, 3], y, reduction="sum")

    joint = joint_weight("head.output", dict(network.named_parameters())).detach()
    expected = hessian(nll)(by_columns(joint))
    torch.testing.assert_close(blocks(network, [((x,), y)])["head.output"], expected)


def test_the_blocks_of_a_deep_network_are_those_of_the_gauss_newton_matrix():
    """With the MLP's own activations, which overwrite the outputs that they are given."""
    network = make_network()
    x, y = points()
    parameters = dict(network.named_parameters())
    jacobians = jacrev(lambda p: functional_call(network, p, (x,)))(parameters)
    p = network(x).softmax(-1).detach()
    middle = torch.diag_embed(p) - p.unsqueeze(2) * p.unsqueeze(1)
    found = blocks(network, [((x[:5],), y[:5]), ((x[5:],), y[5:])])
    diagonal = diagonal_fisher(network, parameters, [((x,), y)], "predictive")
    assert set(found) == {"body.0", "body.1", "head.output"}
    for name, block in found.items():
        parts = [jacobians[f"{name}.weight"], jacobians[f"{name}.bias"].unsqueeze(-1)]
        jacobian = by_columns(torch.cat(parts, dim=-1))  # [N, C, weights of the layer]
        expected = torch.einsum("nca,ncd,ndb->ab", jacobian, middle, jacobian)
        torch.testing.assert_close(block, expected)
        torch.testing.assert_close(by_columns(joint_weight(name, diagonal)), block.diagonal())


def test_labels_have_no_part_in_it():
    network = make_network()
    x, y = points()
    some, others = (blocks(network, [((x,), labels)]) for labels in (y, (y + 1) % 3))
    for name, block in some.items():
        assert torch.equal(block, others[name])


def test_looking_leaves_no_trace():
    network = nn.Sequential(
        nn.Linear(3, 4), nn.Dropout(0.5), nn.ReLU(inplace=True), nn.Linear(4, 3)
    )
    x, y = points()
    state = torch.get_rng_state()
    some, others = blocks(network, [((x,), y)]), blocks(network, [((x,), y)])
    assert all(torch.equal(block, others[name]) for name, block in some.items())
    assert torch.equal(torch.get_rng_state(), state)
    assert network.training
    assert all(p.grad is None for p in network.parameters())
    assert not any(module._forward_hooks for module in network.modules())


def test_only_layers_that_a_point_runs_through_have_a_pass():
    network = MLP(3, 2, hidden=(4,), posterior=None)
    network.head.adapt([0, 1])
    layers = linear_layers(network, dict(network.named_parameters()))
    assert set(layers) == {"body.0", "head.heads.0", "head.heads.1"}
    x, y = points(classes=2)
    passed = [name for name, _ in layer_passes(network, layers, [((x, 1), y)])]
    assert passed == ["body.0", "head.heads.1"]


def test_layers_may_lack_a_bias_and_stand_alone():
    network = nn.Linear(3, 2, bias=False)
    x, y = points(classes=2)
    layers = linear_layers(network, dict(network.named_parameters()))
    ((name, (inputs, gradients)),) = layer_passes(network, layers, [((x,), y)])
    assert name == ""
    assert torch.equal(inputs, x)
    assert gradients.shape == (2, 12, 2)
    assert joint_weight("", dict(network.named_parameters())) is network.weight


def test_a_network_with_other_weights_is_refused():
    network = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    with refuses("'1.bias'", "'laplace_diagonal'"):
        linear_layers(network, dict(network.named_parameters()))
    weights = {"0.weight": network[0].weight}  # its bias is not trained
    with refuses("'0.weight'"):
        linear_layers(network, weights)
    assert set(linear_layers(network, weights | {"0.bias": network[0].bias})) == {"0"}


@pytest.mark.parametrize("chunk", [1, 2**24])
@pytest.mark.parametrize("bias", [True, False])
def test_the_gradient_of_a_convolution_is_the_sum_of_its_places(monkeypatch, chunk, bias):
    monkeypatch.setattr("vcl_radial.curvature.gauss_newton.LARGEST_CHUNK", chunk)
    layer = nn.Conv2d(2, 3, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), bias=bias)
    network = nn.Sequential(layer, nn.Tanh(), nn.Flatten(), nn.Linear(3 * 3 * 2, 3))
    x, y = torch.randn(5, 2, 5, 4), torch.randint(3, (5,))
    layers = layers_in_full(network, dict(network.named_parameters()))
    assert list(layers) == ["0", "3"]
    passes = [found for name, found in layer_passes(network, layers, [((x,), y)]) if name == "0"]
    assert len(passes) == (5 if chunk == 1 else 1)
    a, g = torch.cat([p.inputs for p in passes]), torch.cat([p.gradients for p in passes], 1)
    a, g = a.unflatten(0, (5, 6)), g.unflatten(1, (5, 6))
    summed = torch.einsum("nli,knlo->knoi", a, g)
    logits = network(x)
    for k, column in enumerate(softmax_hessian_root(logits.detach(), y)):
        for n in range(5):
            loss = logits[n] @ column[n]
            gradients = torch.autograd.grad(loss, list(layer.parameters()), retain_graph=True)
            named = dict(zip(("weight", "bias"), gradients, strict=False))
            torch.testing.assert_close(summed[k, n], joint_weight("", named))


@pytest.mark.parametrize("shape", [(12, 3), (12, 2, 3)])
def test_a_layer_that_is_called_twice_or_with_sequences_is_refused(shape):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = PointLinear(3, 3)

        def forward(self, x):
            return self.layer(self.layer(x))

    network = Tied()
    layers = linear_layers(network, dict(network.named_parameters()))
    data = [((torch.randn(shape),), torch.zeros(12, dtype=torch.int64))]
    with refuses("'layer'"):
        list(layer_passes(network, layers, data))
    assert not network.layer._forward_hooks
    assert network.training
