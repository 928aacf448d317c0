import pytest
import torch
from failing import refuses
from torch import nn
from torch.nn.functional import cross_entropy, linear, relu

from vcl_radial.curvature import diagonal_fisher, output_sensitivity
from vcl_radial.nn import MLP

KINDS = ["empirical", "predictive", "sensitivity"]


class Reused(nn.Module):
    """One layer twice in a row, so that its gradient is a sum of two outer products."""

    def __init__(self):
        super().__init__()
        self.first, self.twice, self.last = nn.Linear(6, 5), nn.Linear(5, 5), nn.Linear(5, 3)

    def forward(self, x):
        return self.last(relu(self.twice(relu(self.twice(self.first(x)))), inplace=True))


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.last(self.second(self.first(x).tanh()))


class ByItsWeight(nn.Module):
    """A layer that is not called, though its weights are used."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 5), nn.Linear(5, 3)

    def forward(self, x):
        return linear(self.first(x).tanh(), self.last.weight, self.last.bias)


class OnPatches(nn.Module):
    """A linear layer on each of three patches of a row."""

    def __init__(self):
        super().__init__()
        self.patch, self.last = nn.Linear(2, 4), nn.Linear(12, 3)

    def forward(self, x):
        return self.last(self.patch(x.view(len(x), 3, 2)).tanh().flatten(1))


def convolutional():
    features = nn.Conv1d(1, 4, 3), nn.ReLU(inplace=True), nn.Flatten()
    return nn.Sequential(nn.Unflatten(1, (1, 6)), *features, nn.Linear(16, 3))


def on_images(groups=1):
    first = nn.Conv2d(1, 4, (2, 3), padding=(2, 3), dilation=(1, 2))  # [4, 5, 5]
    second = nn.Conv2d(4, 2, 3, stride=(1, 2), padding=1, bias=False, groups=groups)
    layers = first, nn.ReLU(inplace=True), nn.MaxPool2d(2), second, nn.Tanh(), nn.Flatten()
    return nn.Sequential(nn.Unflatten(1, (1, 2, 3)), *layers, nn.Linear(4, 3))


def normalised():
    network = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
    network(torch.randn(50, 6))
    return network


NETWORKS = {
    "linear layers": lambda: MLP(6, 3, hidden=(7, 5), multi_head=False, posterior=None),
    "no bias": lambda: nn.Sequential(nn.Linear(6, 4, bias=False), nn.Tanh(), nn.Linear(4, 3)),
    "a layer used twice": Reused,
    "a shared weight": Tied,
    "a layer that is not called": ByItsWeight,
    "patches": OnPatches,
    "convolution": convolutional,
    "convolutions of images": on_images,
    "grouped convolution": lambda: on_images(groups=2),
    "batch norm": normalised,
    "dropout": lambda: nn.Sequential(nn.Linear(6, 9), nn.Dropout(), nn.ReLU(), nn.Linear(9, 3)),
}


@pytest.fixture(params=NETWORKS)
def network(request):
    torch.manual_seed(1)
    return NETWORKS[request.param]().double()


@pytest.fixture
def data():
    torch.manual_seed(2)
    return torch.randn(23, 6, dtype=torch.float64), torch.randint(3, (23,))


def found(kind, network, batches, parameters=None):
    parameters = dict(network.named_parameters()) if parameters is None else parameters
    points = [((x,), y) for x, y in batches]
    if kind == "sensitivity":
        return output_sensitivity(network, parameters, points)
    return diagonal_fisher(network, parameters, points, kind)


def point_by_point(kind, network, x, y):
    """The definitions, one backward pass for each point (and class)."""
    network.eval()
    weights = dict(network.named_parameters())
    total = {name: torch.zeros_like(weight) for name, weight in weights.items()}

    def add(scalar, power, factor=1.0):
        gradients = torch.autograd.grad(scalar, list(weights.values()), retain_graph=True)
        for name, gradient in zip(weights, gradients, strict=True):
            total[name] += factor * gradient.abs() ** power

    for point, label in zip(x, y, strict=True):
        logits = network(point[None])
        if kind == "sensitivity":
            add(logits.square().sum(), 1)
        elif kind == "empirical":
            add(cross_entropy(logits, label[None]), 2)
        else:
            p = logits.detach().softmax(-1)[0]
            for c in range(len(p)):
                add(cross_entropy(logits, torch.tensor([c])), 2, p[c])
    network.train()
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_sum_over_single_points(kind, network, data):
    expected = point_by_point(kind, network, *data)
    torch.testing.assert_close(found(kind, network, [data]), expected)
    assert all(total.max() > 0 for total in expected.values())


@pytest.mark.parametrize("kind", KINDS)
def test_it_does_not_depend_on_the_batches(kind, network, data):
    whole = found(kind, network, [data])
    for sizes in ([4] * 5 + [3], [22, 1]):
        batches = list(zip(*(part.split(sizes) for part in data), strict=True))
        torch.testing.assert_close(found(kind, network, batches), whole)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_that_do_not_fit_at_once_change_nothing(kind, network, data, monkeypatch):
    expected = found(kind, network, [data])
    numbers = sum(weight.numel() for weight in network.parameters())
    for held in (1, 5 * numbers):
        monkeypatch.setattr("vcl_radial.curvature.fisher.LARGEST_CHUNK", held)
        torch.testing.assert_close(found(kind, network, [data]), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_linear_layers_and_convolutions_need_no_whole_gradient_for_each_point(
    kind, data, monkeypatch
):
    monkeypatch.delattr("vcl_radial.curvature.fisher._add_per_point")
    torch.manual_seed(1)
    for name in ("linear layers", "convolutions of images"):
        found(kind, NETWORKS[name]().double(), [data])
    with pytest.raises(NameError):
        found(kind, NETWORKS["patches"]().double(), [data])


def test_only_what_is_asked_for_is_returned(network, data):
    whole = found("empirical", network, [data])
    for name, weight in [*network.named_parameters()][::3]:
        only = found("empirical", network, [data], {name: weight})
        torch.testing.assert_close(only, {name: whole[name]})


def test_the_network_is_left_as_it_was(network, data):
    before = {name: value.clone() for name, value in network.state_dict().items()}
    for training in (True, False):
        network.train(training)
        found("predictive", network, [data])
        assert network.training is training
    torch.testing.assert_close(network.state_dict(), before, rtol=0, atol=0)
    assert all(weight.grad is None for weight in network.parameters())
    assert not any(module._forward_hooks for module in network.modules())


def test_the_predictive_fisher_of_logistic_regression_is_the_diagonal_of_the_hessian(data):
    """Softmax with logits linear in the weights: Hessian and Fisher are one, at any weights."""
    torch.manual_seed(3)
    x, y = data
    network = nn.Linear(6, 3).double()

    def loss(weight, bias):
        return cross_entropy(x @ weight.T + bias, y, reduction="sum")

    hessian = torch.autograd.functional.hessian(loss, (network.weight, network.bias))
    fisher = found("predictive", network, [data])
    torch.testing.assert_close(fisher["weight"].flatten(), hessian[0][0].view(18, 18).diagonal())
    torch.testing.assert_close(fisher["bias"], hessian[1][1].diagonal())


def test_the_predictive_fisher_is_the_expectation_of_the_empirical_one(network, data):
    x = data[0][:5]
    network.eval()
    expected = {name: torch.zeros_like(weight) for name, weight in network.named_parameters()}
    for point in x:
        p = network(point[None]).softmax(-1)[0].detach()
        for label, weight in enumerate(p):
            single = found("empirical", network, [(point[None], torch.tensor([label]))])
            for name in expected:
                expected[name] += weight * single[name]
    torch.testing.assert_close(found("predictive", network, [(x, data[1][:5])]), expected)


def test_the_sensitivity_of_a_linear_network_is_known_in_closed_form(data):
    """||W x||^2 has the gradient 2 (W x) x'; absolute values are summed, so no signs cancel."""
    torch.manual_seed(3)
    x, y = data
    network = nn.Linear(6, 3, bias=False).double()
    expected = 2 * (x @ network.weight.T).detach().abs().T @ x.abs()
    torch.testing.assert_close(found("sensitivity", network, [(x, y)]), {"weight": expected})


def test_the_sensitivity_looks_at_no_label(network, data):
    x, y = data
    others = (y + 1) % 3
    both = [found("sensitivity", network, [(x, labels)]) for labels in (y, others)]
    torch.testing.assert_close(*both, rtol=0, atol=0)


def test_a_head_that_was_not_called_has_no_importance():
    torch.manual_seed(1)
    network = MLP(6, 3, hidden=(7,), posterior=None)
    network.head.adapt([0, 4])
    points = [((torch.randn(9, 6), 4), torch.randint(3, (9,)))]
    total = diagonal_fisher(network, dict(network.named_parameters()), points)
    for name, values in total.items():
        assert (values.max() == 0) == ("heads.0" in name)


def test_an_unknown_fisher_is_named_with_those_that_are_known(network, data):
    with refuses("fisher = 'true'", "empirical, predictive"):
        found("true", network, [data])
