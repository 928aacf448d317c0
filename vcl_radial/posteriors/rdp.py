"""The radial and directional posterior (RDP) of Oh, Adamczewski and Park (2020)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from vcl_radial.errors import UserError
from vcl_radial.posteriors.base import Family
from vcl_radial.posteriors.log_normal_radius import LogNormal
from vcl_radial.posteriors.radius_factors import RadiusFactors
from vcl_radial.posteriors.transforms import refuse, transformed
from vcl_radial.posteriors.vmf_angle import draw_angle
from vcl_radial.posteriors.von_mises_fisher import VonMisesFisher, concentration_for_length

Generators: TypeAlias = torch.Generator | Sequence[torch.Generator] | None
"""One generator, or one per entry of the first axis, so that its draws depend on it alone."""


@dataclass(frozen=True)
class HalfCauchyPrior:
    """The paper's prior: r_g = s z_g, s ~ C+(scale), z_g ~ C+(1), and von Mises-Fisher directions.

    This prior has the mean directions of the posterior (supplement, section 4), so that only the
    concentrations differ. The prior's concentration kappa_p follows from A_D(kappa_p), the length
    of the mean direction: one length gives the same spread in groups of any size D. At length 0 the
    directions are uniform, and this is a prior in the strict sense.

    Attributes:
        scale: scale of the layer's half-Cauchy s; a smaller one makes the layer sparser.
        length: A_D(kappa_p), the length of the mean direction, in [0, 1).
    """

    scale: float = 1.0
    length: float = 0.0

    def concentration(self, D: int) -> float:
        """The concentration kappa_p of groups of D weights."""
        return concentration_for_length(self.length, D)


class RDPNoise(NamedTuple):
    """The random numbers of n draws of an `RDP`."""

    factors: Tensor
    """standard noise of log a_g, log b_g, log a and log b: `[n, ..., 2, groups + 1]`"""
    angle: Tensor
    """angle between each direction and its mean, `[n, ..., groups]`; depends on the
    concentration"""
    normal: Tensor
    """standard normal noise of the tangents: `[n, ..., groups, D]`"""


class RDP(Family):
    """Groups of weights by radius and direction, w_g = r_g x_g (Eqs. 2 to 10).

        x_g ~ vMF(mu_g, kappa)
        r_g^2 = a b a_g b_g,    (a, b) the layer's, (a_g, b_g) the group's

    All four are log-normal in the paper (`log_normal_radius`); they may be Weibull
    (`weibull_radius`), whose divergence the paper lists too.

    The last axis of mu, shape [..., groups, D], is one group. The groups share kappa and the
    layer's factors, so they are not independent. With a carried posterior as the prior, the joint
    divergence of x, a, b, a_g and b_g has a closed form. Leading axes are a batch of independent
    layers.

    Args:
        direction: mean directions [..., groups, D] and one concentration, [..., 1] or a scalar.
        factors: factors of the squared radii, shape [..., 2, groups + 1].

    Raises:
        UserError: If the shapes do not fit together.
    """

    name = "rdp"
    groupings = ("row", "column", "double")
    options = frozenset({"prior_length", "radius"})

    def __init__(self, direction: VonMisesFisher, factors: RadiusFactors) -> None:
        *batch, groups, _ = direction.mean_direction.shape
        if factors.loc.shape != (*batch, 2, groups + 1):
            raise UserError(
                f"factors of {groups} groups must have the shape {[*batch, 2, groups + 1]}, got "
                f"{list(factors.loc.shape)}"
            )
        self.direction = direction
        self.factors = factors

    def sample(self, n: int, generator: Generators = None) -> Tensor:
        """Draw n times w, reparameterised; shape [n, ..., groups, D]."""
        return self.at(self.noise(n, generator))

    @torch.no_grad()
    def noise(self, n: int, generator: Generators = None) -> RDPNoise:
        """Draw the random numbers of n draws.

        Raises:
            UserError: A transform of `torch.func` is active; rejection sampling must look at
                values.
        """
        if transformed():
            refuse()
        mu, kappa = self.direction.mean_direction, self.direction.concentration
        factors = _drawn(n, self.factors.loc, generator, self.factors.noise)
        batch, D = mu.shape[:-1], mu.shape[-1]
        if isinstance(generator, Sequence):
            shape = batch[0], n, *batch[1:]
            angle = draw_angle(shape, kappa.unsqueeze(1), D, generator).transpose(0, 1)
        else:
            angle = draw_angle((n, *batch), kappa, D, generator)
        return RDPNoise(factors, angle, _drawn(n, mu, generator, LogNormal.noise))

    def at(self, noise: RDPNoise) -> Tensor:
        """The draws from this noise, shape [n, ..., groups, D]; its normals are overwritten."""
        log_squares = torch.addcmul(self.factors.loc, self.factors.scale, noise.factors)
        log_radius = log_squares.sum(-2) / 2
        radius = (log_radius[..., :-1] + log_radius[..., -1:]).exp()
        return radius.unsqueeze(-1) * self.direction.at(noise.angle, noise.normal)

    def mean(self) -> Tensor:
        """E w_g = E r_g A(kappa) mu_g, shape [..., groups, D]."""
        return self.factors.mean_radius().unsqueeze(-1) * self.direction.mean()

    def kl(self, prior: RDP | HalfCauchyPrior) -> Tensor:
        """The joint KL(self || prior) of all groups in closed form, in nats; shape [...]."""
        if isinstance(prior, RDP):
            directions = self.direction.kl(prior.direction)
            factors = self.factors.kl(prior.factors).flatten(-2)
        else:
            mu, kappa = self.direction.mean_direction, self.direction.concentration
            kappa_p = prior.concentration(self.direction.group_size)
            directions = self.direction.kl(VonMisesFisher(mu, torch.full_like(kappa, kappa_p)))
            factors = self.factors.kl_to_half_cauchy(prior.scale)
        divergence = directions.sum(-1) + factors.sum(-1, dtype=torch.float64)
        return divergence.to(self.factors.loc.dtype)


def _drawn(n: int, like: Tensor, generator: Generators, noise: Callable[..., Tensor]) -> Tensor:
    """Draw noise `[n, ...]`, n for each entry of `[...]`."""

    def draw(shape: Sequence[int], source: torch.Generator | None) -> Tensor:
        return noise((n, *shape), source, like.dtype, like.device)

    if isinstance(generator, Sequence):
        return torch.stack([draw(like.shape[1:], source) for source in generator], dim=1)
    return draw(like.shape, generator)
