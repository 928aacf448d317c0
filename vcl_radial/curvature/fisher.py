"""Sums over points of powers of per-point gradients: the diagonal Fisher, and MAS's sensitivity.

Both are, weight by weight,

    S_i = sum_n sum_c | v_nc . df(x_n)/dw_i |^k

with f the logits `[C]` of one point and v_nc a direction in them: k = 2 for the Fisher, k = 1 for
MAS. The power applies to the gradient of each point, so that S depends neither on the batch size
nor on the order of the points. (The squared mean gradient of a mini-batch, as in Avalanche's EWC
plugin, is smaller, by a factor of about the batch size that depends on the data.)

The gradient of a linear layer's weight at one point is an outer product of the gradient d at its
output and its input a, and |d_i a_j|^k = |d_i|^k |a_j|^k: S of such a layer is one product of two
matrices, |d|^k' |a|^k, for the whole batch. The gradient of a convolution is the sum of such
products over positions, d_n A_n' with the patches A_n under the kernel. `torch.func` computes all
other gradients, point by point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias, TypeGuard, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import unfold

from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Categorical, Likelihood
from vcl_radial.likelihoods.predict import in_mode
from vcl_radial.nn.calls import recorded_calls

Points: TypeAlias = Iterable[tuple[tuple[Any, ...], Tensor]]
"""Batches of the network's arguments, inputs `[B, ...]` first, and labels `[B]`."""

_Directions: TypeAlias = Callable[[Tensor, Tensor], list[Tensor]]
"""Maps logits `[B, C]` and labels `[B]` to directions v, each `[B, C]`."""

_Power: TypeAlias = Callable[[Tensor], Tensor]
"""The function `torch.abs` or `torch.square`: a product's power is the product of powers."""

FISHERS = ("empirical", "predictive")
"""The kinds of Fisher information."""

LARGEST_CHUNK = 2**24
"""Largest number of values in memory at a time, in per-point gradients or in image patches."""


def diagonal_fisher(
    network: nn.Module,
    parameters: Mapping[str, Tensor],
    points: Points,
    kind: str = "empirical",
    likelihood: Likelihood | None = None,
) -> dict[str, Tensor]:
    """The diagonal of the Fisher information of a network, summed over the points.

        empirical:   F_i = sum_n (d log p(y_n | x_n, w) / dw_i)^2
        predictive:  F_i = sum_n E_{y ~ p(y | x_n, w)} [ (d log p(y | x_n, w) / dw_i)^2 ]

    The empirical Fisher takes the labels of the data; the predictive Fisher takes the exact
    expectation under the model (on the difference: Kunstner, Balles and Hennig 2019; van de Ven
    2025). The predictive Fisher is the Gauss-Newton diagonal, and costs a backward pass per output.

    Args:
        network: a network with outputs `[B, C]`.
        parameters: the parameters for which to compute the diagonal, by their names in the network.
        points: batches of arguments and labels; dropout and batch statistics are switched off.
        kind: "empirical" or "predictive".
        likelihood: the likelihood of the outputs; by default they are logits of classes.

    Returns:
        Tensors of the parameters' shapes, in nats per squared weight.

    Raises:
        UserError: The kind is not known.
    """
    if kind not in FISHERS:
        raise UserError(f"fisher = {kind!r} is not known: choose from {', '.join(FISHERS)}")
    likelihood = Categorical() if likelihood is None else likelihood

    def empirical(outputs: Tensor, targets: Tensor) -> list[Tensor]:
        return [likelihood.residual(outputs, targets)]

    # For the predictive Fisher, the squared columns of S sum to the expected squared residual.
    directions = empirical if kind == "empirical" else likelihood.hessian_root
    return _sum_of_powers(network, parameters, points, directions, torch.square)


def output_sensitivity(
    network: nn.Module, parameters: Mapping[str, Tensor], points: Points
) -> dict[str, Tensor]:
    """sum_n | d ||f(x_n)||^2 / dw_i |, f the logits (Aljundi et al. 2018, Eq. 2 and section 4.1).

    The arguments are those of `diagonal_fisher`; the labels are ignored.
    """
    return _sum_of_powers(network, parameters, points, lambda logits, _: [2 * logits], torch.abs)


def _sum_of_powers(
    network: nn.Module,
    parameters: Mapping[str, Tensor],
    points: Points,
    directions: _Directions,
    power: _Power,
) -> dict[str, Tensor]:
    """The sums S of the module's docstring."""
    total = {name: torch.zeros_like(weight) for name, weight in parameters.items()}
    layers = _layers_of(network, parameters)
    with in_mode(network, training=False):
        for arguments, labels in points:
            if not (
                layers
                and _add_by_layer(network, layers, total, arguments, labels, directions, power)
            ):
                _add_per_point(network, parameters, total, arguments, labels, directions, power)
    return total


_Layer: TypeAlias = nn.Linear | nn.Conv2d
_Layers: TypeAlias = dict[_Layer, tuple[str | None, str | None]]
"""The names of the weight and the bias of each layer, None for a part that is not requested."""


def _layers_of(network: nn.Module, parameters: Mapping[str, Tensor]) -> _Layers | None:
    """The linear layers and convolutions that hold the parameters.

    The result is None if another module holds or shares one of them.
    """
    layers: _Layers = {}
    for prefix, layer in network.named_modules():
        if _is_linear(layer) or is_plain_convolution(layer):
            assert isinstance(layer, _Layer)
            names = [f"{prefix}.{part}" if prefix else part for part in ("weight", "bias")]
            weight, bias = (name if name in parameters else None for name in names)
            if weight or bias:
                layers[layer] = weight, bias
    found_names = {name for pair in layers.values() for name in pair if name}
    all_parameters = dict(network.named_parameters(remove_duplicate=False))
    ids = {id(weight) for weight in parameters.values()}
    is_shared = sum(id(weight) in ids for weight in all_parameters.values()) > len(ids)
    return None if is_shared or found_names != set(parameters) else layers


