"""The von Mises-Fisher distribution of directions, on the unit sphere in D >= 2 dimensions."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vcl_radial.errors import UserError
from vcl_radial.posteriors.bessel import (
    bessel_ratio,
    ratio_and_slope,
    ratio_excess,
    ratio_over_x,
)
from vcl_radial.posteriors.transforms import apply
from vcl_radial.posteriors.vmf_angle import draw_angle, with_gradient

_NEWTON_STEPS = 12


class VonMisesFisher:
    """Directions about a mean direction, p(x) = C_D(kappa) exp(kappa mu'x), ||x|| = 1.

        C_D(kappa) = kappa^v / ((2 pi)^(D/2) I_v(kappa)),    v = D/2 - 1
        E x = A(kappa) mu,    A(kappa) = I_(D/2)(kappa) / I_(D/2 - 1)(kappa)

    At kappa = 0 it is uniform; at large kappa the tangent coordinates are N(0, 1 / kappa). Numbers
    per group are float64 (see `vcl_radial.posteriors.bessel`).

    Args:
        mean_direction: mu, unit vectors, shape [..., D]. Their length is not checked.
        concentration: kappa >= 0, which broadcasts to the groups [...].

    Raises:
        UserError: If D < 2.
    """

    def __init__(self, mean_direction: Tensor, concentration: Tensor) -> None:
        if mean_direction.ndim == 0 or mean_direction.shape[-1] < 2:
            raise UserError(
                f"mean_direction {list(mean_direction.shape)} needs a last axis of at least two "
                "weights: a single one has no direction"
            )
        self.mean_direction = mean_direction
        self.concentration = concentration.double()

    @property
    def group_size(self) -> int:
        """D, the dimension."""
        return self.mean_direction.shape[-1]

    def mean_length(self) -> Tensor:
        """A(kappa) = ||E x||, shaped like the concentration."""
        return bessel_ratio(self.group_size / 2, self.concentration)

    def mean(self) -> Tensor:
        """E x = A(kappa) mu, shape [..., D]."""
        return self.mean_length().unsqueeze(-1).to(self.mean_direction.dtype) * self.mean_direction

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times x = cos(theta) mu + sin(theta) u, reparameterised; shape [n, ..., D].

        `draw_angle` draws theta. The tangent u is uniform on the sphere orthogonal to mu and turns
        with mu, so that a change of mu rotates the draw.
        """
        mu = self.mean_direction
        shape = n, *mu.shape[:-1]
        angle = draw_angle(shape, self.concentration, self.group_size, generator)
        normal = torch.randn((n, *mu.shape), generator=generator, dtype=mu.dtype, device=mu.device)
        return self.at(angle, normal)

    def at(self, angle: Tensor, normal: Tensor) -> Tensor:
        """The draws from this angle and normal noise, see `sample`; shape [n, ..., D].

        Args:
            angle: angles from `draw_angle`, [n, ...].
            normal: standard normal noise of the tangents, [n, ..., D]; it is overwritten.
        """
        mu = self.mean_direction
        theta = with_gradient(angle, self.concentration, self.group_size).to(mu.dtype)
        draw: Tensor = apply(_AtAngle, mu, theta.unsqueeze(-1), _tangent(normal, mu.detach()))
        return draw

    def log_prob(self, x: Tensor) -> Tensor:
        """Log density on the sphere in nats of unit vectors x [(samples,) ..., D]; float64.

        log p(x) = log C_D(kappa) + kappa - kappa ||x - mu||^2 / 2
        """
        distance2 = (x - self.mean_direction).square().sum(-1, dtype=torch.float64)
        return self._log_normaliser() + self.concentration * (1 - distance2 / 2)

    def entropy(self) -> Tensor:
        """Entropy -log C_D(kappa) - kappa A(kappa) in nats, shaped like kappa; float64."""
        return -self._log_normaliser() - self.concentration * self.mean_length()

    def kl(self, prior: VonMisesFisher) -> Tensor:
        """KL(self || prior) in nats, float64, shape [...]; the prior gets no gradient in kappa_p.

        int_kappa^kappa_p (A(t) - A(kappa)) dt + kappa_p A(kappa) ||mu - mu_p||^2 / 2

        This is Eq. 46 of Oh et al. 2020 rearranged: no term is negative and nothing cancels at
        q = p, however large kappa is.
        """
        if prior.group_size != self.group_size:
            raise UserError(
                f"posterior and prior must have groups of one size, got {self.group_size} and "
                f"{prior.group_size} weights"
            )
        distance2 = (self.mean_direction - prior.mean_direction).square()
        divergence: Tensor = apply(
            _Divergence,
            self.group_size / 2,
            self.concentration,
            prior.concentration,
            distance2.sum(-1, dtype=torch.float64) / 2,
        )
        return divergence

    def _log_normaliser(self) -> Tensor:
        """The normaliser log C_D(kappa) = -log S_D - int_0^kappa A(t) dt, S_D the sphere's area."""
        D, kappa = self.group_size, self.concentration
        log_area = math.log(2) + D / 2 * math.log(math.pi) - math.lgamma(D / 2)
        return -log_area - ratio_excess(D / 2, torch.zeros_like(kappa), kappa)


def concentration_for_variance(variance: float, D: int) -> float:
    """The kappa at which each tangent coordinate of x / A(kappa) has this variance, above 0.

    The mean of x / A(kappa) has length 1; the variance is 1 / (kappa A(kappa)). A(kappa) / kappa is
    near 1 / (D + e) with kappa^2 = e (e + D + 1), the algebraic lower bound of Ruiz-Antolin and
    Segura 2016 (Theorem 4); iteration corrects e until the variance is exact.
    """
    target = 1 / variance
    b = target - D - 1
    root = math.sqrt(b * b + 4 * target * D)
    # The larger root of e^2 - b e - D wanted = 0; each form is exact where the other cancels.
    e = (b + root) / 2 if b > 0 else 2 * target * D / (root - b)
    for _ in range(8):
        kappa2 = e * (e + D + 1)
        kappa = torch.tensor(math.sqrt(kappa2), dtype=torch.float64)
        e *= target / (kappa2 * ratio_over_x(D / 2, kappa).item())
    return math.sqrt(e * (e + D + 1))


@lru_cache(maxsize=256)
def concentration_for_length(length: float, D: int) -> float:
    """The kappa with A_D(kappa) = length, the length of the mean direction; 0 is uniform.

    Newton's method starts at kappa = A (D - A^2) / (1 - A^2) (Banerjee et al. 2005, Eq. 4.4).

    Raises:
        UserError: If the length is not in [0, 1).
    """
    if not 0 <= length < 1:
        raise UserError(
            f"the length of a mean direction = {length} must be at least 0 and below 1: 0 is "
            "uniform, 1 would be a point"
        )
    if length == 0:
        return 0.0
    kappa = length * (D - length**2) / (1 - length**2)
    for _ in range(_NEWTON_STEPS):
        ratio, slope = ratio_and_slope(D / 2, torch.tensor(kappa, dtype=torch.float64))
        # The step is in log kappa, so that kappa stays positive.
        kappa *= math.exp((length - ratio.item()) / (kappa * slope.item()))
    return kappa


def _tangent(normal: Tensor, mu: Tensor) -> Tensor:
    """Unit vectors along the part of `normal` orthogonal to mu; overwrites `normal`."""
    tangent = normal.addcmul_((normal * mu).sum(-1, keepdim=True), mu, value=-1)
    length: Tensor = torch.linalg.vector_norm(tangent, dim=-1, keepdim=True)
    return tangent.div_(length.clamp_(min=torch.finfo(length.dtype).tiny))


class _AtAngle(torch.autograd.Function):
    """cos(theta) mu + sin(theta) u, where a change of mu by d turns u by -(u'd) mu."""

    @staticmethod
    def forward(ctx: Any, mu: Tensor, angle: Tensor, tangent: Tensor) -> Tensor:
        ctx.save_for_backward(mu, angle.cos(), angle.sin(), tangent)
        return (angle.cos() * mu).addcmul_(angle.sin(), tangent)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        mu, cos, sin, tangent = ctx.saved_tensors
        along = (grad * mu).sum(-1, keepdim=True)
        across = (grad * tangent).sum(-1, keepdim=True)
        grad_mu = (cos * grad).addcmul_(sin * along, tangent, value=-1)
        return grad_mu.sum_to_size(mu.shape), cos * across - sin * along, None


class _Divergence(torch.autograd.Function):
    """The divergence as a function of h = ||mu - mu_p||^2 / 2, and its gradients.

    d / d kappa = A'(kappa) (kappa - kappa_p (1 - h)),    d / dh = kappa_p A(kappa)
    """

    @staticmethod
    def forward(ctx: Any, v: float, kappa: Tensor, kappa_p: Tensor, h: Tensor) -> Tensor:
        ratio, slope = ratio_and_slope(v, kappa)
        ctx.save_for_backward(kappa, kappa_p, h, ratio, slope)
        return ratio_excess(v, kappa, kappa_p) + kappa_p * ratio * h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None, Tensor]:
        kappa, kappa_p, h, ratio, slope = ctx.saved_tensors
        grad_kappa = grad * slope * (kappa - kappa_p + kappa_p * h)
        return (
            None,
            grad_kappa.sum_to_size(kappa.shape),
            None,
            (grad * kappa_p * ratio).sum_to_size(h.shape),
        )
