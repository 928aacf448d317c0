"""Natural-gradient variational inference with a Gaussian prior of any mean and precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import torch
from torch import Tensor
from torch.optim import Optimizer

from vcl_radial.errors import UserError
from vcl_radial.nn import WeightPosterior

LEFT: Final = 1e-4
"""The largest share of the first curvature in the curvature at the end of a task."""


class NaturalGradient(Optimizer):
    """Move the means and precisions of a mean-field Gaussian posterior together.

    With g the mean gradient of a mini-batch's NLL at weights drawn from q, h an estimate of its
    curvature there, and delta = prior_precision / ess:

        s    <- beta2 s + (1 - beta2) h
        m    <- beta1 m + (1 - beta1) (g + delta (mean - prior_mean))
        mean <- mean - lr m / (1 - beta1^t) / metric(s, delta)
        precision = ess (s + delta)

    Subclasses define h and the metric. For any choice, the fixed point of the mean is a stationary
    point of E_q[mean NLL] + KL(q || p) / ess. The fixed point of the precision is one where E_q[h]
    is the diagonal Hessian. s starts at a curvature instead of at 0, so it has no bias to correct.

    Source: Khan et al. 2018, whose prior N(0, 1/prior_precision) is generalised to one mean and one
        precision per weight.

    Args:
        posteriors: posteriors of the parameters to train; s starts at the value that gives their
            present precision.
        lr: the step size.
        ess: effective sample size, N if nothing is tempered; see `effective_sample_size`.
        beta1: decay of the momentum.
        beta2: decay of the curvature.
    """

    def __init__(
        self,
        posteriors: Sequence[WeightPosterior],
        *,
        lr: float,
        ess: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
    ) -> None:
        # The number of steps is in the group, so that the state dict contains it.
        super().__init__([q.mean for q in posteriors], {"lr": lr, "steps": 0})
        self.posteriors, self.ess = posteriors, ess
        self.beta1, self.beta2 = beta1, beta2
        for q in posteriors:
            curvature = (q.precision - q.prior_precision) / ess
            self.state[q.mean] = {"curvature": curvature, "momentum": torch.zeros_like(q.mean)}

    def squares(self) -> Mapping[Tensor, Tensor]:
        """Each parameter's h, after a backward pass."""
        raise NotImplementedError

    def metric(self, curvature: Tensor, delta: Tensor) -> Tensor:
        """The divisor of the step of a mean."""
        raise NotImplementedError

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move means and precisions by the gradients of the last backward pass."""
        (group,) = self.param_groups
        group["steps"] += 1
        step_size = group["lr"] / (1 - self.beta1 ** group["steps"])
        squares = self.squares()
        for q in self.posteriors:
            if q.mean.grad is None:
                continue
            state = self.state[q.mean]
            delta = q.prior_precision / self.ess
            curvature = state["curvature"].lerp_(squares[q.mean], 1 - self.beta2)
            gradient = torch.addcmul(q.mean.grad, delta, q.mean - q.prior_mean)
            momentum = state["momentum"].lerp_(gradient, 1 - self.beta1)
            q.mean.addcdiv_(momentum, self.metric(curvature, delta), value=-step_size)
            q.precision = (curvature + delta).mul_(self.ess)


def effective_sample_size(points: int, kl_weight: float) -> float:
    """N / kl_weight, the effective number of training points of a task.

    A KL with the weight kappa in the loss mean NLL + kappa KL / N has its minimum where

        precision = N / kappa * curvature + prior precision

    where curvature is the curvature of the mean NLL: the same as with N / kappa points.

    Raises:
        UserError: The weight is 0.
    """
    if not kl_weight > 0:
        raise UserError('kl_weight = 0 leaves no prior: raise it, or take strategy = "naive"')
    return points / kl_weight


def decay_within(steps: int) -> float:
    """beta2 = min(0.999, LEFT^(1 / steps)), so that s forgets its start within a task.

    At the end s still has the share beta2^steps of the first curvature s_0, which is not the
    curvature of any data. Every task would carry this share in every weight: at 0.999, nearly half
    of it remains after 740 steps, which for a noise of 0.03 is a precision of 530 in each weight.
    The prior would then penalise a change of any weight, not only changes that matter to past
    tasks.
    """
    return min(0.999, float(LEFT ** (1 / max(steps, 1))))
