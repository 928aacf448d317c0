"""Layers' weights under the radial and directional posterior (RDP) of Oh et al. (2020).

| grouping | one group is                                   | source           |
| -------- | ---------------------------------------------- | ---------------- |
| row      | the weights of one output unit or channel      | Eqs. 2 and 3     |
| column   | the weights of one input unit or channel       | Eqs. 14 and 15   |
| double   | a row of A and a column of B, with W = A * B   | Eqs. 16 to 18    |

The paper writes double grouping as a product of the densities of rows and columns. Here, as in its
authors' code, a layer's weight is the product, entry by entry, of a row factor and a column factor.
Each factor is an RDP with its own prior, and their divergences add up. Biases have a mean-field
Gaussian posterior in both implementations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from vcl_radial import native
from vcl_radial.errors import UserError, bad_value
from vcl_radial.nn.blocks import PosteriorBlock, inverse_softplus, softplus
from vcl_radial.nn.grouping import Layer
from vcl_radial.nn.states import ModuleWithKind
from vcl_radial.nn.weights import PosteriorSettings, VariationalWeights
from vcl_radial.posteriors.bessel import bessel_ratio
from vcl_radial.posteriors.log_normal_radius import LogNormal
from vcl_radial.posteriors.radius_factors import RadiusFactors
from vcl_radial.posteriors.rdp import RDP, HalfCauchyPrior
from vcl_radial.posteriors.vmf_angle import draw_angle
from vcl_radial.posteriors.von_mises_fisher import VonMisesFisher, concentration_for_variance
from vcl_radial.posteriors.weibull_radius import Weibull

RADII: Final[Mapping[str, type[RadiusFactors]]] = {r.name: r for r in (LogNormal, Weibull)}
"""Distributions of the radii's factors by name: the key `radius`."""


@dataclass(frozen=True)
class RDPSettings:
    """The grouping of an RDP, its start, its first prior and the distribution of its radii.

    Attributes:
        grouping: "row", "column" or "double".
        initial_noise: the initial standard deviation tau of one weight's noise, along the radius
            and across it; the default is the noise of a Gaussian at rho = -6.
        prior_scale: scale gamma of the first prior; see `HalfCauchyPrior`.
        prior_length: A_D(kappa_p), the length of the mean of a direction under the first prior, in
            [0, 1); at 0 directions are uniform. The paper gives no value of kappa_p (Eqs. 5 and
            11). The default is that of its authors' code for image classes; the code has 0.5 for
            regression (github.com/ChangYong-Oh/RadiusDirectionPosteriors, `PRIOR_EPSILON` = 1 -
            length).
        radius: "log-normal", as in the paper, or "weibull", whose divergence the paper lists too
            (Eq. 50); see `vcl_radial.posteriors.weibull_radius`.
    """

    grouping: str = "row"
    initial_noise: float = 0.0024756852
    prior_scale: float = 1.0
    prior_length: float = 0.9
    radius: str = LogNormal.name

    def __post_init__(self) -> None:
        """Check values that no tensor operation would reject."""
        if self.grouping not in RDP.groupings:
            raise bad_value(
                "grouping",
                self.grouping,
                f"is not for posterior = {RDP.name!r}: choose from {', '.join(RDP.groupings)}",
            )
        if self.radius not in RADII:
            raise bad_value("radius", self.radius, f"is not known: choose from {', '.join(RADII)}")
        for name in ("initial_noise", "prior_scale"):
            if not 0 < getattr(self, name) < math.inf:
                raise bad_value(name, getattr(self, name), "must be above 0 and finite")
        if not 0 <= self.prior_length < 1:
            raise bad_value(
                "prior_length",
                self.prior_length,
                "must be at least 0 (uniform directions) and below 1",
            )

    @property
    def kind(self) -> str:
        """Family, grouping, and radii that are not the paper's."""
        return f"posterior = 'rdp', grouping = {self.grouping!r}{_kind_of_radius(self.radius)}"

    def make_weights(self, weight: Tensor, bias: Tensor | None) -> RDPWeights:
        """Make the posterior over a layer's weights with these means."""
        return RDPWeights(weight, bias, self)


