"""The network and optimiser of a recipe, and truncated noise in training."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from vcl_radial.config import outside
from vcl_radial.data.backbones import LITE0, required_weights
from vcl_radial.data.fundus.features import SIZE as FEATURES
from vcl_radial.data.fundus.table import GRADES
from vcl_radial.nn.grouping import Layer
from vcl_radial.nn.resnet import ResNet
from vcl_radial.nn.vgg import VGG
from vcl_radial.nn.weights import VariationalWeights, drawn_by
from vcl_radial.nn.with_heads import WithHeads
from vcl_radial.optimizers.named import own_optimizer
from vcl_radial.tracks.networks import body_of, posterior_of, with_prior_scales
from vcl_radial.tracks.retinopathy.settings import Recipe

_ROOT_2 = math.sqrt(2)


def make_network(recipe: Recipe, size: int) -> nn.Module:
    """The recipe's network, with a start from the global generator.

    Args:
        recipe: the recipe, which names the network and its targets.
        size: pixels along an edge of the photographs.

    Raises:
        UserError: a user's function gives no such network.
    """
    posterior = posterior_of(recipe)
    shape: tuple[int, ...] = (3, size, size)
    classes = len(GRADES) if recipe.targets == "levels" else 2
    if recipe.network == "vgg":
        network: nn.Module = VGG(
            recipe.channels,
            classes,
            posterior=posterior,
            first_stride=recipe.first_stride,
            precision=recipe.precision,
        )
    elif recipe.network == LITE0:
        required_weights()
        shape = (FEATURES,)
        network = WithHeads(nn.Identity(), shape, classes, multi_head=False, posterior=posterior)
    else:
        resnet = recipe.network == "resnet"
        network = WithHeads(
            ResNet(shape, recipe.channels) if resnet else body_of(recipe.network, shape),
            shape,
            classes,
            multi_head=False,
            posterior=posterior,
            precision=recipe.precision,
        )
    return with_prior_scales(network, recipe)


def make_optimizer(recipe: Recipe, network: nn.Module) -> Optimizer:
    """The recipe's optimiser."""
    if recipe.optimizer == "sgd":
        return SGD(network.parameters(), lr=recipe.learning_rate, momentum=0.9, nesterov=True)
    if outside.is_named(recipe.optimizer):
        return own_optimizer(recipe.optimizer, network.parameters(), recipe.learning_rate)
    amsgrad = recipe.optimizer == "amsgrad"
    return Adam(network.parameters(), lr=recipe.learning_rate, amsgrad=amsgrad)


@contextmanager
def truncated(network: nn.Module, threshold: float) -> Iterator[None]:
    """Inside, training draws w = mean + scale * noise with |noise| <= threshold.

    The noise is a truncated standard normal that is not rescaled: the likelihood's gradient is
    biased and has a lower variance, and the KL is still the KL of the untruncated Gaussian
    (Farquhar, Osborne and Gal 2020, Appendix F). Draws for prediction are not truncated.
    """
    with drawn_by(_layers(network), lambda layer: _Truncated(layer, threshold)):
        yield


def _layers(network: nn.Module) -> list[VariationalWeights]:
    return [m for m in network.modules() if isinstance(m, VariationalWeights)]


class _Truncated:
    def __init__(self, layer: VariationalWeights, threshold: float) -> None:
        self.layer, self.threshold = layer, threshold

    def __call__(self) -> Layer:
        posteriors = [block.posterior for block in self.layer.posterior_blocks()]
        return self.layer.split(
            [q.mean + q.scale * truncated_normal(q.mean, self.threshold) for q in posteriors]
        )


def truncated_normal(like: Tensor, threshold: float) -> Tensor:
    """Standard normal numbers within +-threshold, of a tensor's shape, by the inverse CDF.

    eps = sqrt(2) erfinv(u erf(threshold / sqrt(2))),   u ~ U(-1, 1)
    """
    mass = math.erf(threshold / _ROOT_2)
    u = 2 * torch.rand_like(like, requires_grad=False) - 1
    # In float32, erfinv of numbers next to 1 is infinite.
    return (_ROOT_2 * torch.erfinv(u * mass)).clamp(-threshold, threshold)
