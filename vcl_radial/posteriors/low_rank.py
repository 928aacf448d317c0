"""A Gaussian posterior whose precision is low rank plus diagonal.

    q(w) = N(mean, P^-1),    P = diag(1 / scale^2) + (U / scale)' (U / scale)

The factor U `[R, D]` lives in the whitened coordinates z = (w - mean) / scale, where

    z ~ N(0, C),    C = (I + U'U)^-1

so that U has no unit: its rows are R directions, along which it says by how much the precision
exceeds the diagonal one, and it stays as it is when the scales change. At U = 0 this is the
mean-field Gaussian.

With M = I + U U' = L L' (Cholesky, R x R, eigenvalues of at least 1) nothing of D x D is needed:

| what                 | how                              | source                          |
| -------------------- | -------------------------------- | ------------------------------- |
| log det C            | -log det M                       | the determinant lemma           |
| C                    | I - U' M^-1 U                    | Woodbury                        |
| S with S S' = C      | S = I - U' K U, K = L'^-1 (L + I)^-1 | below                       |

For K as above S S' = C, since with N = L + I it holds that U U' = L L' - I = N N' - N - N', and so

    K + K' - K U U' K' = K + L'^-1 N^-1 L^-1 + K' + L'^-1 N'^-1 L^-1 - M^-1 = 2 M^-1 - M^-1.

No eigenvalues are taken, whose gradient is infinite where two are equal, as all are at U = 0.
"""

from __future__ import annotations

import math
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.linalg import solve_triangular
from torch.nn.functional import pad

from vcl_radial.errors import UserError
from vcl_radial.posteriors.base import Posterior, Prior, Scale
from vcl_radial.posteriors.gaussian import Gaussian


