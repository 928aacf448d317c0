"""Features: fixed maps, fitted to the inputs of the first task."""

import pytest
import torch
from torch import nn

from vcl_radial.errors import UserError
from vcl_radial.features import Body, Inputs, Patches, RandomReLU, Tangent
from vcl_radial.nn import MLP, WithHeads

MAPS = [
    lambda: RandomReLU(Inputs(144), 30),
    lambda: Patches((1, 12, 12), 8, 3, 2),
    lambda: RandomReLU(Patches((1, 12, 12), 8, 3, 2), 30),
]


def tangent(directions=5):
    return Tangent(MLP(144, 2, hidden=[7, 6], posterior=None), directions)


def images(n=40, side=12, channels=1):
    return torch.rand(n, channels, side, side, generator=torch.Generator().manual_seed(3))


def fitted(features, x, batch=7):
    features.fit(lambda: x.split(batch))
    return features


@pytest.mark.parametrize("make", MAPS)
def test_they_are_as_many_as_they_say_before_and_after_they_are_fitted(make):
    features, x = make(), images()
    assert features(x).shape == (40, features.size)
    assert (fitted(features, x)(x) >= 0).all()
    assert features(x).std(0).max() > 0
    assert features(x).shape == (40, features.size)


@pytest.mark.parametrize("make", [*MAPS, tangent])
def test_a_seed_and_the_inputs_make_the_map_and_batches_do_not(make):
    x, maps = images(), []
    for batch in (7, 40):
        torch.manual_seed(0)
        maps.append(fitted(make(), x, batch)(x))
    torch.testing.assert_close(*maps)
    torch.manual_seed(1)
    assert not torch.allclose(fitted(make(), x)(x), maps[0])


@pytest.mark.parametrize("make", MAPS)
def test_a_map_does_not_see_the_light_and_contrast_of_all_images(make):
    """An affine change of every value leaves the features as they are."""
    maps = []
    for x in (images(), 50 + 20 * images()):
        torch.manual_seed(0)
        maps.append(fitted(make(), x)(x))
    torch.testing.assert_close(*maps, rtol=1e-3, atol=1e-4)


def test_random_units_are_a_rectified_linear_map_of_standardised_inputs():
    torch.manual_seed(0)
    x = 3 + 2 * torch.randn(2_000, 50)
    features = fitted(RandomReLU(Inputs(50), 500), x)(x)
    # W x / s is N(0, 1) over the units, b uniform: an even chance of either side of 0.
    assert (features > 0).float().mean() == pytest.approx(0.5, abs=0.03)
    assert features.square().mean() == pytest.approx((1 + 1 / 3) / 2, rel=0.1)


def test_with_mirror_an_image_and_its_mirror_image_have_the_same_features():
    x = images()
    for mirror in (False, True):
        torch.manual_seed(0)
        features = fitted(Patches((1, 12, 12), 8, 3, 2, mirror), x)
        assert torch.allclose(features(x), features(x.flip(-1)), atol=1e-6) == mirror
    plain = Patches((1, 12, 12), 8, 3, 2)
    plain.load_state_dict(features.state_dict())
    torch.testing.assert_close(features(x), (plain(x) + plain(x.flip(-1))) / 2)


def test_random_units_of_patches_are_those_of_the_pooled_responses_as_inputs():
    x, patches = images(), Patches((1, 12, 12), 8, 3, 2)
    torch.manual_seed(0)
    composed = fitted(RandomReLU(patches, 30), x)
    pooled = patches(x)
    torch.manual_seed(0)
    alone = fitted(RandomReLU(Inputs(patches.size), 30), pooled)
    torch.testing.assert_close(composed(x), alone(pooled))


def test_responses_are_those_of_whitened_patches():
    """Of one cell as large as the image, by a loop over places."""
    torch.manual_seed(0)
    x = images(6, side=6, channels=2)
    features = fitted(Patches((2, 6, 6), 5, 3, 1), x)
    out = features(x)
    standard = (x - features.shift) / features.scale
    total = torch.zeros(6, 5)
    for row in range(4):
        for column in range(4):
            p = standard[:, :, row : row + 3, column : column + 3].flatten(1)
            p = (p - p.mean(1, keepdim=True)) / (p.std(1, keepdim=True) + 0.3)
            total += (p @ features.filters - features.offset - 0.5).relu()
    torch.testing.assert_close(out, (total / 16).sqrt())


