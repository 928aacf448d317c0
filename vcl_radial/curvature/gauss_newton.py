"""The generalised Gauss-Newton matrix (GGN) of a network, layer by layer.

For a likelihood whose logits are natural parameters the GGN is the Fisher matrix,

    H = sum_n J_n' S_n S_n' J_n,    S_n S_n' = Hessian of -log p(y_n | f_n) in the logits f_n

with J_n the Jacobian of the logits in the weights (Martens 2020, sections 8 and 9). Each column of
S_n takes one backward pass through the network: the sum over classes is exact, and no label is
drawn.
g_nk is the gradient by column k at the output of a linear layer, and a_n is the layer's input. The
layer's block of H, over its weights stacked by columns with the bias last, is

    H_layer = sum_nk (a_n a_n') (x) (g_nk g_nk')

A convolution is a linear layer at each of its L positions, with the patch at the position as its
input a_nl: its gradient is sum_l g_nkl a_nl', and its block is the sum over n and k of the stacked
gradient times its transpose.

The diagonal of H is `diagonal_fisher` with kind = "predictive".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn

from vcl_radial.curvature.fisher import LARGEST_CHUNK, Points, is_plain_convolution, patches
from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Categorical
from vcl_radial.likelihoods.predict import in_mode
from vcl_radial.nn import BayesianConv2d, BayesianLinear
from vcl_radial.nn.calls import recorded_calls

HessianRoot: TypeAlias = Callable[[Tensor, Tensor], list[Tensor]]
"""Maps logits `[B, C]` and labels `[B]` to the columns of S, each `[B, C]`."""

Layers: TypeAlias = Mapping[str, nn.Linear | nn.Conv2d | BayesianLinear | BayesianConv2d]
"""Linear layers and convolutions by their names in a network."""

softmax_hessian_root: HessianRoot = Categorical().hessian_root
"""S of the categorical likelihood, S S' = diag(p) - p p': column k is sqrt(p_k) (p - e_k)."""


class LayerPass(NamedTuple):
    """Inputs and gradients of one layer; B counts every position of a convolution in every point.

    Attributes:
        inputs: inputs a, `[B, in]`, or `[B, in + 1]` with a last column of ones for a bias.
        gradients: gradients g at the output, `[K, B, out]`.
    """

    inputs: Tensor
    gradients: Tensor


def layers_in_full(
    network: nn.Module, parameters: Mapping[str, Tensor]
) -> dict[str, nn.Linear | nn.Conv2d]:
    """The linear layers and plain convolutions whose weights are all among these parameters.

    Layers that share a weight are left out.
    """
    owners = Counter(id(part) for _, part in network.named_parameters(remove_duplicate=False))
    return {
        name: module
        for name, module in network.named_modules()
        if (isinstance(module, nn.Linear) or is_plain_convolution(module))
        and all(weight in parameters for weight in _weights_of(name, module))
        and all(owners[id(part)] == 1 for part in module.parameters(recurse=False))
    }


def _weights_of(name: str, layer: nn.Module) -> list[str]:
    return [parameter_name(name, part) for part, _ in layer.named_parameters(recurse=False)]


def other_weights(layers: Layers, parameters: Mapping[str, Tensor]) -> list[str]:
    """The names of the parameters that none of these layers holds."""
    held_weights = {weight for name, layer in layers.items() for weight in _weights_of(name, layer)}
    return sorted(parameters.keys() - held_weights)


def linear_layers(network: nn.Module, parameters: Mapping[str, Tensor]) -> dict[str, nn.Linear]:
    """The linear layers that hold these parameters of a network.

    Raises:
        UserError: A parameter is not the weight or bias of a linear layer that is trained in full.
    """
    layers = {
        name: layer
        for name, layer in layers_in_full(network, parameters).items()
        if isinstance(layer, nn.Linear)
    }
    if other_names := other_weights(layers, parameters):
        raise UserError(
            f"Gauss-Newton blocks are known for linear layers that are trained in full, and "
            f"{other_names[0]!r} is not of one: take strategy = 'laplace_diagonal'"
        )
    return layers


def parameter_name(layer: str, part: str) -> str:
    """The name of a layer's weight or bias in its network; a network of one layer is ''."""
    return f"{layer}.{part}" if layer else part


def joint_weight(layer: str, weights: Mapping[str, Tensor]) -> Tensor:
    """Weight and bias of the layer of that name as one matrix `[out, in + 1]`, the bias last.

    A kernel of a convolution is a row, `in = C h w`.
    """
    weight = weights[parameter_name(layer, "weight")].flatten(1)
    bias = weights.get(parameter_name(layer, "bias"))
    return weight if bias is None else torch.cat([weight, bias.unsqueeze(1)], dim=1)