class LowRank(Posterior):
    """Gaussian with correlations of rank R within a group, w = mean + scale * z, z ~ N(0, C).

    KL to another one, and to a mean-field Gaussian, is exact; to any other prior it is a
    Monte-Carlo estimate. A draw, a density and a KL take O(D R^2) operations.

    Args:
        mean: Location, shape [..., D].
        scale: Positive scale of the same dtype, broadcast with the mean: the standard deviation of
            a weight where the factor is 0.
        factor: U, shape [..., R, D], of the same dtype; None for R = 0, the mean-field Gaussian.

    Raises:
        UserError: If shapes, dtypes or devices do not fit together.
    """

    uncorrelated = False

    def __init__(self, mean: Tensor, scale: Tensor, factor: Tensor | None = None) -> None:
        super().__init__(mean, scale)
        mean = self.mean
        self.factor = _no_factor(mean) if factor is None else factor
        if self.factor.dtype != mean.dtype or self.factor.device != mean.device:
            raise UserError(
                f"factor must have the dtype and device of the mean, {mean.dtype} on "
                f"{mean.device}, got {self.factor.dtype} on {self.factor.device}"
            )
        *batch, D = self.mean.shape
        *of_factor, last = self.factor.shape
        if of_factor[:-1] != batch or len(of_factor) != self.mean.ndim or last != D:
            raise UserError(
                f"factor must have the shape of the mean, {[*mean.shape]}, with the rank before "
                f"its last axis, got {[*self.factor.shape]}"
            )
        self._known_root: Tensor | None = None

    @property
    def rank(self) -> int:
        """R, the number of rows of the factor."""
        return self.factor.shape[-2]

    @classmethod
    def scale_for_weight_noise(cls, tau: Scale, D: int) -> Scale:
        """Tau itself, which is exact where the factor is 0."""
        return tau

    def noise(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times z ~ N(0, C), shape [n, ..., D]; at a factor of 0 the Gaussian's noise."""
        with torch.no_grad():
            return self._correlated(self._randn((n, *self.mean.shape), generator))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times w = mean + scale * S noise, reparameterised, factor included."""
        normal = self._randn((n, *self.mean.shape), generator)
        return torch.addcmul(self.mean, self.scale, self._correlated(normal))

    def log_prob(self, w: Tensor) -> Tensor:
        """Log density in nats over the last axis.

        log q(w) = -(||z||^2 + ||U'z||^2 - log det M) / 2 - sum log scale - D/2 log(2 pi)
        z = (w - mean) / scale
        """
        z = self._standardise(w).double()
        along = torch.einsum("...d,...rd->...r", z, self.factor.double())
        squared = z.square().sum(-1) + along.square().sum(-1)
        constant = self.group_size / 2 * math.log(2 * math.pi)
        log_q = (self._log_det() - squared) / 2 - self._sum_log_scale() - constant
        return log_q.to(w.dtype)

    def entropy(self) -> Tensor:
        """Entropy in nats: sum log scale + D/2 (1 + log(2 pi)) - 1/2 log det M; shape [...]."""
        constant = self.group_size / 2 * (1 + math.log(2 * math.pi))
        return (self._sum_log_scale() + constant - self._log_det() / 2).to(self.scale.dtype)

    def deviation(self) -> Tensor:
        """The standard deviation of each weight, scale * sqrt(C_ii), shape [..., D]."""
        halves: Tensor = solve_triangular(self._root(), self.factor.double(), upper=False)
        variance = (1 - halves.square().sum(-2)).clamp(min=torch.finfo(torch.float64).eps)
        return self.scale * variance.sqrt().to(self.scale.dtype)

    def closed_kl(self, prior: Prior) -> Tensor | None:
        """To a posterior of this kind or a mean-field Gaussian: see `low_rank_kl`."""
        if isinstance(prior, LowRank):
            theirs = prior.factor
        elif isinstance(prior, Gaussian):
            theirs = _no_factor(prior.mean)
        else:
            return None
        a, s = self._in_units_of(prior)
        return low_rank_kl(a, s, self.factor, theirs)

    def to_prior(self) -> Self:
        """The same distribution as a copy of its own, without gradient: the next task's prior."""
        mean, scale, factor = (t.detach().clone() for t in (self.mean, self.scale, self.factor))
        return type(self)(mean, scale, factor)

    def _root(self) -> Tensor:
        """L of M = L L', lower triangular, in float64; shape [..., R, R]."""
        if torch.is_grad_enabled():  # a graph serves one backward pass, and is not kept
            return _cholesky(_gram(self.factor))
        if self._known_root is None:
            self._known_root = _cholesky(_gram(self.factor))
        return self._known_root

    def _log_det(self) -> Tensor:
        """Log det M in float64, shape [...]."""
        return _log_det(self._root())

    def _correlated(self, normal: Tensor) -> Tensor:
        """S e for standard normals e, shape [n, ..., D]."""
        root = self._root()
        inner = solve_triangular(root + _identity(root), _identity(root), upper=False)
        K: Tensor = solve_triangular(root.mT, inner, upper=True).to(normal.dtype)
        # Whatever the precision of the network's products, these are the posterior's.
        with torch.autocast(normal.device.type, enabled=False):
            rows = normal.movedim(0, -2)
            return normal - (rows @ self.factor.mT @ K.mT @ self.factor).movedim(-2, 0)


def low_rank_kl(a: Tensor, s: Tensor, U: Tensor, V: Tensor) -> Tensor:
    """KL between two low-rank Gaussians of one group size, in nats, exact; shape [...].

    With the posterior's M = I + U U' = L L' and C = I - U' M^-1 U, and with F = V - U, e = s - 1,
    E = V diag(s) - U = V diag(e) + F and X = L^-1 (V V' - U U') L'^-1,

        2 KL = sum(a^2 + s^2 - 1 - 2 log s) + ||V a||^2
               + sum_i e_i (2 d_i - e_i h_i) + tr E C E' + (tr X - log det(I + X) - ||L^-1 F||^2)

        h_i = u_i' M^-1 u_i,    d_i = f_i' M^-1 u_i

    which is tr(P_p P^-1) - D + log det P - log det P_p, with the terms put together so that each
    is of second order in a, e and F: at the prior the value and the gradient are exactly 0. The
    first sum is the mean-field Gaussian's, and all that there is at U = V = 0. The gradient is in
    closed form too (`_Divergence`), in a fifth of the time of autograd; it has no second one.

    Args:
        a: shift (mean - mean_p) / scale_p, shape [..., D].
        s: ratio scale / scale_p, shape [..., D].
        U: the posterior's factor, shape [..., R, D].
        V: the prior's, shape [..., R_p, D]; it is held.
    """
    rank = max(U.shape[-2], V.shape[-2])
    a, s = torch.broadcast_tensors(a, s)  # type: ignore[no-untyped-call]
    shape = (*a.shape[:-1], rank, a.shape[-1])
    factors = (pad(W, (0, 0, 0, rank - W.shape[-2])).expand(shape) for W in (U, V.detach()))
    with torch.autocast(a.device.type, enabled=False):
        divergence: Tensor = _Divergence.apply(a, s, *factors)
    return divergence


class _Divergence(torch.autograd.Function):
    """The divergence of `low_rank_kl`, and its gradient with T = M^-1 U and B = T E'.

        dKL/da = a + V'V a,    dKL/ds_i = s_i - 1/s_i + d_i - e_i h_i + v_i'(E_i - B'u_i)
        dKL/dU = -Y C,    Y = T diag(s^2 - 1) + (B + I - M^-1) E + B U = T (P_p - P)

    with the precisions in the posterior's scales.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, s: Tensor, U: Tensor, V: Tensor) -> Tensor:
        e, F = s - 1, V - U
        E = torch.addcmul(F, e.unsqueeze(-2), V)
        gram = _gram(U)
        root = _cholesky(gram)
        inverse = torch.cholesky_inverse(root)
        T = inverse.to(U) @ U
        h, d = (T * U).sum(-2), (T * F).sum(-2)
        B, along = T @ E.mT, (V @ a.unsqueeze(-1)).squeeze(-1)
        X = solve_triangular(root, _gram(V) - gram, upper=False)
        X = solve_triangular(root, X.mT, upper=False)
        volume = X.diagonal(dim1=-2, dim2=-1).sum(-1) - _log_det(_cholesky(X))
        of_b = (root.mT @ B.double()).square().sum((-2, -1))
        mean_field = (a.square() + (s - 1) * (s + 1) - 2 * s.log()).sum(-1, dtype=torch.float64)
        twice = (
            mean_field
            + along.square().sum(-1)
            + (e * (2 * d - e * h)).sum(-1, dtype=torch.float64)
            + (E.square().sum((-2, -1), dtype=torch.float64) - of_b)
            + (volume - (inverse * (F @ F.mT)).sum((-2, -1)))
        )
        if any(ctx.needs_input_grad):
            of_s = (s - s.reciprocal()) + d - e * h + (V * (E - B.mT @ U)).sum(-2)
            inner = B + (_identity(inverse) - inverse).to(B)
            Y = (T * (e * (s + 1)).unsqueeze(-2)).add_(inner @ E).add_(B @ U)
            of_a = a + (along.unsqueeze(-2) @ V).squeeze(-2)
            ctx.save_for_backward(of_a, of_s, (Y @ U.mT) @ T - Y)
        divergence: Tensor = (twice / 2).to(s.dtype)
        return divergence

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        of_a, of_s, of_u = ctx.saved_tensors
        groups = grad.unsqueeze(-1)
        return of_a * groups, of_s * groups, of_u * groups.unsqueeze(-1), None


def _gram(factor: Tensor) -> Tensor:
    """U U' in float64, shape [..., R, R]: its rounding must not make M indefinite."""
    factor = factor.double()
    return factor @ factor.mT


def _no_factor(mean: Tensor) -> Tensor:
    """A factor of rank 0 for this mean."""
    return mean.new_zeros(*mean.shape[:-1], 0, mean.shape[-1])


def _identity(like: Tensor) -> Tensor:
    return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device).expand_as(like)


def _cholesky(matrix: Tensor) -> Tensor:
    """L of I + matrix = L L'."""
    root: Tensor = torch.linalg.cholesky(matrix + _identity(matrix))
    return root


def _log_det(root: Tensor) -> Tensor:
    """Of L L'."""
    return 2 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
