"""Any network made Bayesian computes what it computed, and has a posterior over its weights."""

import copy
import math

import pytest
import torch
from avalanche.models import MTSimpleMLP
from failing import fails
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from torchvision.models import resnet18

from vcl_radial.errors import UserError
from vcl_radial.nn import (
    MLP,
    BayesianConv2d,
    BayesianLinear,
    PointConv2d,
    PointLinear,
    PosteriorSettings,
    VariationalWeights,
    WithHeads,
    consolidate,
    kl_divergence,
    variational_weights,
)
from vcl_radial.nn.conv import BayesianConv
from vcl_radial.nn.convert import to_bayesian
from vcl_radial.nn.vgg import VGG

STILL = PosteriorSettings("radial", initial_rho=-100.0)


@pytest.fixture(scope="module")
def resnet():
    torch.manual_seed(0)
    return resnet18(num_classes=4).eval()


def images(batch=2, size=48):
    return torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(0))


def small():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, (3, 5), stride=(1, 2), padding="valid", dilation=(2, 1)),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular", groups=2, bias=False),
        nn.Flatten(),
        nn.Linear(6 * 6 * 3, 5),
        nn.LayerNorm(5),
        nn.Linear(5, 2, bias=False),
    )


def weights_of(model):
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    return sum(p.numel() for m in model.modules() if isinstance(m, kinds) for p in m.parameters())


def same_draws(first, second, x):
    torch.manual_seed(5)
    expected = first(x)
    torch.manual_seed(5)
    torch.testing.assert_close(second(x), expected, rtol=0, atol=0)


def test_resnet18_computes_what_it_computed(resnet):
    bayesian = to_bayesian(resnet, STILL)
    with torch.no_grad():
        torch.testing.assert_close(bayesian(images()), resnet(images()), rtol=1e-5, atol=1e-5)
    kinds = [type(m) for m in bayesian.modules()]
    assert nn.Linear not in kinds
    assert nn.Conv2d not in kinds
    assert kinds.count(BayesianConv2d) == 20
    assert kinds.count(BayesianLinear) == 1
    assert kinds.count(nn.BatchNorm2d) == 20


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_noise_of_a_given_size_moves_the_output_about_the_original(family):
    model, x = small().eval(), torch.randn(4, 3, 10, 10)
    bayesian = to_bayesian(model, PosteriorSettings(family, initial_noise=1e-4)).eval()
    with torch.no_grad():
        draws = torch.stack([bayesian(x) for _ in range(50)])
        torch.testing.assert_close(draws.mean(0), model(x), rtol=0, atol=0.01)
    assert (draws.std(0) > 0).all()


def test_every_layer_counts_once_in_the_kl():
    settings = PosteriorSettings("gaussian", initial_rho=0.3, prior_scale=0.7)
    model = small()
    bayesian = to_bayesian(model, settings)
    scale, total = math.log1p(math.exp(0.3)), 0.0
    for layer in model:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            for p in layer.parameters():
                squares = p.detach().double().square().sum().item()
                each = 0.5 * (scale / 0.7) ** 2 - 0.5 - math.log(scale / 0.7)
                total += p.numel() * each + 0.5 * squares / 0.7**2
    assert kl_divergence(bayesian, []).item() == pytest.approx(total, rel=1e-5)
    layers = [m for m in bayesian.modules() if isinstance(m, VariationalWeights)]
    assert len(layers) == 4
    assert kl_divergence(bayesian, []).item() == pytest.approx(
        sum(layer.kl().item() for layer in layers), rel=1e-6
    )


def test_resnets_kl_counts_every_layer_once(resnet):
    bayesian = to_bayesian(resnet)
    layers = list(variational_weights(bayesian, []))
    assert len(layers) == len({id(layer) for layer in layers}) == 21
    assert sum(layer.shape.numel() for layer in layers) + 4 == weights_of(resnet)


