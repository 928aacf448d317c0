"""Variance of the NLL's gradient over sigma, for 3x3 convolutions (AISTATS Fig. 6).

A network of 3x3 convolutions with C channels at its initial means, all weights with one sigma. The
variance of the gradient with respect to the means, over draws of the weights and for one batch,
summed over all means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from reports.analysis.gradient_noise import gradient_variance, nll_gradient
from reports.figures import curve_with_errors
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from reports.papers.texts import listed
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.nn import (
    PointConv2d,
    PointLinear,
    PosteriorBlock,
    PosteriorSettings,
    posterior_blocks,
)
from vcl_radial.nn.blocks import inverse_softplus
from vcl_radial.nn.convert import to_bayesian
from vcl_radial.reporting.figures.drawing import Curve, find

CHANNELS = (16, 64, 512)
QUICK_CHANNELS = (16, 64)
NOISES = (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 3.0)
QUICK_NOISES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
PUBLISHED = 0.3
"""The sigma at which the Gaussian's variance explodes in the paper."""
FAMILIES = ("gaussian", "radial")
DEPTH = 2
IMAGES, SIDE, CLASSES = 16, 4, 10

_SIGMA = "over sigma"
_NOISE = "over the noise per weight"
_PAIRS = {16: 64, 64: 32, 512: 6}
"""Number of pairs of draws, by channels."""


def convolutional(channels: int, posterior: PosteriorSettings) -> nn.Module:
    """3x3 convolutions of C channels with ReLUs, global mean pooling and a linear output layer."""
    layers = [
        module
        for _ in range(DEPTH)
        for module in (PointConv2d(channels, channels, 3, padding=1), nn.ReLU())
    ]
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), PointLinear(channels, CLASSES)
    return to_bayesian(nn.Sequential(*layers, *head), posterior, inplace=True)


Scale = Callable[[PosteriorBlock], float]


def equal_sigma(sigma: float) -> Scale:
    """A function that gives all blocks the same sigma."""
    return lambda block: sigma


def equal_noise(tau: float) -> Scale:
    """A function to the sigma at which the noise of one weight has the standard deviation tau."""
    return lambda block: block.family.scale_for_weight_noise(tau, block.mean.shape[-1])


def nll_variance(
    network: nn.Module, x: Tensor, y: Tensor, scale: Scale, pairs: int
) -> tuple[float, float]:
    """Variance of the NLL's gradient in all means, and its standard error.

    Args:
        network: the network, whose scales are set first.
        x: one batch of inputs `[B, ...]`.
        y: its labels `[B]`.
        scale: the scale of a block.
        pairs: number of pairs of draws, for `gradient_variance`.
    """
    blocks = posterior_blocks(network, [0])
    with torch.no_grad():
        for block in blocks:
            block.rho.fill_(inverse_softplus(scale(block)))
    return gradient_variance(nll_gradient(network, x, y), pairs)


def analyse(setting: Setting) -> Analysis:
    """Measure the variance over sigma and channels, and at equal noise per weight."""
    channels = QUICK_CHANNELS if setting.quick else CHANNELS
    noises = QUICK_NOISES if setting.quick else NOISES
    curves: list[Curve] = []
    for C in channels:
        for name in FAMILIES:
            scales = {_SIGMA: equal_sigma} | ({_NOISE: equal_noise} if name == "radial" else {})
            for panel, scale in scales.items():
                values = _measure(C, name, [scale(noise) for noise in noises], setting)
                curves.append(curve_with_errors(panel, _name(name, C), noises, values))
        # A Gaussian's sigma is its noise per weight.
        gaussian = find(curves, _SIGMA, _name("gaussian", C))
        curves.append(replace(gaussian, panel=_NOISE))
        setting.say(f"{C} channels: done")
    widest = channels[-1]
    gaussian, radial = (find(curves, _SIGMA, _name(name, widest)) for name in FAMILIES)
    at_noise = [find(curves, _NOISE, _name(name, widest)) for name in FAMILIES]
    growth = gaussian.at(1.0) / gaussian.at(0.1)
    below, above = _slope(gaussian, 0.1, PUBLISHED), _slope(gaussian, PUBLISHED, 1.0)
    from_least = gaussian.at(1.0) / gaussian.at(0.01)
    numbers = {
        "channels": channels,
        "C": widest,
        "weights": listed("{1:,}", ((C, 9 * C * C) for C in channels)),
        "depth": DEPTH,
        "layers": DEPTH + 1,
        "exponent": 2 * DEPTH,
        "images": IMAGES,
        "side": SIDE,
        "classes": CLASSES,
        "pairs": listed("{1} ({0} channels)", ((C, _PAIRS[C]) for C in channels)),
        "at_tenth": gaussian.at(0.1),
        "at_one": gaussian.at(1.0),
        "linear_top": 1.4 * gaussian.at(1.0),
        "published": PUBLISHED,
        "growth": growth,
        "below": below,
        "above": above,
        "height": 100 * gaussian.at(PUBLISHED) / gaussian.at(1.0),
        "from_least": from_least,
        "radial": radial.at(1.0),
        "over_radial": gaussian.at(1.0) / radial.at(1.0),
        "ratios": [at_noise[1].at(noise) / at_noise[0].at(noise) for noise in (0.01, 0.1, 1.0)],
    }
    rules = {
        "explodes": growth > 100,
        "threshold": above - below > 1,
        "unit": from_least > 1000,
        "radial": radial.at(1.0) < gaussian.at(1.0) / 100,
    }
    return analysis(__file__, curves, numbers, rules)


def _slope(curve: Curve, low: float, high: float) -> float:
    return math.log(curve.at(high) / curve.at(low)) / math.log(high / low)


def _measure(
    channels: int, family: str, scales: Sequence[Scale], setting: Setting
) -> list[tuple[float, float]]:
    # The same network, batch and draws for every family and scale.
    with seeded_rng(setting.seed, torch.device("cpu")):
        network = convolutional(channels, PosteriorSettings(family))
        x = torch.randn(IMAGES, channels, SIDE, SIDE).relu()
        y = torch.randint(CLASSES, (IMAGES,))
        return [nll_variance(network, x, y, scale, _PAIRS[channels]) for scale in scales]


def _name(family: str, channels: int) -> str:
    return f"{'Gaussian' if family == 'gaussian' else 'radial'}, {channels} channels"
