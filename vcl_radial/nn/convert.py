"""Conversion of any network: its linear layers and convolutions get a posterior."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.nn.utils.parametrize import is_parametrized

from vcl_radial.config.outside import is_named
from vcl_radial.errors import UserError, bad_value
from vcl_radial.nn.conv import BayesianConv, BayesianConv2d
from vcl_radial.nn.heads import MultiHead
from vcl_radial.nn.linear import BayesianLinear
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.nn.weights import LayerSettings, PosteriorSettings
from vcl_radial.posteriors import Posterior
from vcl_radial.posteriors.families import all_families, family
from vcl_radial.posteriors.rdp import RDP

_CONVERTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_READ_WEIGHTS = (nn.MultiheadAttention, nn.TransformerEncoderLayer)
"""Modules that read the weights of layers inside them instead of calling the layers."""


def layer_settings(
    posterior: LayerSettings | str | type[Posterior] | None,
) -> LayerSettings | None:
    """The settings of a variational family, from settings, or from its name or class.

    Args:
        posterior: settings; a name as in a recipe; a class; None or "none" for point estimates.

    Returns:
        Settings, or None for point estimates.

    Raises:
        UserError: The name is not known, or does not name a `Posterior`.
    """
    if posterior is None or posterior == "none":
        return None
    if posterior == RDP.name:
        return RDPSettings()
    if isinstance(posterior, str) and not (posterior in all_families() or is_named(posterior)):
        raise bad_value(
            "posterior",
            posterior,
            f"is not known: choose from {', '.join(all_families())} or none, or name your own as "
            "'package.module:Class'",
        )
    if not isinstance(posterior, str | type):
        return posterior
    return PosteriorSettings(posterior, grouping=family(posterior).groupings[0])


def to_bayesian(
    model: nn.Module,
    posterior: LayerSettings | str | type[Posterior] | None = "radial",
    *,
    keep: Collection[str] = (),
    inplace: bool = False,
) -> nn.Module:
    """Convert every Linear, Conv1d, Conv2d and Conv3d of a network to one with a posterior.

    The posterior's means start at the network's weights, so that with little noise the outputs stay
    nearly the same. Other modules (normalisation, embeddings, ...) do not change. A layer that is
    used twice is converted once, and draws its weights at each call. All heads of a `MultiHead` are
    converted too, including future ones. The means and scales of a frozen layer stay frozen: its
    noise keeps its initial size. `kl_divergence(model, [])` and `consolidate(model, [])` of
    `vcl_radial.nn` then work as for any other network.

    Args:
        model: any network, for example torchvision's.
        posterior: the posterior's settings (family, start, first prior), or only the name or class
            of the family; with None or "none" the network does not change.
        keep: names of modules that are not converted, with everything inside them.
        inplace: whether to change the model itself instead of a copy.

    Raises:
        UserError: The posterior or a name in `keep` is not known, there is nothing to convert, or
            a layer cannot be converted: its weights are shared with another layer, parametrised,
            frozen in part, not initialised yet, or read or replaced by the module around it; it is
            transposed, has hooks, or has its own computation.
    """
    settings = layer_settings(posterior)
    if settings is None:
        return model if inplace else copy.deepcopy(model)
    kept_ids = _kept_ids(model, keep)
    if isinstance(model, _CONVERTED) and inplace:
        raise UserError(
            "a layer alone cannot be converted in place: convert a copy of it", at="inplace"
        )
    _check_all(model, kept_ids)
    if not inplace:
        model = copy.deepcopy(model)
        kept_ids = _kept_ids(model, keep)
    if isinstance(model, _CONVERTED):
        return _bayesian(model, settings)
    converted: dict[nn.Module, nn.Module] = {}
    for parent in list(model.modules()):
        if id(parent) in kept_ids:
            continue
        if isinstance(parent, MultiHead):
            parent._make_head = _BayesianHeads(parent._make_head, settings)
        for name, child in parent._modules.items():
            if isinstance(child, _CONVERTED) and id(child) not in kept_ids:
                if child not in converted:
                    converted[child] = _bayesian(child, settings)
                parent._modules[name] = converted[child]
    return model


class _BayesianHeads:
    """Make future heads and convert them like the existing heads."""

    def __init__(self, make: Callable[[], nn.Module], settings: LayerSettings) -> None:
        self.make, self.settings = make, settings

    def __call__(self) -> nn.Module:
        head = self.make()
        if any(isinstance(module, _CONVERTED) for module in head.modules()):
            head = to_bayesian(head, self.settings)
        return head


def _bayesian(layer: nn.Module, settings: LayerSettings) -> nn.Module:
    """The Bayesian counterpart, with the layer's weights as means, on its device."""
    assert isinstance(layer, _CONVERTED)
    weights = settings.make_weights(
        layer.weight.detach().clone(), None if layer.bias is None else layer.bias.detach().clone()
    )
    bayesian: nn.Module
    if isinstance(layer, nn.Linear):
        # The constructor's initial draw is not needed; on the meta device it costs nothing.
        with torch.device("meta"):
            bayesian = BayesianLinear(layer.in_features, layer.out_features, layer.bias is not None)
        bayesian.weights = weights
    else:
        kind = BayesianConv2d if isinstance(layer, nn.Conv2d) else BayesianConv
        bayesian = kind.from_plain(layer, weights)
    bayesian.requires_grad_(layer.weight.requires_grad)
    return bayesian.train(layer.training)


