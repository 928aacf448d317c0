"""A block of groups whose weights are correlated: the precision is low rank plus diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from vcl_radial.nn.blocks import PosteriorBlock, rho_of, softplus
from vcl_radial.posteriors import Posterior
from vcl_radial.posteriors.correlated import Correlated

START = 0.1
"""The initial root mean square of a factor, which is the length of each row of U.

At U = 0 the gradients of the KL and of the likelihood in U are 0, so that U would stay 0. With this
length, the precision along a row is 1 % above the diagonal one.
"""

_SEED = 0


class LowRankBlock(PosteriorBlock):
    """A `PosteriorBlock` of a family with a factor U = factor / sqrt(D).

    The parameter `factor` has shape `[groups, R, D]`, R at most D, and is carried like mean and
    scale. Its entries are of order 1 for correlated weights, whatever D is: a step of Adam changes
    the length of a row of U by about the learning rate, as it changes the log of a scale. With U as
    the parameter, gradient noise would make its rows grow sqrt(D) times as fast.

    The factor starts at normal numbers from a fixed seed: the global generator does not change, so
    that the means start as in any other family.
    """

    factor: nn.Parameter
    prior_factor: Tensor

    def __init__(
        self, mean: Tensor, family: type[Posterior], rho: float, prior_scale: float, rank: int
    ) -> None:
        super().__init__(mean, family, rho, prior_scale)
        groups, D = mean.shape
        self.factor = nn.Parameter(_start((groups, rank, D)).to(mean))
        self.register_buffer("prior_factor", torch.zeros_like(self.factor))
        self._held_posterior: Correlated | None = None

    @torch.no_grad()
    def restart_noise(self) -> None:
        """Reset scales and factor to their values before the first task, unless frozen."""
        super().restart_noise()
        if self.factor.requires_grad:
            self.factor.copy_(_start(self.factor.shape))

    @property
    def posterior(self) -> Correlated:
        """The approximate posterior q(w)."""
        if self._held_posterior is not None and not torch.is_grad_enabled():
            return self._held_posterior
        return self._make_posterior(self.mean, softplus(self.rho), self.factor)

    @property
    def prior(self) -> Any:
        """The prior p(w): Gaussian before the first task, afterwards of low rank too."""
        if not self.carried:
            return super().prior
        return self._make_posterior(self.prior_mean, self.prior_scale, self.prior_factor)

    @torch.no_grad()
    def hold_scale(self, on: bool) -> None:
        """Set whether draws without gradient share one computed scale and root."""
        self._held_posterior = self.posterior.to_prior() if on else None

    def weight_noise(self) -> Tensor:
        """The standard deviation of each weight's noise, correlations included, `[groups, D]`."""
        return self.posterior.deviation()

    def prior_noise(self) -> Tensor:
        """The standard deviation of each weight's noise under the prior, `[groups, D]`."""
        return cast(Tensor, self.prior.deviation() if self.carried else self.prior_scale)

    @torch.no_grad()
    def set_precision(self, diagonal: Tensor, rows: Tensor) -> None:
        """Make the precision diag(diagonal) + rows' rows.

        Args:
            diagonal: the diagonal part, `[groups, D]`, above 0.
            rows: the rows of the low-rank part, `[groups, R, D]`, or fewer rows.
        """
        scale = diagonal.rsqrt()
        self.rho.copy_(rho_of(scale))
        self.factor.zero_()
        self.factor[:, : rows.shape[1]] = rows * scale.unsqueeze(-2) * rows.shape[-1] ** 0.5

    @torch.no_grad()
    def consolidate(self) -> None:
        """Make the posterior the prior: p(w) <- q(w)."""
        super().consolidate()
        self.prior_factor.copy_(self.factor)

    def _make_posterior(self, mean: Tensor, scale: Tensor, factor: Tensor) -> Correlated:
        U = factor * factor.shape[-1] ** -0.5
        return cast(type[Correlated], self.family)(mean, scale, U)


def _start(shape: Sequence[int]) -> Tensor:
    """The initial factor."""
    normal = torch.randn(*shape, generator=torch.Generator().manual_seed(_SEED))
    return normal.mul_(START)
