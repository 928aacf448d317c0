"""Variational Adam, with a Gaussian prior of any mean and precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.optim import Optimizer

from vcl_radial.optimizers import WeightPosterior


class Vadam(Optimizer):
    """Natural-gradient variational inference in the shape of Adam.

    With g the mean gradient of a mini-batch at weights drawn from q, and
    delta = prior_precision / ess:

        s    <- beta2 s + (1 - beta2) g^2
        m    <- beta1 m + (1 - beta1) (g + delta (mean - prior_mean))
        mean <- mean - lr m / (1 - beta1^t) / (sqrt(s) + delta)
        precision = ess (s + delta)

    The mean is stationary where it should be. The precision is not: the square of a mini-batch's
    mean gradient stands for the curvature, and near an optimum that is about 1/B of the mean
    squared gradient of single points. Only at B = 1 does it agree with VOGN.

    Source: Khan et al. 2018, Fig. 1 (Vadam). The prior N(0, 1/prior_precision) is widened here
    to one with a mean and a precision for each weight. s starts at a curvature instead of at 0,
    and so has no bias to correct.

    Args:
        posteriors: of the parameters to train; s starts where it gives their present precision.
        lr: the step.
        ess: effective sample size, N if nothing is tempered.
        beta1: decay of the momentum.
        beta2: decay of the squared gradient.
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
        super().__init__([q.mean for q in posteriors], {"lr": lr})
        self.posteriors, self.ess = posteriors, ess
        self.beta1, self.beta2 = beta1, beta2
        self.steps = 0
        for q in posteriors:
            curvature = (q.precision - q.prior_precision) / ess
            self.state[q.mean] = {"curvature": curvature, "momentum": torch.zeros_like(q.mean)}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move means and precisions by the gradients of the last backward pass."""
        self.steps += 1
        step_size = self.param_groups[0]["lr"] / (1 - self.beta1**self.steps)
        for q in self.posteriors:
            if q.mean.grad is None:
                continue
            state = self.state[q.mean]
            delta = q.prior_precision / self.ess
            curvature = state["curvature"].lerp_(q.mean.grad.square(), 1 - self.beta2)
            gradient = torch.addcmul(q.mean.grad, delta, q.mean - q.prior_mean)
            momentum = state["momentum"].lerp_(gradient, 1 - self.beta1)
            q.mean.addcdiv_(momentum, curvature.sqrt().add_(delta), value=-step_size)
            q.precision = (curvature + delta).mul_(self.ess)
