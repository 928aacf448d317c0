import torch
from failing import fails

from vcl_radial.nn import WithHeads, kl_divergence, variational_weights
from vcl_radial.nn.resnet import ResNet


def network(**keys):
    torch.manual_seed(0)
    return ResNet((3, 32, 32), **keys)


def images(batch=4, size=32):
    return torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(1))


def test_the_count_of_its_weights():
    weights = sum(p.numel() for p in network().parameters())
    # Stem, then first, second and shortcut of every block.
    blocks = [(16, 32), (32, 64), (64, 128)]
    expected = 25 * 3 * 16 + sum(9 * a * b + 9 * b * b + a * b for a, b in blocks)
    assert weights == expected == 302_256


def test_features_are_of_one_size_whatever_the_image():
    with torch.no_grad():
        assert network()(images(size=32)).shape == network()(images(size=47)).shape == (4, 256)
        assert network(channels=2)(images(size=9)).shape == (4, 32)


def test_every_parameter_has_a_posterior():
    bayesian = WithHeads(network(), (3, 32, 32), 5, multi_head=False, posterior="radial")
    layers = list(variational_weights(bayesian, []))
    assert len(layers) == 10 + 1
    scales = sum(p.numel() for p in bayesian.parameters()) // 2
    assert scales == 302_256 + 257 * 5
    assert kl_divergence(bayesian, []).item() > 0


def test_features_do_not_depend_on_the_scale_of_an_inner_kernel():
    """norm(c W * x) = norm(W * x) for c > 0."""
    body, x = network(), images(16)
    with torch.no_grad():
        before = body(x)
        body.blocks[1].second.weights.weight.mul_(3)
        torch.testing.assert_close(body(x), before, rtol=1e-3, atol=1e-4)


def test_in_prediction_an_image_does_not_see_its_neighbours():
    body, x = network(), images(8)
    body(x)
    body.eval()
    with torch.no_grad():
        torch.testing.assert_close(body(x)[:1], body(x[:1]))


def test_features_are_those_of_the_last_channels_over_all_places():
    """Away from the margins, a picture that is shifted by whole steps has the same maximum."""
    body = network().eval()
    dot = torch.zeros(1, 3, 224, 224)
    dot[..., 100, 100] = 1
    with torch.no_grad():
        here, there = body(dot), body(dot.roll((16, 16), (2, 3)))
    torch.testing.assert_close(here, there)


def test_vectors_are_refused():
    with fails("network", "resnet", "[784]"):
        ResNet((784,))