def test_a_layer_in_two_places_is_converted_once():
    shared = nn.Linear(3, 3)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    bayesian = to_bayesian(model)
    assert bayesian[0] is bayesian[2]
    assert len([m for m in bayesian.modules() if isinstance(m, VariationalWeights)]) == 1
    one = bayesian[0].weights.kl().item()
    assert kl_divergence(bayesian, []).item() == pytest.approx(one)


def test_parameters_are_means_and_scales_and_what_else_there_was(resnet):
    bayesian = to_bayesian(resnet)
    weights = weights_of(resnet)
    total = sum(p.numel() for p in resnet.parameters())
    assert sum(p.numel() for p in bayesian.parameters()) == total + weights
    names = {name for name, _ in bayesian.named_parameters()}
    assert {"layer1.0.bn1.weight", "fc.weights.blocks.0.mean"} <= names
    assert torch.equal(bayesian.bn1.running_var, resnet.bn1.running_var)


@pytest.mark.parametrize("family", ["gaussian", "radial", "rdp"])
def test_the_state_is_saved_without_pickles_and_loaded(family, tmp_path):
    first, x = to_bayesian(small(), family).eval(), torch.randn(4, 3, 10, 10)
    consolidate(first, [])
    with torch.no_grad():
        for p in first.parameters():
            p.add_(0.05 * torch.randn_like(p))
    torch.save(first.state_dict(), tmp_path / "network.pt")
    second = to_bayesian(small(), family).eval()
    second.load_state_dict(torch.load(tmp_path / "network.pt", weights_only=True))
    same_draws(first, second, x)
    assert kl_divergence(second, []).item() == kl_divergence(first, []).item()


def test_a_copy_leaves_the_original_alone_and_in_place_does_not():
    model = small()
    before, state = copy.deepcopy(model), copy.deepcopy(model.state_dict())
    bayesian = to_bayesian(model, "gaussian")
    with torch.no_grad():
        for p in bayesian.parameters():
            p.add_(1.0)
    assert str(model) == str(before)
    assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())
    in_place = to_bayesian(model, "gaussian", inplace=True)
    assert in_place is model
    assert isinstance(model[0], BayesianConv2d)


@pytest.mark.parametrize("grouping", ["layer", "tensor", "unit"])
def test_in_place_too_means_have_a_memory_of_their_own(grouping):
    layer = nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    model = to_bayesian(nn.Sequential(layer), PosteriorSettings(grouping=grouping), inplace=True)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1.0)
    assert torch.equal(layer.weight, before)


LAYERS = [
    (nn.Linear(5, 3), (4, 5)),
    (nn.Linear(5, 3, bias=False), (2, 4, 5)),
    (nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 9)),
    (nn.Conv1d(4, 6, 3, padding="same", padding_mode="reflect", bias=False), (2, 4, 9)),
    (nn.Conv2d(4, 6, (1, 3), padding=(0, 2), dilation=2, padding_mode="replicate"), (2, 4, 6, 7)),
    (nn.Conv3d(2, 4, 3, padding=1, groups=2), (2, 2, 4, 5, 4)),
    (PointConv2d(4, 6, 3), (2, 4, 6, 7)),
    (PointLinear(4, 6), (2, 4)),
]


@pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=str)
@pytest.mark.parametrize("grouping", ["layer", "unit"])
def test_every_kind_of_layer_keeps_its_options(layer, shape, grouping):
    x = torch.randn(shape)
    settings = PosteriorSettings("gaussian", grouping, initial_rho=-100.0)
    bayesian = to_bayesian(layer, settings)
    torch.testing.assert_close(bayesian(x), layer(x))
    assert not any(isinstance(m, type(layer)) for m in bayesian.modules())
    assert sum(p.numel() for p in bayesian.parameters()) == 2 * weights_of(layer)
    noisy = to_bayesian(layer, PosteriorSettings("gaussian", grouping, initial_rho=0.0))
    assert not torch.equal(noisy(x), noisy(x))
    assert not torch.allclose(noisy(x), layer(x))


