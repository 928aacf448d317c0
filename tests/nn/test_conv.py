import math

import pytest
import torch
from scipy import stats
from torch import nn
from torch.optim import SGD

from vcl_radial.nn import (
    BayesianConv2d,
    BayesianLinear,
    ClosedFormGradients,
    PointConv2d,
    PosteriorBlock,
    PosteriorSettings,
    consolidate,
    kl_divergence,
)
from vcl_radial.posteriors import families

GROUPINGS = ["layer", "tensor", "unit"]
OPTIONS = [
    {},
    {"kernel_size": 1},
    {"kernel_size": (1, 5)},
    {"stride": 2},
    {"stride": (3, 1), "padding": (0, 2)},
    {"padding": 1, "dilation": 2},
    {"padding": "same", "dilation": (1, 2)},
    {"padding": "same", "kernel_size": (2, 4)},
    {"padding": "valid", "stride": 2},
    {"groups": 2},
    {"groups": 4, "padding": 2, "stride": 2, "bias": False},
    {"bias": False},
    {"padding": 2, "padding_mode": "reflect"},
    {"padding": (0, 3), "padding_mode": "replicate", "stride": 2},
    {"padding": "same", "kernel_size": 4, "padding_mode": "reflect"},
    {"padding": 3, "padding_mode": "circular", "groups": 2, "dilation": 2, "bias": False},
]
IMPOSSIBLE = [
    {"groups": 3},
    {"groups": 0},
    {"padding": "full"},
    {"padding": "same", "stride": 2},
    {"padding_mode": "mirror"},
]


def layer(family="radial", grouping="layer", rho=-6.0, **options):
    torch.manual_seed(0)
    settings = PosteriorSettings(family=family, grouping=grouping, initial_rho=rho)
    return BayesianConv2d(**{**SIZES, **options}, posterior=settings).double()


SIZES = {"in_channels": 4, "out_channels": 8, "kernel_size": 3}