class RDPBlock(ModuleWithKind):
    """An `RDP` over groups `[groups, D]`, and its prior.

    The concentration is exp(log_concentration), the scales of the factors are softplus(rho). The
    prior starts as the `HalfCauchyPrior`; `consolidate` makes the posterior the prior. Both are
    part of the state dict.

    Args:
        mean: the initial mean of the groups, `[groups, D]`.
        noise: the initial standard deviation tau of one weight.
        first_prior: the prior before the first task.
        radius: the distribution of the radii's factors, a name of `RADII`.

    Raises:
        UserError: Groups of one weight or of zeros have no direction.
    """

    PARAMETERS: Final = ("direction", "log_concentration", "loc", "rho")
    """Names of the parameters; the prior's parameters have the prefix `prior_`."""

    direction: nn.Parameter
    log_concentration: nn.Parameter
    loc: nn.Parameter
    rho: nn.Parameter

    def __init__(
        self,
        mean: Tensor,
        noise: float,
        first_prior: HalfCauchyPrior,
        radius: str = LogNormal.name,
    ) -> None:
        super().__init__()
        self.radius = radius
        groups, D = mean.shape
        lengths = torch.linalg.vector_norm(mean, dim=1, dtype=torch.float64)
        if D < 2 or not bool((lengths > 0).all()):
            raise UserError(
                "posterior = 'rdp' needs groups of at least two weights that are not all 0: "
                f"here are {groups} groups of {D}; choose another one",
                at="grouping",
            )
        share = noise**2 / lengths.square().mean().item()
        # The initial mean has to be E w = E r A(kappa) mu, with E r = exp(loc + log_mean), and the
        # variance across it E r^2 A(kappa) / kappa, with E r^2 = (1 + share) (E r)^2.
        spread, log_mean = RADII[radius].start(share)
        concentration = concentration_for_variance(share / (1 + share), D)
        shrinkage = bessel_ratio(D / 2, torch.tensor(concentration, dtype=torch.float64)).item()
        log_radius = lengths.log() - math.log(shrinkage) - log_mean
        layer = log_radius.mean(0, keepdim=True)
        loc = torch.cat([log_radius - layer, layer]).to(mean).expand(2, -1)

        self._first_noise = math.log(concentration), inverse_softplus(spread)
        log_concentration, rho = self._first_noise
        self.direction = nn.Parameter(normalize(mean, dim=1))
        self.log_concentration = nn.Parameter(mean.new_tensor(log_concentration))
        self.loc = nn.Parameter(loc.clone())
        self.rho = nn.Parameter(torch.full_like(loc, rho))
        for name in self.PARAMETERS:
            self.register_buffer(f"prior_{name}", torch.zeros_like(getattr(self, name)))
        self.first_prior = first_prior
        self.carried = False

    @property
    def posterior(self) -> RDP:
        """The approximate posterior q(w)."""
        mu = normalize(self.direction, dim=-1)
        return rdp((mu, self.log_concentration, self.loc, self.rho), RADII[self.radius])

    @property
    def prior(self) -> RDP | HalfCauchyPrior:
        """The prior p(w): the first one before the first task, afterwards an RDP."""
        if not self.carried:
            return self.first_prior
        parameters = (self.get_buffer(f"prior_{name}") for name in self.PARAMETERS)
        return rdp(parameters, RADII[self.radius])

    def kl(self) -> Tensor:
        """KL(q || p) of all groups together, a scalar in nats."""
        return self.posterior.kl(self.prior)

    @torch.no_grad()
    def consolidate(self) -> None:
        """Make the posterior the prior: p(w) <- q(w).

        The direction is scaled back to unit length, which does not change the posterior. The steps
        of an optimiser make it longer, and a longer direction turns less in a step.
        """
        if self.direction.requires_grad:
            self.direction.copy_(normalize(self.direction, dim=1))
        for name in self.PARAMETERS:
            self.get_buffer(f"prior_{name}").copy_(getattr(self, name))
        self.get_buffer("prior_direction").copy_(normalize(self.direction, dim=1))
        self.carried = True

    @torch.no_grad()
    def restart_noise(self) -> None:
        """Reset concentration and spreads to their values before the first task, unless frozen."""
        for parameter, value in zip(
            (self.log_concentration, self.rho), self._first_noise, strict=True
        ):
            if parameter.requires_grad:
                parameter.fill_(value)

    @property
    def kind(self) -> str:
        """The family, and radii that are not the paper's."""
        return f"posterior = 'rdp'{_kind_of_radius(self.radius)}"

    def get_extra_state(self) -> dict[str, Any]:
        """The kind, and whether the prior is a carried posterior; part of the state dict."""
        return super().get_extra_state() | {"carried": self.carried}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore the state of `get_extra_state`."""
        self.carried = state["carried"]


class RDPWeights(VariationalWeights):
    """q(w) and p(w) over the weight and bias of one layer, under an RDP.

    Args:
        weight: the initial means of the weight, `[out, in, ...]`.
        bias: the initial means of the bias, `[out]`, or None.
        settings: the grouping, start and first prior.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, settings: RDPSettings) -> None:
        nn.Module.__init__(self)  # the parent's would make blocks of a location-scale family
        self.settings, self.shape = settings, weight.shape
        noise = settings.initial_noise
        if settings.grouping == "double":
            root = weight.abs().sqrt()
            factors = {"rows": weight.sign() * root, "columns": root}
            # Var(A B) is about A^2 tau_B^2 + B^2 tau_A^2.
            noise /= math.sqrt(2 * weight.abs().mean().item())
        else:
            factors = {f"{settings.grouping}s": weight}
        first_prior = HalfCauchyPrior(settings.prior_scale, settings.prior_length)
        for name, factor in factors.items():
            groups = factor if name == "rows" else factor.transpose(0, 1)
            self.add_module(name, RDPBlock(groups.flatten(1), noise, first_prior, settings.radius))
        gaussian = PosteriorSettings("gaussian", initial_noise=settings.initial_noise)
        self.bias = None if bias is None else gaussian.make_block(bias[None])

    def posterior_blocks(self) -> list[PosteriorBlock]:
        """The blocks of a location-scale family: the bias."""
        return [] if self.bias is None else [self.bias]

    def sample(self) -> Layer:
        """Draw w ~ q(w), reparameterised: the weight `[out, in, ...]` and the bias or None."""
        if self.sampler is not None and torch.is_grad_enabled():
            return self.sampler()
        bias = None if self.bias is None else self.bias.sample().squeeze(0)
        return self._join(lambda q: q.sample(1).squeeze(0)), bias

    def mean(self) -> Layer:
        """The posterior means: the weight `[out, in, ...]` and the bias `[out]` or None."""
        return self._join(RDP.mean), None if self.bias is None else self.bias.mean.squeeze(0)

    def kl(self) -> Tensor:
        """KL(q || p) of the factors and the bias, a scalar in nats."""
        return torch.stack([block.kl() for block in self._parts()]).sum()

    def consolidate(self) -> None:
        """Make the posterior the prior: p(w) <- q(w)."""
        for block in self._parts():
            block.consolidate()

    def restart_noise(self) -> None:
        """Reset all noise to its size before the first task."""
        for block in self._parts():
            block.restart_noise()

    def _parts(self) -> list[RDPBlock | PosteriorBlock]:
        """The factors of the weight, and the bias if there is one."""
        return [*self.factor_blocks().values(), *self.posterior_blocks()]

    def _join(self, compute: Callable[[RDP], Tensor]) -> Tensor:
        """Join values `[groups, D]`, computed from the factors' posteriors, to a weight."""
        return self.join(
            {name: compute(block.posterior) for name, block in self.factor_blocks().items()}
        )

    def factor_blocks(self) -> dict[str, RDPBlock]:
        """The factors of the weight by name: "rows", "columns", or both."""
        return {name: b for name, b in self.named_children() if isinstance(b, RDPBlock)}

    def join(self, factors: Mapping[str, Tensor]) -> Tensor:
        """Join factors `[..., groups, D]` to a weight `[..., out, in, ...]`."""
        parts = []
        for name, factor in factors.items():
            outputs, inputs, *kernel = self.shape
            batch = factor.shape[:-2]
            if name == "rows":
                parts.append(factor.view(*batch, *self.shape))
            else:
                columns = factor.view(*batch, inputs, outputs, *kernel)
                parts.append(columns.transpose(len(batch), len(batch) + 1))
        return math.prod(parts[1:], start=parts[0])


def rdp(parameters: Iterable[Tensor], radius: type[RadiusFactors] = LogNormal) -> RDP:
    """The RDP with mean directions mu `[..., groups, D]` and a block's other parameters."""
    mu, log_concentration, loc, rho = parameters
    concentration = log_concentration.double().exp().unsqueeze(-1)
    return RDP(VonMisesFisher(mu, concentration), radius(loc, softplus(rho)))


def _kind_of_radius(radius: str) -> str:
    return "" if radius == LogNormal.name else f", radius = {radius!r}"


def angles_of_key(groups: int, concentration: Tensor, D: int, key: int) -> Tensor:
    """Angles of groups of D weights, which depend on the key alone; `[groups]` on the CPU.

    The compiled library draws them; without it, `draw_angle` does.
    """
    if native.library() is not None:
        return native.angles(groups, concentration.item(), D, key)
    return draw_angle((groups,), concentration, D, torch.Generator().manual_seed(key))