def test_a_converted_convolution_is_copied_saved_and_shown_as_others_are():
    plain = nn.Conv1d(2, 3, 3, padding=1)
    bayesian = to_bayesian(plain)
    assert isinstance(bayesian, BayesianConv)
    assert bayesian.extra_repr() == plain.extra_repr()
    assert set(bayesian.state_dict()) == set(to_bayesian(nn.Conv2d(2, 3, 3)).state_dict())
    same_draws(bayesian, copy.deepcopy(bayesian), torch.randn(1, 2, 5))
    assert all(p.device.type == "cpu" for p in bayesian.parameters())


def test_type_training_mode_and_randomness_are_kept():
    state = torch.get_rng_state()
    model = small().double()
    state = torch.get_rng_state()
    model[3].eval()
    bayesian = to_bayesian(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.dtype == torch.float64 for p in bayesian.parameters())
    assert [m.training for m in bayesian] == [m.training for m in model]


def test_what_is_kept_stays_with_all_inside_it(resnet):
    bayesian = to_bayesian(resnet, keep=["conv1", "layer1"])
    assert type(bayesian.conv1) is nn.Conv2d
    assert not any(isinstance(m, VariationalWeights) for m in bayesian.layer1.modules())
    assert isinstance(bayesian.layer2[0].conv1, BayesianConv2d)
    assert isinstance(bayesian.fc, BayesianLinear)


def tied():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    return model


def tied_to_an_embedding():
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5))
    model[1].weight = model[0].weight
    return model


def hooked():
    model = nn.Sequential(nn.Linear(3, 3))
    model[0].register_forward_hook(lambda module, given, result: 2 * result)
    return model


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Standardised(nn.Conv2d):
    def _conv_forward(self, x, weight, bias):
        return super()._conv_forward(x, weight - weight.mean(), bias)


