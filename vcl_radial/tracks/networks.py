"""Networks and posteriors of recipes, for every track."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from torch import nn

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.nn import MLP, PosteriorSettings, WithHeads
from vcl_radial.nn.convnet import ConvNet
from vcl_radial.nn.first_prior import set_prior_scales
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.nn.resnet import ResNet
from vcl_radial.nn.weights import LayerSettings
from vcl_radial.posteriors.rdp import RDP
from vcl_radial.tracks.recipe import MethodRecipe


def posterior_of(recipe: MethodRecipe) -> LayerSettings | None:
    """The variational family of a recipe's weights with its initial values; None for points."""
    if recipe.posterior == "none":
        return None
    if recipe.posterior == RDP.name:
        shared = _shared_keys(RDPSettings, recipe)
        return RDPSettings(**{**shared, "initial_noise": initial_noise(recipe)})
    keys = _shared_keys(PosteriorSettings, recipe)
    if isinstance(recipe.prior_scale, list):  # `with_prior_scales` sets them in the network
        del keys["prior_scale"]
    return PosteriorSettings(recipe.posterior, **keys)


def with_prior_scales(network: nn.Module, recipe: MethodRecipe) -> nn.Module:
    """A recipe's new network, whose layers have the scales of the first prior if it lists them.

    Raises:
        UserError: there are more or fewer layers.
    """
    if isinstance(recipe.prior_scale, list):
        set_prior_scales(network, recipe.prior_scale)
    return network


def _shared_keys(settings: type[Any], recipe: MethodRecipe) -> dict[str, Any]:
    """Keys of a recipe that the settings of a posterior also have."""
    names = {field.name for field in fields(settings)} & type(recipe).model_fields.keys()
    return {name: getattr(recipe, name) for name in names}


BODIES: dict[str, Callable[[Sequence[int]], nn.Module]] = {
    "convnet": ConvNet,
    "convnet-16": partial(ConvNet, channels=(16, 16)),
    "resnet": ResNet,
}
"""Networks of features for images by name, made for the shape of an input."""


def body_of(name: str, shape: Sequence[int]) -> nn.Module:
    """The network of features that a recipe's `network` names.

    Args:
        name: a name of `BODIES`, or `package.module:function`.
        shape: the shape of one input.

    Raises:
        UserError: the inputs do not fit, or a function is missing, fails, or gives no network.
    """
    if name in BODIES:
        return BODIES[name](shape)
    body = outside.call("network", name, shape)
    if not isinstance(body, nn.Module):
        raise UserError(f"network = {name!r} gives {type(body).__name__}, not a torch.nn.Module")
    return body


def network_of_rows(
    recipe: MethodRecipe, inputs: int, outputs: int, hidden: Sequence[int]
) -> nn.Module:
    """A recipe's network for rows of numbers, with one head.

    Args:
        recipe: the recipe, which may name a user's network.
        inputs: numbers in a row.
        outputs: outputs of the head.
        hidden: units of the hidden layers, if the network is not the user's.

    Raises:
        UserError: a user's function gives no such network.
    """
    posterior = posterior_of(recipe)
    if recipe.network is None:
        network: nn.Module = MLP(
            inputs, outputs, hidden=hidden, multi_head=False, posterior=posterior
        )
    else:
        body = body_of(recipe.network, (inputs,))
        network = WithHeads(body, (inputs,), outputs, multi_head=False, posterior=posterior)
    return with_prior_scales(network, recipe)


def initial_noise(recipe: MethodRecipe) -> float:
    """A recipe's initial noise of one weight, if the family does not scale it."""
    return recipe.initial_noise or math.log1p(math.exp(recipe.initial_rho))
