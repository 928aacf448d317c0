import math

import pytest
import torch
from torch import nn
from torch.nn.functional import relu

from reports.analysis.gradient_noise import gradient_variance
from reports.analysis.gradient_variance import (
    CLASSES,
    DEPTH,
    convolutional,
    equal_noise,
    equal_sigma,
    nll_variance,
)
from vcl_radial.nn import BayesianLinear, PosteriorSettings, posterior_blocks


def measured(family, scale, pairs, channels=4):
    torch.manual_seed(0)
    network = convolutional(channels, PosteriorSettings(family))
    x, y = relu(torch.randn(4, channels, 2, 2)), torch.randint(CLASSES, (4,))
    return nll_variance(network, x, y, scale, pairs)


def test_the_variance_of_a_known_gradient_is_its_trace():
    torch.manual_seed(0)
    scales = torch.tensor([0.5, 2.0])
    value, error = gradient_variance(
        lambda: [7 + scales * torch.randn(2), torch.ones(3), torch.randn(1)], 3000
    )
    assert abs(value - (0.25 + 4 + 1)) < 4 * error
    # tr Cov has variance 2 sum of var^2 for normal entries, of which there is one for each pair
    assert error == pytest.approx(math.sqrt(2 * (0.25**2 + 4**2 + 1) / 3000), rel=0.2)


def test_a_gradient_without_noise_has_none_and_one_pair_no_error():
    assert gradient_variance(lambda: [torch.ones(4)], 3) == (0.0, 0.0)
    assert math.isnan(gradient_variance(lambda: [torch.ones(4)], 1)[1])


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_small_noise_acts_through_the_hessian_whatever_the_family(family):
    # tr(H Cov H) with Cov = tau^2 I for both. For softmax regression at 0 with C classes
    # H = (I/C - 11'/C^2) x mean(x x'), x with a 1 for the bias.
    torch.manual_seed(0)
    tau, C, x, y = 1e-3, 3, torch.randn(20, 5), torch.randint(3, (20,))
    network = nn.Sequential(BayesianLinear(5, C, posterior=PosteriorSettings(family)))
    for block in posterior_blocks(network, [0]):
        block.mean.data.zero_()
    value, error = nll_variance(network, x, y, equal_noise(tau), 300)
    with_one = torch.cat([x, torch.ones(20, 1)], 1)
    second_moment = with_one.T @ with_one / 20
    expected = tau**2 * (C - 1) / C**2 * float(second_moment.square().sum())
    assert abs(value - expected) < 4 * error
    assert error < 0.25 * expected


def test_far_out_a_gaussians_variance_grows_with_the_power_of_the_other_layers():
    # With large weights the residual p - y is bounded, and the gradient of one of L layers is the
    # product of the other L - 1.
    values = [measured("gaussian", equal_sigma(sigma), 40)[0] for sigma in (30.0, 300.0)]
    assert math.log10(values[1] / values[0]) == pytest.approx(2 * DEPTH, abs=0.3)


def test_at_equal_sigma_the_wider_network_has_the_more_gaussian_and_no_more_radial_noise():
    narrow, wide = (
        {f: measured(f, equal_sigma(1.0), 20, channels)[0] for f in ("gaussian", "radial")}
        for channels in (4, 16)
    )
    assert wide["gaussian"] > 3 * narrow["gaussian"]
    assert wide["radial"] < narrow["gaussian"]
    assert wide["radial"] < wide["gaussian"] / 100


def test_the_scales_are_those_asked_for():
    network = convolutional(4, PosteriorSettings("radial"))
    x, y = torch.ones(1, 4, 2, 2), torch.zeros(1, dtype=torch.long)
    nll_variance(network, x, y, equal_noise(0.2), 1)
    for block in posterior_blocks(network, [0]):
        D = block.mean.shape[-1]
        assert torch.allclose(block.scale(), torch.tensor(0.2 * math.sqrt(D)))
        noise = (block.posterior.sample(4000) - block.mean).detach()
        assert float(noise.square().mean().sqrt()) == pytest.approx(0.2, rel=0.06)