REFUSED = [
    (tied, r"0 \(Linear\): shares its weights with another layer"),
    (tied_to_an_embedding, r"1 \(Linear\): shares its weights"),
    (hooked, r"0 \(Linear\): has hooks"),
    (lambda: nn.Sequential(weight_norm(nn.Linear(3, 3))), "is parametrised"),
    (lambda: nn.Sequential(nn.LazyLinear(3)), r"0 \(LazyLinear\): has no weights yet"),
    (lambda: nn.Sequential(Doubled(3, 3)), r"0 \(Doubled\): computes in a way of its own"),
    (lambda: nn.Sequential(Standardised(3, 3, 1)), "computes in a way of its own"),
    (lambda: nn.ModuleDict({"up": nn.ConvTranspose2d(2, 2, 2)}), r"up \(ConvTranspose2d\): has no"),
    (lambda: nn.TransformerEncoderLayer(4, 2), "reads the weights of the layers inside it"),
    (lambda: nn.ModuleList([nn.MultiheadAttention(4, 2)]), r"0 \(MultiheadAttention\): reads"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_what_cannot_be_converted_is_named_and_nothing_is_touched(make, words):
    model = nn.ModuleDict({"body": make(), "out": nn.Linear(2, 2)})
    shown = str(model)
    for inplace in (False, True):
        with pytest.raises(UserError, match=f"{words}.*; or name it in keep"):
            to_bayesian(model["body"], inplace=inplace)
        with pytest.raises(UserError, match="name it in keep"):
            to_bayesian(model, inplace=inplace)
    assert str(model) == shown
    bayesian = to_bayesian(model, keep=["body"])
    assert str(bayesian["body"]) == str(model["body"])
    assert isinstance(bayesian["out"], BayesianLinear)


def test_attention_may_keep_its_own_layer_alone():
    model = nn.ModuleDict({"mix": nn.MultiheadAttention(4, 2), "out": nn.Linear(4, 2)})
    bayesian = to_bayesian(model, keep=["mix.out_proj"])
    mixed, _ = bayesian["mix"](*[torch.randn(3, 1, 4)] * 3)
    assert bayesian["out"](mixed).shape == (3, 1, 2)


def test_unknown_names_and_nothing_to_do_are_refused():
    with fails("keep", "'head'", "0, 3, 5, 7"):
        to_bayesian(small(), keep=["head"])
    with fails("Sequential", "no linear layer"):
        to_bayesian(nn.Sequential(nn.ReLU()))
    with fails("Sequential", "keep"):
        to_bayesian(nn.Sequential(nn.Linear(2, 2)), keep=["0"])
    with fails("inplace"):
        to_bayesian(nn.Linear(2, 2), inplace=True)
    with fails("posterior", "laplace"):
        to_bayesian(small(), "laplace")


def test_heads_that_are_there_and_heads_to_come_are_converted():
    torch.manual_seed(0)
    plain = MLP(6, 3, hidden=(5,), posterior=None)
    plain.head.adapt([0])
    made = to_bayesian(plain, STILL)
    x = torch.randn(4, 6)
    for task in (0, 1, 2):
        made.head.adapt([task])
        assert isinstance(made.head.heads[str(task)], BayesianLinear)
        torch.testing.assert_close(made(x, task), plain(x, task))
    assert [type(h) for h in plain.head.heads.values()] == [PointLinear] * 3
    kept = to_bayesian(plain, STILL, keep=["head"])
    kept.head.adapt([3])
    assert type(kept.head.heads["3"]) is PointLinear


def test_a_module_that_makes_its_layers_as_tasks_come_is_refused():
    with fails("the network (MTSimpleMLP)", "MultiHead"):
        to_bayesian(MTSimpleMLP(input_size=6, hidden_size=5))


@pytest.mark.parametrize("posterior", [None, "none"])
def test_without_a_posterior_every_network_has_point_estimates(posterior):
    plain = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    body = nn.Sequential(nn.Flatten(), nn.Linear(3, 4))
    networks = [
        MLP(3, 2, hidden=(4,), posterior=posterior),
        VGG(1, posterior=posterior),
        WithHeads(body, (3,), 2, posterior=posterior),
        to_bayesian(plain, posterior),
    ]
    for network in networks:
        assert not any(isinstance(module, VariationalWeights) for module in network.modules())
    x = torch.randn(5, 3)
    assert torch.equal(networks[-1](x), plain(x))
    assert networks[-1] is not plain
    assert to_bayesian(plain, posterior, inplace=True) is plain


def test_an_unknown_posterior_is_refused_with_all_that_a_recipe_knows():
    for make in (lambda: MLP(3, 2, posterior="laplace"), lambda: to_bayesian(nn.Linear(2, 2), "")):
        with fails("posterior", "gaussian", "radial", "rdp or none"):
            make()


@pytest.mark.parametrize("posterior", ["radial", "gaussian", "low-rank"])
def test_a_frozen_layer_stays_frozen(posterior):
    model = small()
    for layer in (model[0], model[1], model[3]):
        layer.requires_grad_(False)
    made = to_bayesian(model, posterior)
    frozen = {name.split(".")[0] for name, p in made.named_parameters() if not p.requires_grad}
    assert frozen == {"0", "1", "3"}
    assert all(p.requires_grad for name, p in made.named_parameters() if name[0] not in "013")
    scales = made[0].weights.posterior_blocks()[0].scale()
    assert scales.unique().item() == pytest.approx(math.log1p(math.exp(-6)))


@pytest.mark.parametrize("part", ["weight", "bias"])
def test_a_layer_that_is_frozen_in_part_is_refused(part):
    model = small()
    getattr(model[5], part).requires_grad_(False)
    with fails("5 (Linear)", "freeze"):
        to_bayesian(model)
