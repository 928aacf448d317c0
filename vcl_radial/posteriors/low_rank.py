"""A Gaussian posterior whose precision is low rank plus diagonal.

    q(w) = N(mean, P^-1),    P = diag(1 / scale^2) + (U / scale)' (U / scale)

The noise e of `vcl_radial.posteriors.correlated` is normal: z = (w - mean) / scale ~ N(0, C). At
U = 0 this is the mean-field Gaussian.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.linalg import solve_triangular
from torch.nn.functional import pad

from vcl_radial.posteriors.base import Prior, Scale
from vcl_radial.posteriors.correlated import (
    Correlated,
    cholesky,
    gram,
    identity,
    log_det,
    no_factor,
)
from vcl_radial.posteriors.gaussian import Gaussian
from vcl_radial.posteriors.transforms import apply


class LowRank(Correlated):
    """Gaussian with correlations of rank R within a group, w = mean + scale * z, z ~ N(0, C).

    KL to this family and to a mean-field Gaussian is exact; to any other prior it is a Monte-Carlo
    estimate. A draw, a density and a KL take O(D R^2) operations.

    Args:
        mean: Location, shape [..., D].
        scale: Positive scale of the same dtype, broadcast with the mean; the standard deviation of
            a weight where the factor is 0.
        factor: U, shape [..., R, D], of the same dtype; None for R = 0, the mean-field Gaussian.

    Raises:
        UserError: If shapes, dtypes or devices do not fit together.
    """

    name = "low-rank"

    @classmethod
    def scale_for_weight_noise(cls, tau: Scale, D: int) -> Scale:
        """The scale is tau, which is exact where the factor is 0."""
        return tau

    def white_noise(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times standard normals, shape [n, ..., D]."""
        return self._randn((n, *self.mean.shape), generator)

    def log_prob(self, w: Tensor) -> Tensor:
        """Log density in nats over the last axis.

        log q(w) = -(||z||^2 + ||U z||^2 - log det M) / 2 - sum log scale - D/2 log(2 pi)
        z = (w - mean) / scale
        """
        constant = self.group_size / 2 * math.log(2 * math.pi)
        squares = self._squared_norm(w)
        log_q = (self._log_det() - squares) / 2 - self._sum_log_scale() - constant
        return log_q.to(w.dtype)

    def entropy(self) -> Tensor:
        """Entropy in nats: sum log scale + D/2 (1 + log(2 pi)) - 1/2 log det M; shape [...]."""
        constant = self.group_size / 2 * (1 + math.log(2 * math.pi))
        return (self._sum_log_scale() + constant - self._log_det() / 2).to(self.scale.dtype)

    def closed_kl(self, prior: Prior) -> Tensor | None:
        """KL to this family or a mean-field Gaussian; see `low_rank_kl`."""
        if isinstance(prior, LowRank):
            prior_factor = prior.factor
        elif isinstance(prior, Gaussian):
            prior_factor = no_factor(prior.mean)
        else:
            return None
        a, s = self._in_units_of(prior)
        return low_rank_kl(a, s, self.factor, prior_factor)


def low_rank_kl(a: Tensor, s: Tensor, U: Tensor, V: Tensor) -> Tensor:
    """KL between two low-rank Gaussians of one group size, in nats, exact; shape [...].

    With the posterior's M = I + U U' = L L' and C = I - U' M^-1 U, and with F = V - U, e = s - 1,
    E = V diag(s) - U = V diag(e) + F and X = L^-1 (V V' - U U') L'^-1,

        2 KL = sum(a^2 + s^2 - 1 - 2 log s) + ||V a||^2
               + sum_i e_i (2 d_i - e_i h_i) + tr E C E' + (tr X - log det(I + X) - ||L^-1 F||^2)

        h_i = u_i' M^-1 u_i,    d_i = f_i' M^-1 u_i

    which is tr(P_p P^-1) - D + log det P - log det P_p, with the terms grouped so that all are of
    second order in a, e and F: at the prior the value and the gradient are exactly 0. The first
    sum is the KL of mean-field Gaussians, and the others are 0 at U = V = 0. The gradient has a
    closed form too (`_Divergence`), which takes a fifth of the time of autograd. It cannot be
    differentiated twice.

    Args:
        a: shift (mean - mean_p) / scale_p, shape [..., D].
        s: ratio scale / scale_p, shape [..., D].
        U: the posterior's factor, shape [..., R, D].
        V: the prior's factor, shape [..., R_p, D]; it gets no gradient.
    """
    return low_rank_kl_and_excess(a, s, U, V)[0]


