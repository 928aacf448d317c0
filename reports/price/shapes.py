"""The shapes in which a Gaussian posterior is carried: approximations of its precision.

A linear model with C outputs and Gaussian noise has the posterior precision P (x) I over the
weights of all outputs, P `[D, D]`: the block of a class is P itself, so that a posterior by class
and a Kronecker-factored posterior are exact here. A shape replaces P by a precision that takes
fewer numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

_ROUNDS = 20
_ENOUGH = 1e-4


@dataclass(frozen=True)
class Shape:
    """A family of Gaussian posteriors, by the precision that they may have.

    Attributes:
        name: name of the shape.
        project: function of P and of the first prior's precision that returns the family's
            precision `[D, D]` in place of P; no diagonal precision falls below the first prior's.
        numbers: function of D that returns how many numbers the precision takes.
    """

    name: str
    project: Callable[[Tensor, float], Tensor]
    numbers: Callable[[int], int]


FULL = Shape("full", lambda precision, least: precision, lambda d: d * (d + 1) // 2)
"""All of P: nothing is lost."""

DIAGONAL = Shape(
    "diagonal, KL(q||p)", lambda precision, least: precision.diagonal().diag(), lambda d: d
)
"""diag(P), the mean-field Gaussian of the least KL(q || p): what mean-field VCL carries.

An online diagonal Laplace approximation carries the same, as the likelihood is quadratic.
"""


def _keep_variances(precision: Tensor, least: float) -> Tensor:
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(precision))
    return inverse.diagonal().reciprocal().diag()


MOMENTS = Shape("diagonal, KL(p||q)", _keep_variances, lambda d: d)
"""1 / diag(P^-1), the mean-field Gaussian of the least KL(p || q): the variances are exact."""


def blocks(size: int) -> Shape:
    """P within blocks of `size` successive features, and zeros between blocks.

    It is the posterior with independent blocks that has the least KL(q || p).
    """

    def project(precision: Tensor, least: float) -> Tensor:
        block = torch.arange(len(precision)) // size
        return precision * (block[:, None] == block)

    def numbers(d: int) -> int:
        whole, rest = divmod(d, size)
        return whole * FULL.numbers(size) + FULL.numbers(rest)

    return Shape(f"blocks of {size}", project, numbers)


def low_rank(rank: int) -> Shape:
    """diag(psi) + U'U with R rows, of the least KL(q || p).

    2 KL(q || p) = log det Q + tr(P Q^-1) + constant for a precision Q of q, which is the negative
    log-likelihood of factor analysis with the "covariance" P (Joreskog 1967): at the optimum

        U' = psi^1/2 V (Lambda - 1)^1/2 of the R largest eigenpairs of psi^-1/2 P psi^-1/2
        diag(Q) = diag(P)

    and these two equations are iterated. Every round starts from the eigenvectors of the last
    round.
    """
    return Shape(f"rank {rank}", partial(_factorise, rank), lambda d: d * (min(rank, d) + 1))


def _factorise(rank: int, precision: Tensor, least: float) -> Tensor:
    """diag(psi) + U'U."""
    rank = min(rank, len(precision))
    psi = diagonal = precision.diagonal()
    factor = torch.zeros(rank, len(precision)).to(precision)
    columns, draw = min(len(precision), rank + 8), torch.Generator().manual_seed(0)
    basis = torch.randn(len(precision), columns, generator=draw, dtype=torch.float64)
    for _ in range(_ROUNDS):
        scale = psi.sqrt()
        values, vectors, basis = _largest(precision / scale / scale[:, None], basis, rank)
        factor = ((values - 1).clamp(min=0).sqrt() * vectors).T * scale
        before = psi
        psi = (diagonal - factor.square().sum(0)).clamp(min=least)
        if float(((psi - before).abs() / before).mean()) < _ENOUGH:
            break
    return factor.T @ factor + psi.diag()


def _largest(matrix: Tensor, basis: Tensor, rank: int) -> tuple[Tensor, Tensor, Tensor]:
    """The largest eigenvalues of a symmetric matrix, their vectors, and the next basis."""
    for _ in range(2):
        basis, _ = torch.linalg.qr(matrix @ basis)
    values, vectors = torch.linalg.eigh(basis.T @ matrix @ basis)
    basis = basis @ vectors
    return values[-rank:], basis[:, -rank:], basis
