"""The shapes in which a Gaussian posterior is carried: what is kept of its precision.

A linear model with C outputs and Gaussian noise has the posterior precision P (x) I over the
weights of all outputs, P `[D, D]`: the block of a class is P itself, so that a posterior by class
and a Kronecker-factored one are exact here. A shape replaces P by one that takes fewer numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

_ROUNDS = 20
_ENOUGH = 1e-4


class Shape(ABC):
    """A family of Gaussian posteriors, by the precision that they may have."""

    name: str

    @abstractmethod
    def project(self, precision: Tensor, least: float) -> Tensor:
        """The family's precision that takes the place of another one, `[D, D]`.

        Args:
            precision: P, of the posterior of a task.
            least: the precision of the first prior, below which no diagonal one falls.
        """

    @abstractmethod
    def numbers(self, d: int) -> int:
        """How many numbers the precision of D features takes."""


class Full(Shape):
    """All of P: nothing is lost."""

    name = "full"

    def project(self, precision: Tensor, least: float) -> Tensor:
        """P."""
        return precision

    def numbers(self, d: int) -> int:
        """D (D + 1) / 2."""
        return d * (d + 1) // 2


class Diagonal(Shape):
    """diag(P), the mean-field Gaussian of the least KL(q || p): what mean-field VCL carries.

    An online diagonal Laplace approximation carries the same, as the likelihood is quadratic.
    """

    name = "diagonal, KL(q||p)"

    def project(self, precision: Tensor, least: float) -> Tensor:
        """diag(P)."""
        return precision.diagonal().diag()

    def numbers(self, d: int) -> int:
        """D."""
        return d


class Moments(Shape):
    """1 / diag(P^-1), the mean-field Gaussian of the least KL(p || q): the variances are exact."""

    name = "diagonal, KL(p||q)"

    def project(self, precision: Tensor, least: float) -> Tensor:
        """diag(1 / diag(P^-1))."""
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(precision))
        return inverse.diagonal().reciprocal().diag()

    def numbers(self, d: int) -> int:
        """D."""
        return d


@dataclass(frozen=True)
class Blocks(Shape):
    """P within blocks of features that follow one another, and nothing between them.

    It is the posterior of the least KL(q || p) with independent blocks.

    Attributes:
        size: size of a block.
    """

    size: int

    @property
    def name(self) -> str:  # type: ignore[override]
        """With the size."""
        return f"blocks of {self.size}"

    def project(self, precision: Tensor, least: float) -> Tensor:
        """P, with zeros between blocks."""
        block = torch.arange(len(precision)) // self.size
        return precision * (block[:, None] == block)

    def numbers(self, d: int) -> int:
        """Half of each block and its diagonal."""
        whole, rest = divmod(d, self.size)
        return whole * self.size * (self.size + 1) // 2 + rest * (rest + 1) // 2


@dataclass(frozen=True)
class LowRank(Shape):
    """diag(psi) + U'U with R rows, of the least KL(q || p).

    2 KL(q || p) = log det Q + tr(P Q^-1) + constant for a precision Q of q, which is the negative
    log-likelihood of factor analysis with the "covariance" P (Joreskog 1967): at the optimum

        U' = psi^1/2 V (Lambda - 1)^1/2 of the R largest eigenpairs of psi^-1/2 P psi^-1/2
        diag(Q) = diag(P)

    and these two are iterated. The eigenpairs come from subspaces that go on from round to round.

    Attributes:
        rank: R.
    """

    rank: int

    @property
    def name(self) -> str:  # type: ignore[override]
        """With the rank."""
        return f"rank {self.rank}"

    def project(self, precision: Tensor, least: float) -> Tensor:
        """diag(psi) + U'U."""
        rank = min(self.rank, len(precision))
        diagonal = precision.diagonal()
        psi, factor = diagonal, torch.zeros(rank, len(precision)).to(precision)
        basis = _start(precision, rank)
        for _ in range(_ROUNDS):
            scale = psi.sqrt()
            values, vectors, basis = _largest(precision / scale / scale[:, None], basis, rank)
            factor = ((values - 1).clamp(min=0).sqrt() * vectors).T * scale
            before = psi
            psi = (diagonal - factor.square().sum(0)).clamp(min=least)
            if float(((psi - before).abs() / before).mean()) < _ENOUGH:
                break
        return factor.T @ factor + psi.diag()

    def numbers(self, d: int) -> int:
        """D (R + 1)."""
        return d * (min(self.rank, d) + 1)


def _start(precision: Tensor, rank: int) -> Tensor:
    more = min(len(precision), rank + 8)
    draw = torch.Generator().manual_seed(0)
    return torch.randn(len(precision), more, generator=draw, dtype=torch.float64)


def _largest(matrix: Tensor, basis: Tensor, rank: int) -> tuple[Tensor, Tensor, Tensor]:
    """The largest eigenvalues of a symmetric matrix, their vectors, and a basis to go on from."""
    for _ in range(2):
        basis, _ = torch.linalg.qr(matrix @ basis)
    values, vectors = torch.linalg.eigh(basis.T @ matrix @ basis)
    basis = basis @ vectors
    return values[-rank:], basis[:, -rank:], basis
