"""The posterior of a kept model by layer: means, scales and correlations of its weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vcl_radial.curvature import (
    DenseQuadratic,
    KroneckerFactors,
    KroneckerQuadratic,
    LowRankQuadratic,
    Quadratic,
)
from vcl_radial.curvature.gauss_newton import joint_weight, parameter_name
from vcl_radial.errors import UserError
from vcl_radial.methods.base import Method
from vcl_radial.methods.exact_head import ExactHead
from vcl_radial.methods.quadratic import QuadraticMethod
from vcl_radial.nn.weights import VariationalWeights
from vcl_radial.posteriors.correlated import Correlated

LARGEST = 5_000
"""Largest number of weights in a group with a matrix of correlations; it takes 200 MB."""


@dataclass(frozen=True)
class Layer:
    """The posterior of one block of weights, in independent groups of D.

    Up to a factor of the family, the inverse covariance of a group is

        P = diag(1 / scale^2) + (U / scale)' (U / scale) + sum_t A_t (x) G_t,    or P = precision

    Attributes:
        mean: means `[groups, D]`.
        scale: scales of the family `[groups, D]`; the standard deviations where it is Gaussian and
            there are no correlations.
        factor: U `[groups, R, D]` of a family of low rank; None for the others.
        kronecker: the pairs A `[in + 1, in + 1]` and G `[out, out]` of Kronecker-factored
            curvature; the one group is then the weight with its bias `[out, in + 1]`, by columns.
        precision: P `[D, D]` of every group, where the family stores it whole.
    """

    mean: Tensor
    scale: Tensor
    factor: Tensor | None = None
    kronecker: tuple[KroneckerFactors, ...] = ()
    precision: Tensor | None = None

    def correlations(self) -> Tensor:
        """Correlations of the weights of every group, `[groups, D, D]` float64.

        Raises:
            UserError: a group has more than `LARGEST` weights.
        """
        D = self.mean.shape[-1]
        if D > LARGEST:
            raise UserError(
                f"a group of {D:,} weights has too many correlations (the limit is {LARGEST:,} "
                "weights): use factor, kronecker or precision, which define them"
            )
        if self.factor is None and self.precision is None and not self.kronecker:
            return torch.eye(D, dtype=torch.float64).expand(len(self.mean), D, D)
        covariance = torch.cholesky_inverse(torch.linalg.cholesky(self._precision()))
        deviation = covariance.diagonal(dim1=-2, dim2=-1).sqrt()
        return covariance / deviation.unsqueeze(-1) / deviation.unsqueeze(-2)

    def _precision(self) -> Tensor:
        if self.precision is not None:
            return self.precision.double().expand(len(self.mean), *self.precision.shape)
        P = torch.diag_embed(self.scale.double() ** -2)
        if self.factor is not None:
            rows = self.factor.double() / self.scale.double().unsqueeze(-2)
            P = P + rows.mT @ rows
        for A, G in self.kronecker:
            P = P + torch.kron(A.double(), G.double())
        return P


def layers(method: Method) -> dict[str, Layer]:
    """The posterior of every layer or parameter by name; empty where a method keeps none.

    A method with a quadratic penalty has the Gaussian whose negative logarithm the penalty is;
    weights without curvature have an infinite scale. Where layers are correlated with each other,
    each one is given the others.
    """
    result = dict(_of_network(method.network))
    if isinstance(method, QuadraticMethod):
        result |= _of_penalty(method.past)
    return result


@torch.no_grad()
def _of_network(network: nn.Module) -> Iterator[tuple[str, Layer]]:
    for name, module in network.named_modules():
        if isinstance(module, VariationalWeights) and module.all_in_blocks:
            for number, block in enumerate(module.posterior_blocks()):
                q = block.posterior
                factor = q.factor.detach() if isinstance(q, Correlated) else None
                yield f"{name}.{number}", Layer(q.mean.detach(), q.scale.detach(), factor)
        elif isinstance(module, ExactHead) and hasattr(module.posterior, "precision"):
            q = module.posterior
            precision = q.shape / q.rate * q.precision  # at the mean of the noise precision
            scale = precision.diagonal().rsqrt().expand_as(q.mean.T)
            yield name, Layer(q.mean.T, scale, precision=precision)


@torch.no_grad()
def _of_penalty(past: Quadratic) -> dict[str, Layer]:
    result: dict[str, Layer] = {}
    factors = past.factors if isinstance(past, KroneckerQuadratic) else {}
    for layer, pairs in factors.items():
        # By columns, as the Kronecker products have them.
        mean, P = (
            joint_weight(layer, part).T.reshape(1, -1) for part in (past.centre, past.precision)
        )
        result[layer] = Layer(mean, P.rsqrt(), kronecker=tuple(pairs))
    joint = {parameter_name(layer, part) for layer in factors for part in ("weight", "bias")}
    for name in past.precision.keys() - joint:
        mean, P = (part[name].reshape(1, -1) for part in (past.centre, past.precision))
        factor = precision = None
        if isinstance(past, LowRankQuadratic) and name in past.factor:
            factor = (past.factor[name] * P.rsqrt()).unsqueeze(0)
        if isinstance(past, DenseQuadratic):
            precision = past.precision_of({name: P[0]})
        result[name] = Layer(mean, P.rsqrt(), factor, precision=precision)
    return result
