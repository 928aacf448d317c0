"""The radial posterior of Farquhar, Osborne and Gal (AISTATS 2020), with all its constants.

Appendix B of the paper prints constants (Eqs. 30 and 39) that do not belong to this density: with
unit scales they give an entropy of -5.28 nats at D = 2, but the correct value is 1.93. Eq. 26 is
not normalised, because it takes the radius as a Gaussian on r >= 0, and Eq. 29 adds the integrals
over the radius and the angles, which must be multiplied. These constants do not change the
gradient. The Jacobian term that Appendix C leaves out does change it: see `radial_kl`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from vcl_radial.posteriors.base import Posterior, Prior, Scale
from vcl_radial.posteriors.gaussian import Gaussian
from vcl_radial.posteriors.log_radius import EXPECTED_LOG_RADIUS
from vcl_radial.posteriors.radial_kl import radial_kl, radial_kl_gradients


class Radial(Posterior):
    """Radial family, w = mean + scale * u * r.

    The direction u is uniform on the unit sphere and the radius is r ~ N(0, 1) (Eq. 3).

    A group of D weights shares one radius r, which keeps draws near the mean however large D is.
    The noise of one weight has standard deviation scale / sqrt(D). At D = 1 this is a Gaussian.

    KL to a Gaussian prior is exact. KL to a radial prior is the corrected closed form of
    `radial_kl`, accurate to second order. KL to any other prior is a Monte-Carlo estimate. Do not
    use
    `kl_monte_carlo` with a radial prior for training: one draw has a standard deviation of about
    1.1 D nats, and its gradient has infinite variance.
    """

    name = "radial"
    has_lanes = True

    @classmethod
    def scale_for_weight_noise(cls, tau: Scale, D: int) -> Scale:
        """The scale is tau sqrt(D), since E u_i^2 = 1/D."""
        return tau * math.sqrt(D)

    def noise(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times u * r, one direction and one radius for each group, shape [n, ..., D]."""
        return radial_noise(self, n, generator)

    def log_prob(self, w: Tensor) -> Tensor:
        """Log density in nats over the last axis; at the mean it is +inf for D > 1.

        log q(w) = -||z||^2 / 2 - (D - 1) log ||z|| - sum log scale + log sqrt(2/pi) - log S_D
        z = (w - mean) / scale,   S_D = 2 pi^(D/2) / Gamma(D/2), the area of the unit sphere
        """
        D = self.group_size
        norm: Tensor = torch.linalg.vector_norm(self._standardise(w), dim=-1, dtype=torch.float64)
        log_q = -norm.square() / 2 - self._sum_log_scale() + log_normaliser(D)
        if D > 1:  # 0 * log 0 counts as 0, with a gradient of 0
            log_q = log_q - (D - 1) * norm.log()
        return log_q.to(w.dtype)

    def entropy(self) -> Tensor:
        """Entropy in nats, shape [...].

        H = sum log scale + 1/2 - (D - 1)(gamma + log 2)/2 - log sqrt(2/pi) + log S_D
        """
        return (self._sum_log_scale() + unit_entropy(self.group_size)).to(self.scale.dtype)

    @classmethod
    def kl_gradients(
        cls, prior: type[Posterior], pairs: Sequence[tuple[Tensor, Tensor]]
    ) -> list[tuple[Tensor, Tensor]] | None:
        """Gaussian prior: dKL/da = a, dKL/ds = s/D - 1/s; radial prior: `radial_kl_gradients`."""
        if issubclass(prior, Radial):
            return radial_kl_gradients(pairs)
        return quadratic_gradients(pairs) if issubclass(prior, Gaussian) else None

    def closed_kl(self, prior: Prior) -> Tensor | None:
        """KL to a Gaussian or a radial prior, as the class describes."""
        if isinstance(prior, Radial):
            return self._kl_to_radial(prior)
        if isinstance(prior, Gaussian):
            return self._kl_to_gaussian(prior)
        return None

    def _kl_to_gaussian(self, prior: Gaussian) -> Tensor:
        """-sum log s + (||a||^2 + mean(s^2)) / 2 + constants, exact."""
        D = self.group_size
        a, s = self._in_units_of(prior)
        squares = a.square().sum(-1, dtype=torch.float64) + s.square().mean(-1, dtype=torch.float64)
        constant = D / 2 * math.log(2 * math.pi) - unit_entropy(D)
        return (squares / 2 - s.log().sum(-1, dtype=torch.float64) + constant).to(a.dtype)

    def _kl_to_radial(self, prior: Radial) -> Tensor:
        """The corrected closed form, to second order; see `radial_kl`."""
        a, s = self._in_units_of(prior)
        return radial_kl(a, s)


def radial_noise(q: Posterior, n: int, generator: torch.Generator | None = None) -> Tensor:
    """Draw n times u * r, one direction and one radius for each group, shape [n, ..., D]."""
    direction = q._randn((n, *q.mean.shape), generator)
    radius = q._randn((n, *q.mean.shape[:-1], 1), generator)
    norm: Tensor = torch.linalg.vector_norm(direction, dim=-1, keepdim=True)
    # At D = 1 a float32 draw can be exactly 0, and must not become 0 / 0.
    return direction.mul_(radius / norm.clamp(min=torch.finfo(norm.dtype).tiny))


def quadratic_gradients(pairs: Sequence[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
    """Gradients of -sum log s + (||a||^2 + mean(s^2)) / 2: a and s/D - 1/s."""
    return [(a, s.div(s.shape[-1]).sub_(s.reciprocal())) for a, s in pairs]


def unit_entropy(D: int) -> float:
    """The entropy of a group of unit scales, in nats: 1/2 + (D - 1) E log |r| - log normaliser."""
    return 0.5 + (D - 1) * EXPECTED_LOG_RADIUS - log_normaliser(D)


def log_normaliser(D: int) -> float:
    """The log normaliser: log sqrt(2/pi) - log S_D."""
    log_area = math.log(2) + D / 2 * math.log(math.pi) - math.lgamma(D / 2)
    return math.log(2 / math.pi) / 2 - log_area