def _kept_ids(model: nn.Module, keep: Collection[str]) -> set[int]:
    """The identities (`id`) of the modules with these names and of all modules inside them."""
    modules = dict(model.named_modules(remove_duplicate=False))
    for name in keep:
        if name not in modules:
            layers = [name for name, m in model.named_modules() if isinstance(m, _CONVERTED)]
            raise UserError(
                f"the network has no module {name!r}; its layers are {', '.join(layers) or 'none'}",
                at="keep",
            )
    return {id(inner) for name in keep for inner in modules[name].modules()}


def _check_all(model: nn.Module, kept_ids: set[int]) -> None:
    """Raise a UserError if a layer cannot be converted, or there is none to convert."""
    owners = Counter(id(p) for m in model.modules() for p in m._parameters.values())
    modules = [(name, m) for name, m in model.named_modules() if id(m) not in kept_ids]
    for name, module in modules:
        _check(name, module, owners, kept_ids)
    if not any(isinstance(module, _CONVERTED) for _, module in modules):
        raise UserError(
            "has no linear layer or convolution to convert"
            + (" besides those to keep" if kept_ids else ""),
            at=type(model).__name__,
        )


def _check(name: str, module: nn.Module, owners: Counter[int], kept_ids: set[int]) -> None:
    """Raise a UserError if a module should be converted, but cannot be."""
    fault = None
    holds_layers = any(
        isinstance(inner, _CONVERTED) and id(inner) not in kept_ids for inner in module.modules()
    )
    if isinstance(module, _TRANSPOSED):
        fault = "has no Bayesian counterpart here"
    elif isinstance(module, _READ_WEIGHTS) and holds_layers:
        fault = "reads the weights of the layers inside it instead of calling them"
    elif hasattr(module, "adaptation") and holds_layers:
        fault = "makes or replaces layers as tasks come: use vcl_radial.nn.MultiHead or SingleHead"
    elif isinstance(module, _CONVERTED):
        parameters = [p for p in module._parameters.values() if p is not None]
        if is_parametrized(module):
            fault = "is parametrised: remove that first"
        elif any(is_lazy(p) for p in parameters):
            fault = "has no weights yet: run one batch through the network first"
        elif any(owners[id(p)] > 1 for p in parameters):
            fault = "shares its weights with another layer"
        elif len({p.requires_grad for p in parameters}) > 1:
            fault = "has weight or bias frozen alone: freeze both or neither"
        elif not _computes_as_pytorch(module):
            fault = "computes in a way of its own"
        elif module._forward_hooks or module._forward_pre_hooks or module._backward_hooks:
            fault = "has hooks, which would be lost: remove them first"
    if fault is not None:
        kind = type(module).__name__
        raise UserError(f"{fault}; or name it in keep", at=f"{name or 'the network'} ({kind})")


def _computes_as_pytorch(layer: nn.Module) -> bool:
    """Whether a layer's class computes as PyTorch's class does."""
    (base,) = (kind for kind in _CONVERTED if isinstance(layer, kind))
    computes = ("forward", "_conv_forward")
    return all(getattr(type(layer), f, None) is getattr(base, f, None) for f in computes)
