"""Generalised variational continual learning (Loo, Swaroop and Turner 2021, section 2).

Two numbers, beta and lambda, interpolate between VCL and online EWC:

    q_t = argmin_q  E_q[ -log p(D_t | w) ] + beta KL_lambda(q || q_{t-1})

beta tempers the KL (`kl_weight`). Below 1 the posterior is narrower: with H_s the curvature of task
s, S_0 the first prior's covariance and S_t the posterior's,

    S_t^-1 = (H_1 + ... + H_t) / beta + S_0^-1

lambda (`strength`) multiplies the precision that the tasks have added, but only in the term of the
KL that measures how far the mean has moved:

    KL_lambda = 1/2 (m - m_{t-1})' [ lambda (S_{t-1}^-1 - S_0^-1) + S_0^-1 ] (m - m_{t-1})
                + 1/2 ( tr S_{t-1}^-1 S - log |S_{t-1}^-1 S| - D )

At beta = lambda = 1 this is VCL. As beta goes to 0 the draws collapse onto the mean, and beta times
the quadratic term becomes lambda/2 (m - m_{t-1})' (H_1 + ... + H_{t-1}) (m - m_{t-1}): online EWC
with that lambda and without decay.

For a family other than the Gaussian, 1 / S is the precision of one weight's noise, and the KL of
the family is computed with the shift of the mean multiplied by the square root of the ratio of the
two metrics. The authors' code starts each task from new random means; here a task starts from the
posterior, as in VCL.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from vcl_radial.config.ranges import NotNegative
from vcl_radial.errors import UserError
from vcl_radial.methods.tasks import Task
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.nn.weights import VariationalWeights


class GVCL(VCL):
    """VCL with a tempered KL, stretched along the means.

    Args:
        strength: lambda, at least 0; at 1 the KL is the same as in VCL.
        settings: settings of `Method`; `kl_weight` is beta.

    Raises:
        UserError: the strength is negative, or not 1 where weights have radius and direction (RDP)
            or are correlated (low-rank, radial-low-rank).
    """

    carries = "the posterior, which becomes the prior, and the scales of the first prior"

    def __init__(self, network: nn.Module, *, strength: NotNegative = 1.0, **settings: Any) -> None:
        super().__init__(network, **settings)
        weights = (m for m in network.modules() if isinstance(m, VariationalWeights))
        if strength != 1 and not all(m.uncorrelated for m in weights):
            raise UserError(
                f"options.strength = {strength} stretches the means of a Gaussian or radial "
                "posterior without correlations, and posterior = 'rdp', 'low-rank' or "
                "'radial-low-rank' is none: set options.strength = 1"
            )
        self.strength = strength
        self.first_scales: dict[str, Tensor] = {}
        """The scale of each block's first prior, by the block's name."""

    def state_dict(self) -> dict[str, Any]:
        """The state of every method, and the first priors' scales."""
        return super().state_dict() | {"first_scales": dict(self.first_scales)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        self.first_scales = state["first_scales"]

    def begin_task(self, task: Task) -> None:
        """Stretch the KL along the means."""
        super().begin_task(task)
        for name, block in self._blocks_by_name():
            if not block.carried:
                self.first_scales[name] = block.prior_scale.flatten()[0].clone()
            if self.strength != 1:
                scale = self.first_scales[name].to(block.prior_scale.device)
                block.stretch = stretch(block, scale, self.strength)

    def end_task(self, task: Task) -> None:
        """Make the posterior the prior, as in VCL."""
        # Remove the stretch first, because the measures of a finished task use the plain KL.
        for _, block in self._blocks_by_name():
            block.stretch = None
        super().end_task(task)

    def _blocks_by_name(self) -> list[tuple[str, PosteriorBlock]]:
        modules = self.network.named_modules()
        return [(name, m) for name, m in modules if isinstance(m, PosteriorBlock)]


def stretch(block: PosteriorBlock, first_scale: Tensor, strength: float) -> Tensor:
    """sqrt( [lambda (S^-1 - S_0^-1) + S_0^-1] / S^-1 ) of each weight, `[groups, D]`.

    S is the variance of the weight's noise under the current prior, S_0 = first_scale^2 under the
    first prior. A weight with a larger variance than under the first prior counts as not learned.
    """
    ratio = (block.prior_noise() / first_scale).square().clamp(max=1)
    return (strength * (1 - ratio) + ratio).sqrt()
