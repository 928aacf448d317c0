"""Tangent features: what a network says when its body's weights move a little."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, jvp

from vcl_radial.curvature.gauss_newton import parameter_name
from vcl_radial.errors import UserError
from vcl_radial.features import Tangent
from vcl_radial.nn import MLP, SingleHead


class Images(nn.Module):
    """Two convolutions, one with a bias, and a linear layer without."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.second = nn.Conv2d(4, 3, 2, bias=False)
        self.last = nn.Linear(3, 5, bias=False)
        self.head = SingleHead(lambda: nn.Linear(5, 2))

    def forward(self, x, task=0):
        x = self.second(self.first(x).tanh()).tanh()
        return self.head(self.last(x.mean((2, 3))), task)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.head = SingleHead(lambda: nn.Linear(4, 2))

    def forward(self, x, task=0):
        return self.head(self.layer(self.layer(x)), task)


NETWORKS = {
    "MLP": (lambda: MLP(12, 2, hidden=[7, 6], posterior=None), (12,)),
    "images": (Images, (2, 6, 6)),
}


def made(name, directions, n=9):
    torch.manual_seed(0)
    make, shape = NETWORKS[name]
    features = Tangent(make().double(), directions).double()
    features.requires_grad_(False)
    return features, torch.randn(n, *shape, dtype=torch.float64)


def directions_of(features, k, name):
    """The directions of a layer, by the names of its weights: a b', split into weight and bias."""
    layer = features.layers[name]
    products = torch.einsum(
        "mo,mi->moi", features.get_buffer(f"left_{k}"), features.get_buffer(f"right_{k}")
    )
    weight, shape = parameter_name(name, "weight"), layer.weight.shape[1:]
    if layer.bias is None:
        return {weight: products.unflatten(2, shape)}
    weights = products[..., :-1].unflatten(2, shape)
    return {weight: weights, parameter_name(name, "bias"): products[..., -1]}


@pytest.mark.parametrize("name", NETWORKS)
def test_they_are_the_slopes_of_the_body_along_their_directions(name):
    features, x = made(name, 3)
    weights = dict(features.body.named_parameters())

    def projection(**moved):
        return functional_call(features.body, weights | moved, (x,)) @ features.readout

    slopes = []
    for k, layer in enumerate(features.layers):
        along = directions_of(features, k, layer)
        for one in range(3):
            step = {weight: moves[one] for weight, moves in along.items()}
            start = {weight: weights[weight] for weight in step}
            _, slope = jvp(lambda moved: projection(**moved), (start,), (step,))
            slopes.append(slope)
    phi = features.body(x)
    torch.testing.assert_close(features(x), torch.cat([phi, torch.stack(slopes, 1)], 1))


@pytest.mark.parametrize("name", NETWORKS)
def test_their_products_are_the_tangent_kernel_on_average(name):
    m = 40_000
    features, x = made(name, m, n=4)
    _, *parts = features(x).split([features.readout.numel()] + [m] * len(features.layers), dim=1)
    for layer, part in zip(features.layers.values(), parts, strict=True):
        weights = [weight.requires_grad_() for weight in layer.parameters()]
        rows = [
            torch.autograd.grad(f, weights, retain_graph=True)
            for f in features.body(x) @ features.readout
        ]
        jacobian = torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])
        kernel = jacobian @ jacobian.T
        size = kernel.diagonal().outer(kernel.diagonal()).sqrt()
        assert ((part @ part.T / m - kernel) / size).abs().max() < 0.05


@pytest.mark.parametrize("name", NETWORKS)
def test_all_parts_weigh_the_same_over_the_first_task(name):
    features, x = made(name, 5, n=40)
    features.fit(lambda: x.split(7))
    parts = features(x).split([features.readout.numel()] + [5] * len(features.layers), dim=1)
    for part in parts:
        assert part.square().sum(1).mean() == pytest.approx(1)
    assert sum(part.shape[1] for part in parts) == features.size


def test_the_body_stays_as_it_is_and_no_gradient_is_left():
    features, x = made("images", 5)
    before = {name: value.clone() for name, value in features.state_dict().items()}
    with torch.no_grad():
        out = features(x)
    assert not out.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in features.state_dict().items())
    assert all(weight.grad is None for weight in features.parameters())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tangent(nn.Sequential(nn.Linear(3, 2))), "no body with linear heads"),
        (lambda: Tangent(MLP(3, 2, hidden=[], posterior=None)), "no linear layer and no plain"),
        (lambda: Tangent(Twice(), 3)(torch.zeros(2, 4)), "must call every layer once"),
    ],
)
def test_a_body_without_tangent_features_is_reported_with_the_fix(make, message):
    with pytest.raises(UserError, match=message):
        make()
