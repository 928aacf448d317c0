"""Blocks of groups of weights under a variational family, and the scale softplus(rho)."""

from __future__ import annotations

from math import expm1, log
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.nn.states import ModuleWithKind
from vcl_radial.posteriors import Gaussian, Posterior, Prior
from vcl_radial.posteriors.families import name_of
from vcl_radial.posteriors.transforms import transformed


def inverse_softplus(scale: float) -> float:
    """The rho with log(1 + exp(rho)) = scale, exact for small scales too."""
    return scale if scale > 30 else log(expm1(scale))


def softplus(rho: Tensor) -> Tensor:
    """The scale log(1 + exp(rho)), several times faster on a CPU than in PyTorch."""
    if transformed():
        return torch.logaddexp(rho, torch.zeros_like(rho))
    scale: Tensor = _Softplus.apply(rho)
    return scale


def rho_of(scale: Tensor) -> Tensor:
    """The rho with softplus(rho) = scale, entry by entry, exact for small scales too."""
    return scale + torch.log(-torch.expm1(-scale))


class _Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rho: Tensor) -> Tensor:
        ctx.save_for_backward(rho)
        # This is max(rho, 0) + log1p(y) with y = exp(-|rho|) and log1p(y) = 2 artanh(y / (2 + y)):
        # on a CPU exp and artanh are vectorised, and log1p is not.
        y = rho.abs().neg_().exp_()
        return y.div_(y + 2).atanh_().mul_(2).add_(rho.clamp(min=0))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (rho,) = ctx.saved_tensors
        slope: Tensor = rho.sigmoid()
        return slope.mul(grad)


class PosteriorBlock(ModuleWithKind):
    """A block of independent groups: q(w) = prod_g family(mean_g, softplus(rho_g)).

    Parameters and buffers have shape `[groups, D]`. The prior starts as N(0, prior_scale^2 I);
    `consolidate` makes the posterior the prior. Both are part of the state dict.

    Args:
        mean: the initial means.
        family: the variational family.
        rho: the initial rho of all weights.
        prior_scale: the standard deviation of the first prior.
    """

    mean: nn.Parameter
    rho: nn.Parameter
    prior_mean: Tensor
    prior_scale: Tensor
    first_prior: Prior | None = None
    """The prior before the first task, if it is not Gaussian; no part of the state dict."""

    def __init__(
        self, mean: Tensor, family: type[Posterior], rho: float, prior_scale: float
    ) -> None:
        super().__init__()
        self.family = family
        self.mean = nn.Parameter(mean)
        self._first_rho = rho
        self.rho = nn.Parameter(torch.full_like(mean, rho))
        self.register_buffer("prior_mean", torch.zeros_like(mean))
        self.register_buffer("prior_scale", torch.full_like(mean, prior_scale))
        self.carried = False
        self.stretch: Tensor | None = None
        """Factor `[groups, D]` of |mean - mean_p| in the KL; None for 1."""
        self._held_scale: Tensor | None = None

    @property
    def posterior(self) -> Posterior:
        """The approximate posterior q(w)."""
        held_scale = None if torch.is_grad_enabled() else self._held_scale
        scale = softplus(self.rho) if held_scale is None else held_scale
        return self.family(self.mean, scale)

    def sample(self) -> Tensor:
        """Draw w ~ q(w), reparameterised, `[groups, D]`."""
        return self.posterior.sample(1).squeeze(0)

    @torch.no_grad()
    def scale(self) -> Tensor:
        """The scale softplus(rho) without gradient."""
        return softplus(self.rho)

    def weight_noise(self) -> Tensor:
        """The standard deviation of each weight's noise, `[groups, D]`."""
        return self.posterior.scale / self.family.scale_for_weight_noise(1.0, self.mean.shape[-1])

    def prior_noise(self) -> Tensor:
        """The standard deviation of each weight's noise under the prior, `[groups, D]`."""
        D = self.mean.shape[-1]
        return self.prior_scale / self.prior_family.scale_for_weight_noise(1.0, D)

    def hold_scale(self, on: bool) -> None:
        """Set whether draws without gradient share one computed scale."""
        self._held_scale = self.scale() if on else None

    @property
    def prior(self) -> Any:
        """The prior p(w): Gaussian before the first task, or `first_prior`; then q's family."""
        if self.first_prior is not None and not self.carried:
            return self.first_prior
        return self.prior_family(self.prior_mean, self.prior_scale)

    @property
    def prior_family(self) -> type[Posterior]:
        """The prior's family: Gaussian before the first task, afterwards the posterior's."""
        return self.family if self.carried else Gaussian

    def kl(self) -> Tensor:
        """KL(q || p) summed over the groups, a scalar in nats."""
        q, p = self.posterior, self.prior
        if not isinstance(p, Posterior):  # before the first task, when no mean is stretched
            return (q.kl(p) if not hasattr(p, "kl") else p.kl(q)).sum()
        if self.stretch is not None:
            # Coordinates are relative to the prior's mean, because absolute ones would round small
            # distances.
            q = self.family(self.stretch * (q.mean - p.mean), q.scale)
            p = self.prior_family(torch.zeros_like(p.mean), p.scale)
        return q.kl(p).sum()

    @torch.no_grad()
    def consolidate(self) -> None:
        """Make the posterior the prior: p(w) <- q(w)."""
        self.prior_mean.copy_(self.mean)
        self.prior_scale.copy_(softplus(self.rho))
        self.carried = True

    @torch.no_grad()
    def restart_noise(self) -> None:
        """Reset every scale to its value before the first task, unless rho is frozen."""
        if self.rho.requires_grad:
            self.rho.fill_(self._first_rho)

    @property
    def kind(self) -> str:
        """The family."""
        return f"posterior = {name_of(self.family)!r}"

    def get_extra_state(self) -> dict[str, Any]:
        """The kind, and whether the prior is a carried posterior; part of the state dict."""
        return super().get_extra_state() | {"carried": self.carried}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore the state of `get_extra_state`."""
        self.carried = state["carried"]
