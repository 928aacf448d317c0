"""A network's outputs, linearised in its weights about their means: draws, mean and variance.

    f_c(x; w) ~ f_c(x; m) + J_c(x) (w - m),    w ~ q,    m and s^2 the weights' means and variances
    E f_c(x) = f_c(x; m),    Var f_c(x) = sum_i J_ci(x)^2 s_i^2

(Rudner et al. 2022, section 3, with the diagonal of the covariance only). A draw takes one pass in
forward mode, whatever the posterior. The variance assumes that the weights are uncorrelated under
q, which is exact for a radial group because its direction is uniform. The derivative of an output
in the weight of a linear layer is the outer product of the gradient g_c at the layer's output and
the layer's input a. The layer therefore adds (g_c^2)' S (a^2) to the variance, with S the matrix of
the layer's variances: no Jacobian is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, jvp

from vcl_radial.errors import UserError
from vcl_radial.nn.calls import recorded_calls
from vcl_radial.nn.linear import BayesianLinear
from vcl_radial.nn.weights import VariationalWeights, at_means


def linearised(network: nn.Module, moves: Mapping[str, Tensor], *inputs: Any) -> Tensor:
    """f(x; m) + J(x) v, with m the network's parameters; the outputs of a call, `[B, C]`.

    Args:
        network: the network to call with the inputs.
        moves: v by parameter name; parameters without a name here do not move.
        inputs: x, and a task for a network that takes one.
    """
    means = {name: weight for name, weight in network.named_parameters() if name in moves}

    def outputs(weights: dict[str, Tensor]) -> Tensor:
        output: Tensor = functional_call(network, weights, inputs)
        return output

    at_means, along = jvp(outputs, (means,), ({name: moves[name] for name in means},))[:2]
    total: Tensor = at_means + along
    return total


class Moments(NamedTuple):
    """Mean and variance of the outputs, both `[B, C]`."""

    mean: Tensor
    variance: Tensor


def output_moments(network: nn.Module, call: Callable[[], Tensor]) -> Moments:
    """The moments of the outputs of a call, with gradient where gradients are enabled.

    Args:
        network: the network; its linear layers with a posterior are linearised, others are exact.
        call: calls the network on points and gives outputs `[B, C]`.

    Raises:
        UserError: The posterior of a layer is not supported, or a layer is not called exactly once
            with one vector for each point.
    """
    differentiable = torch.is_grad_enabled()
    layers = require_linear(network)
    if not layers:
        raise UserError(
            "a network of point estimates has no noise to linearise: give it a posterior"
        )
    with torch.enable_grad(), at_means(network), recorded_calls(layers) as calls:
        mean = call()
        if len({layer for layer, _, _ in calls}) < len(calls) or any(
            output.dim() != 2 for _, _, output in calls
        ):
            raise UserError(
                "a network can be linearised only if each layer is called once, with one vector "
                "for each point"
            )
        with torch.set_grad_enabled(differentiable):
            per_unit = [_variances(cast(BayesianLinear, layer), x) for layer, x, _ in calls]
        outputs = [output for _, _, output in calls]
        variances = []
        for output in mean.unbind(1):
            gradients = torch.autograd.grad(
                output.sum(), outputs, retain_graph=True, create_graph=differentiable
            )
            parts = zip(gradients, per_unit, strict=True)
            variances.append(torch.stack([(g.square() * v).sum(1) for g, v in parts]).sum(0))
        variance = torch.stack(variances, dim=1)
    return Moments(mean, variance) if differentiable else Moments(mean.detach(), variance.detach())


def _variances(layer: BayesianLinear, inputs: Tensor) -> Tensor:
    """The variance of a layer's outputs from the noise of its weights, S (a^2), `[B, out]`."""
    noises = [block.weight_noise().square() for block in layer.weights.posterior_blocks()]
    weight, bias = layer.weights.split(noises)
    added = inputs.square() @ weight.mT
    return added if bias is None else added + bias


def require_linear(network: nn.Module) -> list[BayesianLinear]:
    """The layers of a network that have a posterior, if there are any.

    Raises:
        UserError: A layer with a posterior is not linear, or is neither Gaussian nor radial.
    """
    layers = [module for module in network.modules() if isinstance(module, BayesianLinear)]
    supported = {id(layer.weights) for layer in layers if layer.weights.uncorrelated}
    for name, module in network.named_modules():
        if isinstance(module, VariationalWeights) and id(module) not in supported:
            raise UserError(
                f"a network is linearised in the weights of linear layers with a Gaussian or "
                f"radial posterior, and {name!r} is not of one: such a method serves "
                "network = 'mlp'"
            )
    return layers
