"""The network whose weights are ImageNet's: its padding, its shapes, and what it sees."""

import pytest
import torch
from torch import nn
from torch.nn.functional import interpolate

from vcl_radial.nn.efficientnet_lite import BLOCKS, EfficientNetLite0, SameConv2d

CHANNELS = [16, *[24] * 2, *[40] * 2, *[80] * 3, *[112] * 3, *[192] * 4, 320, 1280]
HALVINGS = [1, 2, 2, 3, 3, *[4] * 6, *[5] * 6]


def summing(kernel, stride):
    """A convolution that adds what lies under its kernel."""
    layer = SameConv2d(1, 1, kernel, stride)
    nn.init.ones_(layer.weight)
    return layer


@pytest.mark.parametrize(
    ("pixels", "kernel", "stride", "sums"),
    [
        ([1, 2, 3, 4], 3, 2, [6, 7]),  # one zero, at the end: 1+2+3, 3+4+0
        ([1, 2, 3, 4, 5], 3, 2, [3, 9, 9]),  # one on either side: 0+1+2, 2+3+4, 4+5+0
        ([1, 2, 3, 4], 5, 2, [10, 9]),  # one before and two behind: 0+1+2+3+4, 2+3+4+0+0
        ([1, 2, 3], 3, 1, [3, 6, 5]),
        ([1, 2, 3, 4], 1, 2, [1, 3]),  # none: every second pixel
    ],
)
def test_zeros_are_those_of_tensorflow(pixels, kernel, stride, sums):
    """Computed by hand, along either edge of an image that is one pixel wide along the other."""
    row = torch.tensor(pixels, dtype=torch.float32)
    with torch.no_grad():
        layer = summing(kernel, stride)
        assert layer(row.view(1, 1, 1, -1)).flatten().tolist() == sums
        assert layer(row.view(1, 1, -1, 1)).flatten().tolist() == sums


def network():
    torch.manual_seed(0)
    return EfficientNetLite0().eval()


@pytest.mark.parametrize(("height", "width"), [(64, 64), (65, 50)])
def test_every_block_has_its_channels_and_halves_edges_rounded_up(height, width):
    layers = range(BLOCKS + 1)
    with torch.no_grad():
        maps = network().maps(torch.randn(2, 3, height, width), layers)
    for found, channels, halvings in zip(maps, CHANNELS, HALVINGS, strict=True):
        edges = [-(-edge // 2**halvings) for edge in (height, width)]
        assert list(found.shape) == [2, channels, *edges]


def test_a_map_is_the_same_whatever_other_layers_are_read():
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        alone, among = network().maps(images, [10]), network().maps(images, [4, 10, 14])
    assert alone[0].equal(among[1])


def test_a_channel_of_a_depthwise_convolution_sees_no_other():
    block, images = network()._blocks[1], torch.randn(1, 96, 8, 8)
    other = images.clone()
    other[:, 5] += 1
    changed = (block._depthwise_conv(images) != block._depthwise_conv(other)).flatten(2).any(2)
    assert changed[0].nonzero().tolist() == [[5]]


def test_batch_norms_that_are_folded_into_convolutions_leave_every_map():
    """Also with means, variances, scales and shifts of their own."""
    plain, images = network(), torch.randn(2, 3, 33, 40)
    norms = [module for module in plain.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        for tensor, low, high in (
            (norm.running_mean, -0.2, 0.2),
            (norm.running_var, 0.5, 2),
            (norm.weight.data, 0.5, 2),
            (norm.bias.data, -0.2, 0.2),
        ):
            tensor.uniform_(low, high)
    with torch.no_grad():
        before = plain.maps(images, range(BLOCKS + 1))
        fused = plain.fused()
        assert not [module for module in fused.modules() if isinstance(module, nn.BatchNorm2d)]
        for old, new in zip(before, fused.maps(images, range(BLOCKS + 1)), strict=True):
            torch.testing.assert_close(new, old, rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def trained():
    from vcl_radial.data.backbones import PACKAGE, weights_file

    if weights_file() is None:
        pytest.skip(f"{PACKAGE} is not installed")
    trained = EfficientNetLite0()
    trained.load_state_dict(torch.load(weights_file(), weights_only=True), strict=True)
    return trained.eval()


@pytest.fixture(scope="module")
def photographs():
    """Two photographs that come with scikit-learn: the Summer Palace in Beijing, and a flower."""
    from sklearn.datasets import load_sample_images

    images = torch.stack([torch.tensor(image) for image in load_sample_images().images])
    square = images.permute(0, 3, 1, 2)[..., 106:533].float()
    pixels = interpolate(square, size=(224, 224), mode="bilinear", antialias=True)
    return (pixels - 127) / 128


def test_it_sees_a_palace_and_a_daisy(trained, photographs):
    """ImageNet's classes 698 and 985, in the order of their WordNet numbers."""
    with torch.no_grad():
        assert trained(photographs).argmax(1).tolist() == [698, 985]


def test_inner_activations_have_the_variance_of_imagenet(trained, photographs):
    """Batch normalisation knows mean and variance of every channel on ImageNet.

    With another padding, order of blocks or scale of the pixels they would be others.
    """
    squares = {}

    def look(norm, inputs, _):
        mean, variance = (
            m[:, None, None] for m in (norm.running_mean, norm.running_var + norm.eps)
        )
        squares[norm] = ((inputs[0] - mean).square() / variance).mean().item()

    norms = [module for module in trained.modules() if isinstance(module, nn.BatchNorm2d)]
    hooks = [norm.register_forward_hook(look) for norm in norms]
    with torch.no_grad():
        trained(photographs)
    for hook in hooks:
        hook.remove()
    found = [squares[norm] for norm in norms]
    assert len(found) == 1 + 2 + 15 * 3 + 1
    assert 0.95 < torch.tensor(found).median() < 1.05
    assert all(0.5 < square < 2 for square in found)
