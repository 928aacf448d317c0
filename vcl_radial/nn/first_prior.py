"""A first prior whose scale differs from layer to layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import nn

from vcl_radial.errors import bad_value
from vcl_radial.nn.carry import variational_weights
from vcl_radial.nn.heads import MultiHead
from vcl_radial.nn.weights import VariationalWeights


def set_prior_scales(network: nn.Module, scales: Sequence[float]) -> None:
    """Set `prior_scale` of each layer with a posterior, before the first task.

    Args:
        network: the network; the heads of a `MultiHead` count as one layer, present and future.
        scales: a number for each layer in the order of the network, the heads last.

    Raises:
        UserError: there are more or fewer layers.
    """
    layers = list(variational_weights(network, []))
    multi = (module for module in network.modules() if isinstance(module, MultiHead))
    heads = [head for head in multi if list(variational_weights(head.new_head(0), []))]
    if len(scales) != (count := len(layers) + len(heads)):
        fault = f"has {len(scales)} numbers: give one for each of the {count} layers of the network"
        raise bad_value("prior_scale", list(scales), fault)
    for layer, scale in zip(layers, scales, strict=False):
        layer.set_prior_scale(scale)
    for head, scale in zip(heads, scales[len(layers) :], strict=True):
        head._make_head = _ScaledHeads(head._make_head, scale)
        for made in head.heads.values():
            _scale_all(made, scale)


class _ScaledHeads:
    """Make heads whose first prior has this scale."""

    def __init__(self, make: Callable[[], nn.Module], scale: float) -> None:
        self.make, self.scale = make, scale

    def __call__(self) -> nn.Module:
        return _scale_all(self.make(), self.scale)


def _scale_all(head: nn.Module, scale: float) -> nn.Module:
    for module in head.modules():
        if isinstance(module, VariationalWeights):
            module.set_prior_scale(scale)
    return head
