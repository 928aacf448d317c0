"""Any network made Bayesian: its linear layers and convolutions get a posterior."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterator

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
"""These read the weights of layers inside them instead of calling the layers."""


def layer_settings(
    posterior: LayerSettings | str | type[Posterior] | None,
) -> LayerSettings | None:
    """The settings of a variational family that may be given by its name or class alone.

    Args:
        posterior: settings; a name as in a recipe; a class; None or "none" for point estimates.

    Returns:
        Settings, or None for point estimates.

    Raises:
        UserError: the name is not known, or what it names is no `Posterior`.
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

    The posterior's means start at the network's weights, so that with little noise it computes what
    it computed before; all else (normalisation, embeddings, ...) stays as it is. A layer that is
    used in two places is converted once, and draws its weights at each call. So are the heads of a
    `MultiHead`, those to come as well. A frozen layer stays frozen, means and scales: its noise
    keeps the size that the settings start with. `kl_divergence(model, [])` and
    `consolidate(model, [])` of `vcl_radial.nn` then serve it as any other network.

    Args:
        model: any network; torchvision's for example.
        posterior: the family of the weights, where it starts and the first prior, by its settings
            or just its name or class; None or "none" leaves the network as it is.
        keep: names of modules that stay as they are, with all that is inside them.
        inplace: whether the model itself is changed, or a copy.

    Raises:
        UserError: the posterior or a name in `keep` is not known, there is nothing to convert, or
            a layer cannot be converted: its weights are shared with another layer, parametrised,
            frozen in part, not initialised yet, or read or replaced by the module around it; it is
            transposed, has hooks, or computes in a way of its own.
    """
    settings = layer_settings(posterior)
    if settings is None:
        return model if inplace else copy.deepcopy(model)
    kept = _kept(model, keep)
    if isinstance(model, _CONVERTED) and inplace:
        raise UserError(
            "a layer alone cannot be converted in place: convert a copy of it", at="inplace"
        )
    _check_all(model, kept)
    if not inplace:
        model = copy.deepcopy(model)
        kept = _kept(model, keep)
    if isinstance(model, _CONVERTED):
        return _bayesian(model, settings)
    done: dict[nn.Module, nn.Module] = {}
    for parent in list(model.modules()):
        if id(parent) in kept:
            continue
        if isinstance(parent, MultiHead):
            parent._make_head = _BayesianHeads(parent._make_head, settings)
        for name, child in parent._modules.items():
            if isinstance(child, _CONVERTED) and id(child) not in kept:
                if child not in done:
                    done[child] = _bayesian(child, settings)
                parent._modules[name] = done[child]
    return model


class _BayesianHeads:
    """Makes heads to come as those that are there were converted."""

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
    made: nn.Module
    if isinstance(layer, nn.Linear):
        # What the constructor draws for a start is not wanted: on this device it costs nothing.
        with torch.device("meta"):
            made = BayesianLinear(layer.in_features, layer.out_features, layer.bias is not None)
        made.weights = weights
    else:
        kind = BayesianConv2d if isinstance(layer, nn.Conv2d) else BayesianConv
        made = kind.of(layer, weights)
    made.requires_grad_(layer.weight.requires_grad)
    return made.train(layer.training)


def _kept(model: nn.Module, keep: Collection[str]) -> set[int]:
    """The modules of these names and all inside them."""
    modules = dict(model.named_modules(remove_duplicate=False))
    for name in keep:
        if name not in modules:
            known = ", ".join(_layers(model)) or "none"
            raise UserError(
                f"the network has no module {name!r}; its layers are {known}", at="keep"
            )
    return {id(inner) for name in keep for inner in modules[name].modules()}


def _layers(model: nn.Module) -> Iterator[str]:
    return (name for name, module in model.named_modules() if isinstance(module, _CONVERTED))


def _check_all(model: nn.Module, kept: set[int]) -> None:
    """Raises UserError: a layer cannot be converted, or there is none."""
    owners = Counter(id(p) for m in model.modules() for p in m._parameters.values())
    convertible = False
    for name, module in model.named_modules():
        if id(module) not in kept and _check(name, module, owners, kept):
            convertible = True
    if not convertible:
        raise UserError(
            "has no linear layer or convolution to convert"
            + (" besides those to keep" if kept else ""),
            at=type(model).__name__,
        )


def _check(name: str, module: nn.Module, owners: Counter[int], kept: set[int]) -> bool:
    """Whether a module is to be converted.

    Raises:
        UserError: it should be, but cannot.
    """
    why = None
    if isinstance(module, _TRANSPOSED):
        why = "has no Bayesian counterpart here"
    elif isinstance(module, _READ_WEIGHTS) and any(
        isinstance(inner, _CONVERTED) and id(inner) not in kept for inner in module.modules()
    ):
        why = "reads the weights of the layers inside it instead of calling them"
    elif hasattr(module, "adaptation") and any(
        isinstance(inner, _CONVERTED) and id(inner) not in kept for inner in module.modules()
    ):
        why = "makes or replaces layers as tasks come: use a vcl_radial.nn.MultiHead or SingleHead"
    elif isinstance(module, _CONVERTED):
        parameters = [p for p in module._parameters.values() if p is not None]
        if is_parametrized(module):
            why = "is parametrised: remove that first"
        elif any(is_lazy(p) for p in parameters):
            why = "has no weights yet: run one batch through the network first"
        elif any(owners[id(p)] > 1 for p in parameters):
            why = "shares its weights with another layer"
        elif len({p.requires_grad for p in parameters}) > 1:
            why = "has weight or bias frozen alone: freeze both or neither"
        elif not _computes_as_pytorch(module):
            why = "computes in a way of its own"
        elif module._forward_hooks or module._forward_pre_hooks or module._backward_hooks:
            why = "has hooks, which would be lost: remove them first"
    if why is not None:
        kind = type(module).__name__
        raise UserError(f"{why}; or name it in keep", at=f"{name or 'the network'} ({kind})")
    return isinstance(module, _CONVERTED)


def _computes_as_pytorch(layer: nn.Module) -> bool:
    """Whether a layer's class, if it is not PyTorch's own, leaves PyTorch's computation alone."""
    (base,) = (kind for kind in _CONVERTED if isinstance(layer, kind))
    computes = ("forward", "_conv_forward")
    return all(getattr(type(layer), f, None) is getattr(base, f, None) for f in computes)
