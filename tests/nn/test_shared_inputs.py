"""A first layer's outputs without draws of its weights: the same distribution for every point."""

import pytest
import torch
from torch import nn

from vcl_radial.nn import MLP, BayesianLinear, PosteriorSettings
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.nn.shared_inputs import FirstLayer, shared_inputs
from vcl_radial.posteriors import Radial

CASES = {
    "gaussian": ("gaussian", "layer", True),
    "radial by layer": ("radial", "layer", True),
    "radial by unit": ("radial", "unit", True),
    "radial by tensor": ("radial", "tensor", True),
    "radial without a bias": ("radial", "layer", False),
    "eq. 44": ("radial-eq44", "unit", True),
}


def layer(family, grouping, bias, inputs=3, outputs=2):
    """With a scale of its own for every weight."""
    torch.manual_seed(0)
    made = BayesianLinear(inputs, outputs, bias, PosteriorSettings(family, grouping))
    with torch.no_grad():
        for block in made.weights.posterior_blocks():
            block.rho.uniform_(-1, 1)
            block.mean.normal_()
    return made


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@torch.no_grad()
def test_outputs_of_a_point_have_the_distribution_of_draws(case):
    """First moments, second and fourth ones, of sums and differences too, which see what goes
    together, and of absolute values; of small groups, where the radius is felt most."""
    one, x = layer(*case), torch.tensor([[1.0, -2.0, 0.5], [0.0, 0.0, 3.0]])
    first, N = FirstLayer(one.weights, x), 200_000
    weight, bias = one.weights.split(
        [b.posterior.sample(N) for b in one.weights.posterior_blocks()]
    )
    drawn = torch.einsum("noi,bi->nbo", weight, x) + (0 if bias is None else bias[:, None])
    moments = []
    for y in (first.draws(N), drawn):
        both = torch.cat([y, y.sum(-1, keepdim=True), y.diff(dim=-1)], -1) - first.mean.mean()
        looks = torch.cat([both, both**2, both.abs(), both**4], -1)
        moments.append((looks.mean(0), looks.var(0) / N))
    (mean, error), (other, other_error) = moments
    assert ((mean - other).abs() < 5 * (error + other_error).sqrt()).all()


@torch.no_grad()
def test_at_one_weight_radial_and_gaussian_are_one():
    x = torch.tensor([[2.0]])
    for grouping in ("unit", "layer"):
        first = FirstLayer(layer("radial", grouping, False, 1, 1).weights, x)
        draws = first.draws(50_000) - first.mean
        assert draws.std().item() == pytest.approx(first.deviation.item(), rel=0.02)
        kurtosis = draws.pow(4).mean() / draws.square().mean() ** 2
        assert kurtosis.item() == pytest.approx(3, abs=0.15)


def test_only_inputs_as_they_are_and_without_gradients():
    network, x = MLP(6, 2, hidden=[5], multi_head=False), torch.randn(4, 6)
    drawn = []
    sample = network.body[0].weights.sample
    network.body[0].weights.sample = lambda: drawn.append(1) or sample()
    with shared_inputs(network, x), torch.no_grad():
        network(x)
        assert not drawn
        for other in (x.clone(), x[:2]):
            network(other)
        assert len(drawn) == 2
    with shared_inputs(network, x):
        network(x).sum().backward()
    assert len(drawn) == 3
    with torch.no_grad():
        network(x)
    assert len(drawn) == 4


@torch.no_grad()
def test_parts_of_a_point_share_a_draw():
    """Where a network cuts its inputs into patches, a point's patches see the same weights."""

    class Patches(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer("radial", "layer", True)

        def forward(self, x):
            return self.layer(x.view(-1, 3)).view(len(x), 2, 2)

    network, x = Patches(), torch.ones(5, 6)
    with shared_inputs(network, x):
        y = network(x)
    torch.testing.assert_close(y[:, 0], y[:, 1])


def test_families_of_other_noise_draw_their_weights():
    class Heavy(Radial):
        def noise(self, n, generator=None):
            return super().noise(n, generator) ** 3

    low_rank = map(PosteriorSettings, ("low-rank", "radial-low-rank"))
    for settings in (PosteriorSettings(Heavy), *low_rank, RDPSettings("row", 0.05)):
        assert not FirstLayer.serves(BayesianLinear(3, 2, True, settings).weights)
