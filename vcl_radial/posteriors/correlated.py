"""The base of families with correlated weights: a root of a precision of low rank.

    w = mean + scale * z,    z = S e,    S S' = C = (I + U'U)^-1

where the distribution of the standard noise e is invariant under rotations, as a standard normal
is: the distribution of z then depends on C alone. The factor U `[R, D]` is in the coordinates of z,
so that it has no unit. Its rows are R directions; their lengths measure by how much the precision
exceeds the diagonal one. U stays the same when the scales change.

With M = I + U U' = L L' (Cholesky, R x R, eigenvalues of at least 1) no D x D matrix is needed:

| what                 | how                              | source                          |
| -------------------- | -------------------------------- | ------------------------------- |
| log det C            | -log det M                       | the determinant lemma           |
| C                    | I - U' M^-1 U                    | Woodbury                        |
| S with S S' = C      | S = I - U' K U, K = L'^-1 (L + I)^-1 | below                       |

The root S has S S' = C because, with N = L + I, U U' = L L' - I = N N' - N - N', and therefore

    K + K' - K U U' K' = K + L'^-1 N^-1 L^-1 + K' + L'^-1 N'^-1 L^-1 - M^-1 = 2 M^-1 - M^-1.

No eigenvalues are used: their gradient is infinite where two are equal, and at U = 0 all are equal.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.linalg import solve_triangular

from vcl_radial.errors import UserError
from vcl_radial.posteriors.base import Posterior
from vcl_radial.posteriors.transforms import transformed


class Correlated(Posterior):
    """A family with correlations of rank R within a group, w = mean + scale * S e.

    A draw, a density and a KL take O(D R^2) operations.

    Args:
        mean: Location, shape [..., D].
        scale: Positive scale of the same dtype, broadcast with the mean.
        factor: U, shape [..., R, D], of the same dtype; None for R = 0.

    Raises:
        UserError: If shapes, dtypes or devices do not fit together.
    """

    options = frozenset({"rank"})
    uncorrelated = False

    def __init__(self, mean: Tensor, scale: Tensor, factor: Tensor | None = None) -> None:
        super().__init__(mean, scale)
        mean = self.mean
        self.factor = no_factor(mean) if factor is None else factor
        if self.factor.dtype != mean.dtype or self.factor.device != mean.device:
            raise UserError(
                f"factor must have the dtype and device of the mean, {mean.dtype} on "
                f"{mean.device}, got {self.factor.dtype} on {self.factor.device}"
            )
        *batch, D = self.mean.shape
        *leading, last = self.factor.shape
        if leading[:-1] != batch or len(leading) != self.mean.ndim or last != D:
            raise UserError(
                f"factor must have the shape of the mean, {[*mean.shape]}, with the rank before "
                f"its last axis, got {[*self.factor.shape]}"
            )
        self._known_root: Tensor | None = None

    @abstractmethod
    def white_noise(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times e, shape [n, ..., D], without gradient: the noise at a factor of 0."""

    def noise(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times z = S e, shape [n, ..., D]; at a factor of 0 it is e."""
        with torch.no_grad():
            return self._correlated(self.white_noise(n, generator))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times w = mean + scale * S e, reparameterised in the factor too."""
        noise = self.white_noise(n, generator)
        return torch.addcmul(self.mean, self.scale, self._correlated(noise))

    def deviation(self) -> Tensor:
        """The standard deviation of each weight, shape [..., D].

        scale * sqrt(C_ii), in units of the standard deviation of one entry of e
        """
        halves: Tensor = solve_triangular(self._root(), self.factor.double(), upper=False)
        variance = (1 - halves.square().sum(-2)).clamp(min=torch.finfo(torch.float64).eps)
        unit = type(self).scale_for_weight_noise(1.0, self.group_size)
        return self.scale * variance.sqrt().to(self.scale.dtype) / unit

    def to_prior(self) -> Self:
        """A copy of the distribution without gradient: the next task's prior."""
        mean, scale, factor = (t.detach().clone() for t in (self.mean, self.scale, self.factor))
        return type(self)(mean, scale, factor)

    def _squared_norm(self, w: Tensor) -> Tensor:
        """||e||^2 = ||z||^2 + ||U z||^2 for w = mean + scale * z in float64, shape [...]."""
        z = self._standardise(w).double()
        along = torch.einsum("...d,...rd->...r", z, self.factor.double())
        return z.square().sum(-1) + along.square().sum(-1)

    def _root(self) -> Tensor:
        """The lower triangular L with M = L L', in float64; shape [..., R, R]."""
        if torch.is_grad_enabled():  # a graph serves one backward pass only: do not cache it
            return cholesky(gram(self.factor))
        if self._known_root is None:
            self._known_root = cholesky(gram(self.factor))
        return self._known_root

    def _log_det(self) -> Tensor:
        """The log determinant of M in float64, shape [...]."""
        return log_det(self._root())

    def _correlated(self, white: Tensor) -> Tensor:
        """S e for noise e, shape [n, ..., D]."""
        root = self._root()
        inner = solve_triangular(root + identity(root), identity(root), upper=False)
        K: Tensor = solve_triangular(root.mT, inner, upper=True).to(white.dtype)
        # Autocast must change the products of the network only, not those of the posterior.
        with torch.autocast(white.device.type, enabled=False):
            rows = white.movedim(0, -2)
            return white - (rows @ self.factor.mT @ K.mT @ self.factor).movedim(-2, 0)


def gram(factor: Tensor) -> Tensor:
    """U U' in float64, shape [..., R, R]: float32 could make M indefinite by rounding."""
    if transformed():
        return factor.double() @ factor.double().mT
    products: Tensor = _Gram.apply(factor)
    return products


class _Gram(torch.autograd.Function):
    """U U' in float64, with the gradient in the dtype of U to save D x R^2 float64 products."""

    @staticmethod
    def forward(ctx: Any, factor: Tensor) -> Tensor:
        ctx.save_for_backward(factor)
        double = factor.double()
        return double @ double.mT

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (factor,) = ctx.saved_tensors
        gradient: Tensor = (grad + grad.mT).to(factor) @ factor
        return gradient


def no_factor(mean: Tensor) -> Tensor:
    """A factor of rank 0 for this mean."""
    return mean.new_zeros(*mean.shape[:-1], 0, mean.shape[-1])


def identity(like: Tensor) -> Tensor:
    """The identity in the shape of a square matrix, or of a batch of them."""
    return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device).expand_as(like)


def cholesky(matrix: Tensor) -> Tensor:
    """L with I + matrix = L L'; NaN where there is none, for example when a factor has diverged."""
    root, fault = torch.linalg.cholesky_ex(matrix + identity(matrix))
    filled: Tensor = root.masked_fill((fault != 0)[..., None, None], torch.nan)
    return filled


def log_det(root: Tensor) -> Tensor:
    """The log determinant of L L', with `root` = L."""
    return 2 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