def layer_passes(
    network: nn.Module,
    layers: Layers,
    points: Points,
    hessian_root: HessianRoot = softmax_hessian_root,
) -> Iterator[tuple[str, LayerPass]]:
    """Yield the name and pass of every layer that a batch runs through, for every batch.

    Where the patches of a convolution are large, a pass holds a part of the points.

    Args:
        network: a network with logits `[B, C]`.
        layers: the network's layers to record. Layers with a posterior compute as in training: they
            draw weights, or use their means inside `vcl_radial.nn.weights.at_means`.
        points: batches of arguments and labels; dropout and batch statistics are switched off.
        hessian_root: S, the Hessian root of the likelihood.

    Raises:
        UserError: A layer is called more than once in a pass, or with more than one vector (for a
            convolution, one image) per point.
    """
    names = {layer: name for name, layer in layers.items()}
    with in_mode(network, training=False):
        for arguments, labels in points:
            with torch.enable_grad(), recorded_calls(names) as calls:
                logits = network(*arguments)
            if not calls:
                continue
            called_layers: set[nn.Module] = set()
            forms = [point_layer(layer) for layer, _, _ in calls]
            for (layer, inputs, _), form in zip(calls, forms, strict=True):
                axes = 4 if isinstance(form, nn.Conv2d) else 2
                if layer in called_layers or inputs.dim() != axes:
                    raise UserError(
                        f"the Gauss-Newton block of {names[cast(nn.Linear, layer)]!r} is known "
                        "only where it is called once, with one vector for each point: take "
                        "strategy = 'laplace_diagonal'"
                    )
                called_layers.add(layer)
            outputs = [output for _, _, output in calls]
            slopes = [
                torch.autograd.grad(logits, outputs, column, retain_graph=True)
                for column in hessian_root(logits.detach(), labels)
            ]
            for (layer, x, _), form, *gradients in zip(calls, forms, *slopes, strict=True):
                dtype = form.weight.dtype  # a network may compute in bfloat16
                a, g = x.detach().to(dtype), torch.stack(gradients).to(dtype)
                for layer_pass in _passes(form, a, g):
                    yield names[cast(nn.Linear, layer)], layer_pass


def point_layer(layer: nn.Module) -> nn.Linear | nn.Conv2d:
    """The layer itself, or the point-estimate counterpart of a layer with a posterior."""
    return cast(nn.Linear, getattr(layer, "plain", layer))


def _passes(layer: nn.Linear | nn.Conv2d, x: Tensor, gradients: Tensor) -> Iterator[LayerPass]:
    """The pass of a layer in chunks of points, so that patches fit into memory."""
    if isinstance(layer, nn.Linear):
        yield LayerPass(_with_ones(layer, x), gradients)
        return
    points = max(1, LARGEST_CHUNK // (gradients[0, 0, 0].numel() * layer.weight[0].numel()))
    gradient_chunks = torch.split(gradients.flatten(3).mT, points, dim=1)
    for images, g in zip(torch.split(x, points), gradient_chunks, strict=True):
        inputs = patches(layer, images).mT.flatten(0, 1)
        yield LayerPass(_with_ones(layer, inputs), g.flatten(1, 2))


def _with_ones(layer: nn.Linear | nn.Conv2d, inputs: Tensor) -> Tensor:
    """Inputs `[N, in]`, with a column of ones for a bias."""
    return inputs if layer.bias is None else torch.cat([inputs, inputs.new_ones(len(inputs), 1)], 1)


def scaled_jacobians(
    network: nn.Module,
    weights: Mapping[str, Tensor],
    points: Points,
    hessian_root: HessianRoot = softmax_hessian_root,
) -> Iterator[Tensor]:
    """Yield S'J of every batch, `[K B, P]`, with one row per column of S and point.

    The columns are the weights, in their order. The arguments are those of `layer_passes`, with
    parameters in place of their layers.
    """
    layers = linear_layers(network, weights)
    for batch in points:
        columns: dict[str, Tensor] = {}
        for layer, layer_pass in layer_passes(network, layers, [batch], hessian_root):
            joint = layer_pass.gradients.unsqueeze(-1) * layer_pass.inputs.unsqueeze(-2)
            name, bias = (parameter_name(layer, part) for part in ("weight", "bias"))
            columns[name] = joint[..., : weights[name].shape[1]]
            if bias in weights:
                columns[bias] = joint[..., -1]
        rows = next(iter(columns.values()))
        missing = {n: rows.new_zeros(*rows.shape[:2], w.numel()) for n, w in weights.items()}
        yield torch.cat([(missing | columns)[n].flatten(2) for n in weights], dim=2).flatten(0, 1)


def gauss_newton_matrix(
    network: nn.Module,
    weights: Mapping[str, Tensor],
    points: Points,
    hessian_root: HessianRoot = softmax_hessian_root,
) -> Tensor:
    """H = sum_n J_n' S_n S_n' J_n, `[P, P]` in float64; the arguments of `scaled_jacobians`."""
    count = sum(weight.numel() for weight in weights.values())
    device = next(iter(weights.values())).device
    total = torch.zeros(count, count, dtype=torch.float64, device=device)
    for rows in scaled_jacobians(network, weights, points, hessian_root):
        total.addmm_(rows.double().T, rows.double())
    return total