def _is_linear(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Linear) and type(layer).forward is nn.Linear.forward


def is_plain_convolution(layer: nn.Module) -> TypeGuard[nn.Conv2d]:
    """Whether a layer is PyTorch's convolution of images, in one group and padded by zeros."""
    return (
        isinstance(layer, nn.Conv2d)
        and type(layer).forward is nn.Conv2d.forward
        and type(layer)._conv_forward is nn.Conv2d._conv_forward
        and (layer.groups, layer.padding_mode) == (1, "zeros")
        and not isinstance(layer.padding, str)
    )


def _depends_on(outputs: Tensor, weights: list[nn.Parameter]) -> bool:
    """Whether outputs depend on one of these weights although its layer was not called."""
    weights = [weight for weight in weights if weight.requires_grad]
    if not weights:
        return False
    slopes = torch.autograd.grad(outputs.sum(), weights, retain_graph=True, allow_unused=True)
    return any(slope is not None for slope in slopes)


def _add_by_layer(
    network: nn.Module,
    layers: _Layers,
    total: dict[str, Tensor],
    arguments: tuple[Any, ...],
    labels: Tensor,
    directions: _Directions,
    power: _Power,
) -> bool:
    """Add a batch in closed form; return False without adding if a layer's input is no batch."""
    with torch.enable_grad(), recorded_calls(layers) as calls:
        logits = network(*arguments)
    called = {layer for layer, _, _ in calls}
    uncalled = [part for layer in layers if layer not in called for part in layer.parameters()]
    if (
        len(called) < len(calls)
        or _depends_on(logits, uncalled)
        or any(
            x.shape[: 1 if isinstance(layer, nn.Conv2d) else -1] != labels.shape
            for layer, x, _ in calls
        )
    ):
        return False
    if not calls:
        return True
    outputs = [output for _, _, output in calls]
    slopes = [
        torch.autograd.grad(logits, outputs, v, retain_graph=True)
        for v in directions(logits.detach(), labels)
    ]
    for (layer, x, _), *gradients in zip(calls, *slopes, strict=True):
        # A network may compute in bfloat16; the sums have the type of its weights.
        dtype = cast(_Layer, layer).weight.dtype
        a, d = x.detach(), torch.stack(gradients, dim=1)
        weight, bias = layers[cast(_Layer, layer)]
        if isinstance(layer, nn.Conv2d):
            if weight:
                _add_convolution(layer, total[weight], a.to(d.dtype), d, power)
            if bias:
                total[bias].add_(power(d.to(dtype).sum((3, 4))).sum((0, 1)))
            continue
        powers = power(d.to(dtype)).sum(1)
        if weight:
            total[weight].addmm_(powers.T, power(a.to(dtype)))
        if bias:
            total[bias].add_(powers.sum(0))
    return True


def _add_convolution(layer: nn.Conv2d, total: Tensor, x: Tensor, d: Tensor, power: _Power) -> None:
    """Add the sums of kernels `[O, C, h, w]`, for as many points at a time as fit.

    Args:
        layer: the layer with these kernels.
        total: the sum to add to.
        x: inputs `[B, C, H, W]`.
        d: gradients at the outputs, `[B, V, O, H', W']` for V directions.
        power: power of the gradients of points.
    """
    per_point = layer.weight[0].numel() * (d[0, 0, 0].numel() + d.shape[1] * layer.out_channels)
    rows = max(1, LARGEST_CHUNK // per_point)
    for inputs, gradients in zip(torch.split(x, rows), torch.split(d, rows), strict=True):
        # One product for all directions makes the patches once.
        point_gradients = gradients.flatten(3).flatten(1, 2) @ patches(layer, inputs).mT
        powers = power(point_gradients.to(total.dtype)).sum(0)
        total.add_(powers.view(d.shape[1], *total.shape).sum(0))


def patches(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """The image patches `[B, C h w, L]` under a plain convolution's kernel at L positions."""
    return unfold(
        x,
        layer.kernel_size,
        dilation=layer.dilation,
        padding=cast(tuple[int, int], layer.padding),
        stride=layer.stride,
    )


def _add_per_point(
    network: nn.Module,
    parameters: Mapping[str, Tensor],
    total: dict[str, Tensor],
    arguments: tuple[Any, ...],
    labels: Tensor,
    directions: _Directions,
    power: _Power,
) -> None:
    """Add a batch point by point, as many at a time as fit."""
    inputs, *rest = arguments
    weights = {name: weight.detach() for name, weight in parameters.items()}

    def output_along(weights: dict[str, Tensor], x: Tensor, v: Tensor) -> Tensor:
        logits: Tensor = functional_call(network, weights, (x[None], *rest))
        return logits[0].dot(v)

    gradients = vmap(partial(grad(output_along)), in_dims=(None, 0, 0))
    rows = max(1, LARGEST_CHUNK // sum(weight.numel() for weight in weights.values()))
    for x, y in zip(torch.split(inputs, rows), torch.split(labels, rows), strict=True):
        with torch.no_grad():
            logits = network(x, *rest)
        for v in directions(logits, y):
            for name, g in gradients(weights, x, v).items():
                total[name].add_(power(g).sum(0))
