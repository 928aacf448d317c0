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
"""The root mean square of a factor at the start, which is the length of each row of U.

At U = 0 the KL and the likelihood have no slope along it, so that it would stay there. With this
length the precision along each row is 1 % above the diagonal one.
"""

_SEED = 0


class LowRankBlock(PosteriorBlock):
    """A `PosteriorBlock` whose family has a factor U too: U = factor / sqrt(D).

    The parameter `factor` has shape `[groups, R, D]`, R at most D, and is carried as mean and scale
    are. Its entries are of order 1 where correlations are, whatever D is: a step of Adam changes
    the length of a row of U by about the learning rate, as it does the log of a scale. Were U the
    parameter, the noise of the gradients would let its rows grow sqrt(D) times as fast.

    The factor starts at normal numbers of a fixed seed: the global generator is left as it was, so
    that the means start where those of any other family do.
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
        self._held: Correlated | None = None

    @torch.no_grad()
    def restart_noise(self) -> None:
        """Give scales and factor the values that they had before the first task, unless frozen."""
        super().restart_noise()
        if self.factor.requires_grad:
            self.factor.copy_(_start(self.factor.shape))

    @property
    def posterior(self) -> Correlated:
        """The approximate posterior q(w)."""
        held = None if torch.is_grad_enabled() else self._held
        return self._of(self.mean, softplus(self.rho), self.factor) if held is None else held

    @property
    def prior(self) -> Any:
        """The prior p(w): Gaussian before the first task, afterwards of low rank too."""
        if not self.carried:
            return super().prior
        return self._of(self.prior_mean, self.prior_scale, self.prior_factor)

    @torch.no_grad()
    def hold_scale(self, hold: bool) -> None:
        """Compute scale and root once for all draws without gradient, until told otherwise."""
        self._held = self.posterior.to_prior() if hold else None

    def weight_noise(self) -> Tensor:
        """The standard deviation of each weight's noise, correlations included, `[groups, D]`."""
        return self.posterior.deviation()

    def prior_noise(self) -> Tensor:
        """The same under the prior."""
        return cast(Tensor, self.prior.deviation() if self.carried else self.prior_scale)

    @torch.no_grad()
    def set_precision(self, diagonal: Tensor, rows: Tensor) -> None:
        """Make the precision diag(diagonal) + rows' rows.

        Args:
            diagonal: `[groups, D]`, above 0.
            rows: `[groups, R, D]`, or fewer rows.
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

    def _of(self, mean: Tensor, scale: Tensor, factor: Tensor) -> Correlated:
        of_group = factor * factor.shape[-1] ** -0.5
        return cast(type[Correlated], self.family)(mean, scale, of_group)


def _start(shape: Sequence[int]) -> Tensor:
    """A factor as it is before the first task."""
    normal = torch.randn(*shape, generator=torch.Generator().manual_seed(_SEED))
    return normal.mul_(START)
