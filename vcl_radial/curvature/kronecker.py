"""Kronecker-factored curvature (KFAC), and a quadratic memory with sums of Kronecker products.

A linear layer's block of the Gauss-Newton matrix is sum_nk (a_n a_n') (x) (g_nk g_nk'), see
`vcl_radial.curvature.gauss_newton`. If inputs a and gradients g are uncorrelated over the points,
the block is one Kronecker product,

    H  ~  A (x) G,    A = 1/N sum_n a_n a_n',    G = sum_nk g_nk g_nk'

(Martens and Grosse 2015; Botev, Ritter and Barber 2017). It is exact for a single point, and where
the gradients are the same for all points, as in linear regression. The L positions of a convolution
in an image count as L points, as if gradients of different positions were uncorrelated too (Grosse
and Martens 2016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from vcl_radial.curvature.fisher import Points
from vcl_radial.curvature.gauss_newton import (
    HessianRoot,
    Layers,
    joint_weight,
    layer_passes,
    parameter_name,
    softmax_hessian_root,
)
from vcl_radial.curvature.quadratic import Quadratic


class KroneckerFactors(NamedTuple):
    """A matrix A (x) G over the weights W `[out, in + 1]` of a layer, stacked by columns.

    A kernel of a convolution is a row of W, `in = C h w`.

    Attributes:
        inputs: A, `[in + 1, in + 1]`.
        gradients: G, `[out, out]`.
    """

    inputs: Tensor
    gradients: Tensor


def kronecker_factors(
    network: nn.Module,
    layers: Layers,
    points: Points,
    hessian_root: HessianRoot = softmax_hessian_root,
) -> dict[str, KroneckerFactors]:
    """A and G of every layer, over the points that run through it.

    The sums are exact, and do not depend on the batches: A is a mean over points and G a sum, so
    that A (x) G has the scale of N points. The arguments are those of `layer_passes`.
    """
    factors: dict[str, KroneckerFactors] = {}
    count: dict[str, int] = {}
    for name, (inputs, gradients) in layer_passes(network, layers, points, hessian_root):
        rows = gradients.flatten(0, 1)
        if name in factors:
            factors[name].inputs.addmm_(inputs.t(), inputs)
            factors[name].gradients.addmm_(rows.t(), rows)
        else:
            factors[name] = KroneckerFactors(inputs.t() @ inputs, rows.t() @ rows)
        count[name] = count.get(name, 0) + len(inputs)
    for name, (inputs, _) in factors.items():
        inputs.div_(count[name])
    return factors


def kronecker_sum(summands: Sequence[KroneckerFactors]) -> KroneckerFactors:
    """One Kronecker product that approximates a sum of them, H = sum_t A_t (x) G_t.

        A = sum_t tr(G_t) A_t / sum_t tr(G_t),      G = sum_t tr(A_t) G_t / tr(A)

    A (x) G has the trace and both partial traces of H. Among all products of positive semi-definite
    matrices it is therefore the one with the smallest von Neumann divergence from H,
    tr(H log H - H log(A (x) G) - H + A (x) G) (Dhillon and Tropp 2007). It depends on H alone, so
    that summands may be added one at a time and in any order. It leaves out the joint variation of
    inputs and gradients over the summands, with traces h_t = tr(A_t) tr(G_t):

        H - A (x) G = sum_t h_t (A_t / tr(A_t) - A / tr(A)) (x) (G_t / tr(G_t) - G / tr(G))

    which is 0 where all A_t, or all G_t, are multiples of one matrix.
    """
    inputs, gradients = (torch.stack([pair[side].trace() for pair in summands]) for side in (0, 1))
    if not (inputs.any() and gradients.any()):
        return summands[0]
    A = sum(g * pair.inputs for g, pair in zip(gradients, summands, strict=True)) / gradients.sum()
    G = sum(a * pair.gradients for a, pair in zip(inputs, summands, strict=True)) / A.trace()
    return KroneckerFactors(A, G)


def kronecker_penalty(
    weights: Tensor, factors: Sequence[KroneckerFactors], value: bool = True
) -> Tensor:
    """1/2 v' (sum_t A_t (x) G_t) v with v the weights stacked by columns; a scalar in nats.

    Its gradient is sum_t G_t W A_t, two products per summand, and its value is half the inner
    product of the gradient and W. The matrices must be symmetric.

    Args:
        weights: W, `[out, in + 1]`.
        factors: the summands, one or more.
        value: whether to compute the value; otherwise the value is 0, with the correct gradient.
    """
    form: Tensor = _KroneckerPenalty.apply(weights, factors, value)
    return form


class _KroneckerPenalty(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, factors: Sequence[KroneckerFactors], value: bool
    ) -> Tensor:
        slope = torch.zeros_like(weights)
        for inputs, gradients in factors:
            slope.addmm_(gradients @ weights, inputs)
        ctx.slope = slope
        if not value:
            return weights.new_zeros(())
        return weights.flatten().dot(slope.flatten()) / 2

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.slope * grad, None, None


class KroneckerQuadratic(Quadratic):
    """R(w) = 1/2 sum_i P_i (w_i - c_i)^2 + 1/2 sum_layers v' (sum_t A_t (x) G_t) v + constant.

    v is w - c of a linear layer or a convolution, stacked by columns. A sum of Kronecker products
    is not a Kronecker product: with all summands R is exact, but the memory and the time of a step
    grow with their number.

    Args:
        summed: whether to keep one product per layer instead of all summands; see `kronecker_sum`.

    Attributes:
        factors: the summands by layer name.
    """

    def __init__(self, *, summed: bool = False) -> None:
        super().__init__()
        self.summed = summed
        self.factors: dict[str, list[KroneckerFactors]] = {}

    def penalty(self, weights: Mapping[str, Tensor], value: bool = True) -> Tensor | float:
        """R at these weights; see `Quadratic.penalty`."""
        total = super().penalty(weights, value)
        for name, factors in self.factors.items():
            if parameter_name(name, "weight") in weights:
                offset = joint_weight(name, weights) - joint_weight(name, self.centre)
                total = total + kronecker_penalty(offset, factors, value)
        return total

    def add_factors(self, factors: Mapping[str, KroneckerFactors]) -> None:
        """Add a summand to each of these layers."""
        for name, summand in factors.items():
            summands = [*self.factors.get(name, []), summand]
            merge = self.summed and len(summands) > 1
            self.factors[name] = [kronecker_sum(summands)] if merge else summands

    def state_dict(self) -> dict[str, Any]:
        """The memory as plain tensors and numbers."""
        factors = {name: [tuple(pair) for pair in pairs] for name, pairs in self.factors.items()}
        return super().state_dict() | {"factors": factors}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device | str = "cpu") -> None:
        """Restore the memory of `state_dict`, on a device."""
        super().load_state_dict(state, device)
        self.factors = {
            name: [KroneckerFactors(A.to(device), G.to(device)) for A, G in pairs]
            for name, pairs in state["factors"].items()
        }
