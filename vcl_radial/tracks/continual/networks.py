"""The network of a recipe, and the stream in the shape of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from torch import nn

from vcl_radial.data.streams import TensorStream, build_stream
from vcl_radial.errors import UserError
from vcl_radial.nn import MLP, BayesianLinear, SingleHead, WithHeads
from vcl_radial.nn.convert import layer_settings
from vcl_radial.nn.heads import make_heads
from vcl_radial.tracks.continual.settings import Recipe, StreamSettings
from vcl_radial.tracks.networks import body_of, posterior_of, with_prior_scales


def stream_for(
    settings: StreamSettings, recipe: Recipe, data_dir: Path | None = None, seed: int = 0
) -> TensorStream:
    """The task sequence of a run, of vectors for an MLP and of images for any other network.

    Raises:
        UserError: a setting is not valid, or the data cannot be read.
    """
    flatten = recipe.network is None
    keys = settings.model_dump(exclude_none=True, exclude={"data_name", "uncertainty", "ood"})
    try:
        return build_stream(keys | {"flatten": flatten}, data_dir, seed)
    except UserError as error:
        if error.key not in StreamSettings.model_fields:
            raise
        raise UserError(f"stream.{error}") from None


def make_network(stream: TensorStream, recipe: Recipe, grown: Sequence[int] = ()) -> nn.Module:
    """The network of a recipe for a stream: an MLP, or another body with heads on it.

    Args:
        stream: the stream.
        recipe: the recipe.
        grown: numbers of the last of its outputs that were added to the one head, in order.

    Raises:
        UserError: the network would have only heads, or a user's function gives no such body.
    """
    network = _network(stream, recipe, stream.n_classes - sum(grown))
    for outputs in grown:
        _grow(network, recipe, outputs)
    return network


def _network(stream: TensorStream, recipe: Recipe, outputs: int) -> nn.Module:
    posterior = posterior_of(recipe)
    if recipe.network is not None:
        shape = tuple(stream.x.shape[1:])
        network = WithHeads(
            body_of(recipe.network, shape),
            shape,
            outputs,
            multi_head=stream.multi_head,
            posterior=posterior,
            point_heads=recipe.point_heads,
            precision=recipe.precision,
        )
        return with_prior_scales(network, recipe)
    recipe.check_layers(stream.multi_head)
    inputs = stream.x[0].numel()
    return mlp_of(recipe, inputs, outputs, multi_head=stream.multi_head)


def _grow(network: nn.Module, recipe: Recipe, outputs: int) -> None:
    """Add outputs to the one head, with the posterior and the prior before the first task."""
    head = network.head
    assert isinstance(head, SingleHead)
    posterior = None if recipe.point_heads else layer_settings(posterior_of(recipe))
    features = cast(int, head.output.in_features)
    layer = make_heads(features, outputs, multi_head=False, posterior=posterior).output
    assert isinstance(layer, nn.Module)
    if isinstance(recipe.prior_scale, list) and isinstance(layer, BayesianLinear):
        layer.weights.set_prior_scale(recipe.prior_scale[-1])
    head.grown.append(layer)


def mlp_of(recipe: Recipe, inputs: int, outputs: int, *, multi_head: bool) -> nn.Module:
    """The MLP of a recipe, for inputs of this many numbers."""
    network = MLP(
        inputs,
        outputs,
        hidden=recipe.hidden,
        multi_head=multi_head,
        posterior=posterior_of(recipe),
        point_heads=recipe.point_heads,
        precision=recipe.precision,
    )
    return with_prior_scales(network, recipe)
