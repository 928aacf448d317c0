import pytest
import torch
from torch import nn
from torchvision.models.vgg import cfgs, make_layers

from vcl_radial.nn import PosteriorSettings, consolidate, kl_divergence, variational_weights
from vcl_radial.nn.vgg import VGG


def parameters(network):
    return sum(p.numel() for p in network.parameters())


def images(batch=2, size=32, channels=3):
    return torch.randn(batch, channels, size, size, generator=torch.Generator().manual_seed(0))


def network(**options):
    torch.manual_seed(0)
    return VGG(**{"channels": 4, **options})


def test_the_counts_of_the_papers_networks():
    with torch.device("meta"):
        published = parameters(make_layers(cfgs["D"]))  # 64 channels, convolutions only
        deterministic = parameters(VGG(64, posterior=None))
        bayesian = parameters(VGG(46))
        small, small_weights = parameters(VGG(16)), parameters(VGG(16, posterior=None))
    print(f"64 channels: {deterministic:,}; 46 Bayesian: {bayesian:,}; 16 Bayesian: {small:,}")
    assert deterministic == published + 2 * 512 * 2 + 2 == 14_716_738
    # "About 15M" each, and so of one size.
    assert bayesian == pytest.approx(15e6, rel=0.02)
    assert bayesian == pytest.approx(deterministic, rel=0.04)
    # The paper's "about 1.3M" lies between the weights and twice the weights.
    assert small == 2 * small_weights == 1_842_596
    assert small_weights < 1.3e6 < small


def test_convolutions_are_vgg_16s():
    """Its trunk gives what torchvision's gives with the same weights, up to the last pooling."""
    torch.manual_seed(0)
    theirs = make_layers(cfgs["D"])[:-1]
    ours = VGG(64, posterior=None)
    convolutions = [m for m in theirs if isinstance(m, nn.Conv2d)]
    mine = [layer for block in ours.blocks for layer in block]
    assert len(mine) == len(convolutions) == 13
    for layer, original in zip(mine, convolutions, strict=True):
        layer.load_state_dict(original.state_dict())
    x = images(1, 64)
    with torch.no_grad():
        last = theirs(x)
        features = ours.features(x)
    torch.testing.assert_close(features, torch.cat([last.mean((2, 3)), last.amax((2, 3))], 1))


@pytest.mark.parametrize(
    "family", ["gaussian", "radial", "radial-eq44", "low-rank", "radial-low-rank", "rdp"]
)
def test_any_family_has_a_posterior_over_every_weight(family):
    bayesian, point = network(posterior=family), network(posterior=None)
    layers = list(variational_weights(bayesian, []))
    assert len(layers) == 14
    assert sum(layer.shape.numel() for layer in layers) == sum(
        p.numel() for name, p in point.named_parameters() if name.endswith("weight")
    )
    x = images()
    assert not torch.equal(bayesian(x), bayesian(x))
    loss = bayesian(x).square().sum() + 1e-6 * kl_divergence(bayesian, [])
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in bayesian.parameters())


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_without_noise_it_is_the_network_of_its_means(family):
    settings = PosteriorSettings(family, initial_rho=-100.0)
    bayesian, point = network(posterior=settings), network(posterior=None)
    torch.testing.assert_close(bayesian(images()), point(images()))


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_a_carried_posterior_has_no_divergence_from_itself(family):
    bayesian = network(posterior=family)
    assert kl_divergence(bayesian, []).item() > 1
    consolidate(bayesian, [])
    assert kl_divergence(bayesian, []).item() == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("size", [16, 28, 33, 64])
@pytest.mark.parametrize("first_stride", [1, 2])
def test_images_of_any_size_give_logits(size, first_stride):
    made = network(first_stride=first_stride, classes=3)
    assert made(images(size=size)).shape == (2, 3)
    assert made.features(images(size=size)).shape == (2, 64)


def test_features_do_not_depend_on_where_something_is():
    """Global pooling: a pattern far from the rim, moved by a pooling's whole step."""
    made, x = network(posterior=None), torch.zeros(2, 3, 320, 320)
    pattern = images(1, 16)[0]
    x[0, :, 144:160, 144:160] = pattern
    x[1, :, 160:176, 144:160] = pattern
    with torch.no_grad():
        for block in made.blocks:
            for layer in block:
                layer.bias.zero_()
        features = made.features(x)
    torch.testing.assert_close(features[0], features[1], rtol=1e-4, atol=1e-6)


def test_a_stride_of_two_takes_a_quarter_of_the_work():
    from torch.utils.flop_counter import FlopCounterMode

    def work(stride):
        made = network(posterior=None, first_stride=stride)
        with FlopCounterMode(display=False) as counter:
            made(images(size=64))
        return counter.get_total_flops()

    assert work(1) / work(2) == pytest.approx(4, rel=0.02)


def test_bfloat16_is_close_to_float32():
    exact, rough = (network(posterior=None, precision=p) for p in ("float32", "bfloat16"))
    x = images()
    found = rough(x)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, exact(x), rtol=0.1, atol=0.1)
    assert not torch.equal(found, exact(x))
    # The head has all bits: what it says is not one of the few numbers of 8 bits.
    assert not torch.equal(found, found.bfloat16().float())


def test_a_network_is_saved_and_loaded(tmp_path):
    first = network()
    consolidate(first, [])
    torch.save(first.state_dict(), tmp_path / "network.pt")
    second = VGG(4)
    second.load_state_dict(torch.load(tmp_path / "network.pt", weights_only=True))
    torch.manual_seed(1)
    expected = first(images())
    torch.manual_seed(1)
    assert torch.equal(second(images()), expected)
    assert kl_divergence(second, []).item() == kl_divergence(first, []).item()