def test_the_filters_have_length_1_where_patches_are_white():
    torch.manual_seed(0)
    features = fitted(Patches((1, 12, 12), 5, 3, 1), images(200))
    standard = (images(200) - features.shift) / features.scale
    patches = torch.nn.functional.unfold(standard, 3).transpose(1, 2).flatten(0, 1)
    patches = (patches - patches.mean(1, keepdim=True)) / (patches.std(1, keepdim=True) + 0.3)
    values, vectors = torch.linalg.eigh(torch.cov(patches.T))
    whiten = (vectors * (values.clamp(min=0) + 0.1).rsqrt()) @ vectors.T
    lengths = torch.linalg.solve(whiten, features.filters).norm(dim=0)
    torch.testing.assert_close(lengths, torch.ones(5), rtol=0.05, atol=0.05)


def test_filters_are_drawn_from_all_patches_of_the_images():
    """As they are where every patch is copied first."""
    torch.manual_seed(0)
    features, x = Patches((2, 7, 6), 5, 3, 1), images(6, side=7, channels=2)[..., :6]
    fitted(features, x)
    draw = torch.Generator().manual_seed(int(features.seed))
    standard = (x[torch.randperm(6, generator=draw)] - features.shift) / features.scale
    patches = torch.nn.functional.unfold(standard, 3).transpose(1, 2).flatten(0, 1)
    patches = patches[torch.randperm(len(patches), generator=draw)]
    patches = patches - patches.mean(1, keepdim=True)
    patches = patches / (patches.std(1, keepdim=True) + 0.3)
    chosen = patches[torch.randperm(len(patches), generator=draw)[:5]] - patches.mean(0)
    values, vectors = torch.linalg.eigh(torch.cov(patches.T).double())
    whiten = ((vectors * (values.clamp(min=0) + 0.1).rsqrt()) @ vectors.T).float()
    white = chosen @ whiten
    expected = whiten @ (white / white.norm(dim=1, keepdim=True)).T
    torch.testing.assert_close(features.filters, expected)


@pytest.mark.parametrize("make", [Body, Tangent, lambda network: RandomReLU(Body(network), 20)])
def test_a_body_normalises_by_its_averages_whatever_the_batch_and_the_mode(make):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(144, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 6))
    features = make(WithHeads(network, (144,), 2, posterior=None)).train()
    x, averages = images().flatten(1), network[1].running_mean.clone()
    with torch.no_grad():
        whole, parts = fitted(features, x)(x), map(features, x.split(7))
        torch.testing.assert_close(whole, torch.cat([*parts]))
    assert torch.equal(network[1].running_mean, averages)


@pytest.mark.parametrize("channels", [1, 3])
def test_flat_images_have_the_patches_of_square_ones(channels):
    maps = []
    for x in (images(channels=channels), images(channels=channels).flatten(1)):
        torch.manual_seed(0)
        maps.append(fitted(Patches(x.shape[1:], 8, 3, 2), x)(x))
    assert torch.equal(*maps)


def test_the_features_inputs_are_the_flattened_inputs():
    x = images()
    assert torch.equal(Inputs(144)(x), x.flatten(1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Patches((1, 9, 9), patch=1), r"options.patch = 1 must be at least 2"),
        (lambda: Patches((10,)), r"wants images, and inputs are \[10\]"),
        (lambda: Patches((1, 5, 5), patch=6), r"too large for images of 5 pixels"),
        (lambda: fitted(Patches((1, 12, 12), 5_000, 3, 2), images(4)), r"more than the 400 pat"),
    ],
)
def test_features_that_do_not_fit_are_reported_with_the_fix(make, message):
    with pytest.raises(UserError, match=message):
        make()