def low_rank_kl_and_excess(a: Tensor, s: Tensor, U: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
    """`low_rank_kl`, and the excess width in units of the prior; both have shape [...].

    tr(P_p P^-1) - D = sum(e (s + 1)) + sum_i e_i (2 d_i - e_i h_i) + tr E C E' + 2 sum_i d_i
    """
    rank = max(U.shape[-2], V.shape[-2])
    a, s = torch.broadcast_tensors(a, s)  # type: ignore[no-untyped-call]
    with torch.autocast(a.device.type, enabled=False):
        kl, excess = apply(_Divergence, a, s, pad_rank(U, rank, a), pad_rank(V.detach(), rank, a))
    return kl, excess


def pad_rank(factor: Tensor, rank: int, like: Tensor) -> Tensor:
    """Pad a factor with rows of 0 up to a rank and expand it to the groups of a tensor [..., D]."""
    rows = pad(factor, (0, 0, 0, rank - factor.shape[-2]))
    return rows.expand(*like.shape[:-1], rank, like.shape[-1])


class _Divergence(torch.autograd.Function):
    """`low_rank_kl_and_excess` and its gradients, with T = M^-1 U and B = T E'.

        dKL/da = a + V'V a,    dKL/ds_i = s_i - 1/s_i + d_i - e_i h_i + v_i'(E_i - B'u_i)
        dKL/dU = -Y C,    Y = T diag(s^2 - 1) + (B + I - M^-1) E + B U = T (P_p - P)

    with the precisions in units of the posterior's scales. Half the excess is the KL without its
    logarithms and shifts: its gradients are dKL/ds + 1/s and dKL/dU - T.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, s: Tensor, U: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        e, F = s - 1, V - U
        E = torch.addcmul(F, e.unsqueeze(-2), V)
        products = gram(U)
        root = cholesky(products)
        inverse = torch.cholesky_inverse(root)
        T = inverse.to(U) @ U
        h, d = (T * U).sum(-2), (T * F).sum(-2)
        B, along = T @ E.mT, (V @ a.unsqueeze(-1)).squeeze(-1)
        X = solve_triangular(root, gram(V) - products, upper=False)
        X = solve_triangular(root, X.mT, upper=False)
        volume = X.diagonal(dim1=-2, dim2=-1).sum(-1) - log_det(cholesky(X))
        correction = (root.mT @ B.double()).square().sum((-2, -1))
        mean_field = (a.square() + (s - 1) * (s + 1) - 2 * s.log()).sum(-1, dtype=torch.float64)
        mixed = (e * (2 * d - e * h)).sum(-1, dtype=torch.float64)
        trace = E.square().sum((-2, -1), dtype=torch.float64) - correction
        double_kl = (
            mean_field
            + along.square().sum(-1)
            + mixed
            + trace
            + (volume - (inverse * (F @ F.mT)).sum((-2, -1)))
        )
        excess = (e * (s + 1) + 2 * d).sum(-1, dtype=torch.float64) + mixed + trace
        if any(ctx.needs_input_grad):
            grad_s = (s - s.reciprocal()) + d - e * h + (V * (E - B.mT @ U)).sum(-2)
            inner = B + (identity(inverse) - inverse).to(B)
            Y = (T * (e * (s + 1)).unsqueeze(-2)).add_(inner @ E).add_(B @ U)
            grad_a = a + (along.unsqueeze(-2) @ V).squeeze(-2)
            ctx.save_for_backward(grad_a, grad_s, (Y @ U.mT) @ T - Y, s, T)
        return (double_kl / 2).to(s.dtype), excess.to(s.dtype)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_kl: Tensor | None, grad_excess: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        grad_a, grad_s, grad_u, s, T = ctx.saved_tensors
        grads: list[Tensor | None] = [None, None, None]
        if grad_kl is not None:
            group = grad_kl.unsqueeze(-1)
            grads = [grad_a * group, grad_s * group, grad_u * group.unsqueeze(-1)]
        if grad_excess is not None:
            group = 2 * grad_excess.unsqueeze(-1)
            excess = (grad_s + s.reciprocal()) * group, (grad_u - T) * group.unsqueeze(-1)
            pairs = zip(grads[1:], excess, strict=True)
            grads[1:] = [extra if grad is None else grad + extra for grad, extra in pairs]
        return *grads, None