def images(*shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def moved(layer):
    """The layer with means, biases too, and scales that are all different."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return layer


def plain(layer, **options):
    """PyTorch's own layer with the means as its weights."""
    same = nn.Conv2d(**{**SIZES, **options}, dtype=torch.float64)
    weight, bias = layer.weights.mean()
    with torch.no_grad():
        same.weight.copy_(weight)
        if bias is not None:
            same.bias.copy_(bias)
    return same


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel:UserWarning")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_without_noise_it_is_pytorchs_own_layer(options, grouping):
    ours = moved(layer(grouping=grouping, rho=-100.0, **options))
    for x in (images(2, 4, 9, 8), images(4, 9, 8)):
        torch.testing.assert_close(ours(x), plain(ours, **options)(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("options", IMPOSSIBLE, ids=str)
def test_impossible_options_are_refused_in_pytorchs_own_words(options):
    with pytest.raises(ValueError, match=r"\w+") as theirs:
        nn.Conv2d(**{**SIZES, **options})
    with pytest.raises(ValueError, match=r"\w+") as ours:
        layer(**options)
    assert str(ours.value) == str(theirs.value)


def test_images_of_other_channels_are_refused_in_pytorchs_own_words():
    x = images(2, 5, 9, 8)
    with pytest.raises(RuntimeError, match="to have 4 channels, but got 5"):
        layer()(x)


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("family", list(families()))
@pytest.mark.parametrize("bias", [True, False])
def test_with_a_kernel_of_one_place_it_is_the_linear_layer_at_every_place(family, grouping, bias):
    settings = PosteriorSettings(family, grouping)
    torch.manual_seed(5)
    conv = BayesianConv2d(4, 8, 1, bias=bias, posterior=settings).double()
    torch.manual_seed(5)
    linear = BayesianLinear(4, 8, bias=bias, posterior=settings).double()
    for ours, theirs in zip(conv.parameters(), linear.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    linear.load_state_dict(moved(conv).state_dict())
    x = images(3, 4, 5, 6)
    torch.manual_seed(7)
    y = conv(x)
    torch.manual_seed(7)
    at_every_place = linear(x.movedim(1, -1)).movedim(-1, 1)
    torch.testing.assert_close(y, at_every_place)
    assert kl_divergence(conv, []).item() == kl_divergence(linear, []).item()


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_the_output_has_the_mean_and_the_variance_that_its_weights_give_it(family, grouping):
    options = {"groups": 2, "stride": 2, "padding": 1}
    ours = moved(layer(family, grouping, rho=-1.0, **options))
    x, draws = images(1, 4, 5, 4), 4000
    with torch.no_grad():
        found = torch.stack([ours(x) for _ in range(draws)])
        mean = plain(ours, **options)(x)
        # Weights are uncorrelated within a group too, so that their variances add up.
        variances = [
            softplus_square(block.rho) / (block.mean.shape[-1] if family == "radial" else 1)
            for block in ours.weights.blocks
        ]
        weight, bias = ours.weights.grouping.split(variances, ours.weights.shape)
        variance = nn.functional.conv2d(x.square(), weight, bias, 2, 1, 1, 2)
    error = (found.mean(0) - mean) / (variance / draws).sqrt()
    assert error.abs().max() < 5
    # A shared radius times a direction is as a product of two normals, of kurtosis 9 at most: the
    # variance of the draws is known to sqrt(8 / draws) = 4.5 per cent.
    torch.testing.assert_close(found.var(0) / variance, torch.ones_like(mean), rtol=0, atol=0.2)


def softplus_square(rho):
    return nn.functional.softplus(rho).square()


def test_a_radial_weight_alone_in_its_group_is_gaussian():
    options = {"in_channels": 1, "out_channels": 1, "kernel_size": 1, "bias": False}
    ours = layer("radial", rho=0.5, **options)
    one = torch.ones(1, 1, 1, 1, dtype=torch.float64)
    with torch.no_grad():
        draws = torch.stack([ours(one) for _ in range(2000)]).flatten()
    mean, scale = ours.weights.mean()[0].item(), math.log1p(math.exp(0.5))
    assert stats.kstest(draws.numpy(), stats.norm(mean, scale).cdf).pvalue > 1e-3


def test_every_call_draws_new_weights_and_one_draw_serves_the_batch():
    ours, x = layer(rho=0.0, padding=1, padding_mode="circular"), images(4, 9, 8)
    first, second = ours(torch.stack([x, x]))
    assert torch.equal(first, second)
    assert not torch.equal(first, ours(x))
    # The same kernel at every place: what is moved in the image is moved in the output.
    first, second = ours(torch.stack([x, x.roll((2, 3), (1, 2))]))
    torch.testing.assert_close(first.roll((2, 3), (1, 2)), second)


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("options", [{}, {"groups": 2}, {"bias": False, "kernel_size": (2, 5)}])
def test_the_kl_counts_every_weight_and_bias(grouping, options):
    ours = layer("gaussian", grouping, rho=0.2, **options)
    with torch.no_grad():
        for block in ours.weights.blocks:
            block.mean.fill_(0.7)
    weights = sum(p.numel() for p in nn.Conv2d(**{**SIZES, **options}).parameters())
    scale = math.log1p(math.exp(0.2))
    of_one = 0.5 * (scale**2 + 0.7**2 - 1) - math.log(scale)
    assert ours.weights.kl().item() == pytest.approx(weights * of_one)
    assert sum(p.numel() for p in ours.parameters()) == 2 * weights


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_units_are_output_channels(grouping):
    D = 4 * 9 + 1
    shapes = [tuple(block.mean.shape) for block in layer(grouping=grouping).weights.blocks]
    assert (
        shapes == {"layer": [(1, 8 * D)], "tensor": [(1, 288), (1, 8)], "unit": [(8, D)]}[grouping]
    )


def test_it_has_no_parameters_or_state_but_those_of_its_posterior():
    ours = layer()
    names = {f"weights.blocks.0.{name}" for name in ("mean", "rho")}
    assert {name for name, _ in ours.named_parameters()} == names
    assert not any(isinstance(module, nn.Conv2d) for module in ours.modules())
    state = ours.state_dict()
    kept = {f"weights.blocks.0.{name}" for name in ("prior_mean", "prior_scale", "_extra_state")}
    assert set(state) == names | kept | {"weights._extra_state"}
    assert all(p.dtype == torch.float64 and p.device.type == "cpu" for p in ours.parameters())


def test_its_text_shows_the_options_as_pytorchs_does():
    options = {"stride": 2, "padding": 1, "padding_mode": "reflect", "groups": 2, "bias": False}
    assert layer(**options).extra_repr() == nn.Conv2d(**{**SIZES, **options}).extra_repr()


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("bayesian", [True, False])
def test_means_start_at_he_with_the_inputs_that_one_output_sees(bayesian, groups):
    torch.manual_seed(0)
    made = (BayesianConv2d if bayesian else PointConv2d)(32, 200, (3, 5), groups=groups)
    weight, bias = made.weights.mean() if bayesian else (made.weight, made.bias)
    seen = 32 // groups * 3 * 5
    assert weight.std().item() == pytest.approx(
        (2 / seen) ** 0.5, rel=4 / math.sqrt(2 * 200 * seen)
    )
    assert not bias.any()


def test_the_counterpart_starts_where_the_means_start():
    torch.manual_seed(3)
    bayesian = BayesianConv2d(4, 8, 3, groups=2)
    torch.manual_seed(3)
    point = PointConv2d(4, 8, 3, groups=2)
    assert torch.equal(bayesian.weights.mean()[0], point.weight)


def network(family="radial"):
    torch.manual_seed(0)
    settings = PosteriorSettings(family)
    return nn.Sequential(
        BayesianConv2d(4, 6, 3, stride=2, posterior=settings),
        nn.ReLU(),
        BayesianConv2d(6, 6, 3, padding="same", groups=3, bias=False, posterior=settings),
        nn.Flatten(),
        BayesianLinear(6 * 4 * 3, 2, posterior=settings),
    ).double()


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_the_closed_form_gradient_reaches_convolutions_as_autograd_does(family):
    x, factor = images(5, 4, 9, 8), 0.01

    def gradients(closed_form):
        net = moved(network(family))
        consolidate(net, [])
        moved(net)
        taken_over = ClosedFormGradients(net) if closed_form else None
        torch.manual_seed(4)
        loss = net(x).square().mean()
        if taken_over is None:
            (loss + factor * kl_divergence(net, [])).backward()
        else:
            loss.backward()
            blocks = [block for block in net.modules() if isinstance(block, PosteriorBlock)]
            taken_over.before_step(SGD(net.parameters()), blocks, factor)
        return [parameter.grad for parameter in net.parameters()]

    for found, expected in zip(gradients(True), gradients(False), strict=True):
        assert expected.any()
        torch.testing.assert_close(found, expected)


def test_the_gradient_of_one_draw_is_right():
    ours, x = moved(layer(rho=0.0, groups=2, padding=1, padding_mode="reflect")), images(2, 4, 5, 4)
    (block,) = ours.weights.blocks

    def output(mean, rho):
        torch.manual_seed(2)
        parameters = {"weights.blocks.0.mean": mean, "weights.blocks.0.rho": rho}
        return torch.func.functional_call(ours, parameters, (x,))

    few = (block.mean.detach().clone(), block.rho.detach().clone())
    assert torch.autograd.gradcheck(output, [p.requires_grad_() for p in few], fast_mode=True)
