"""Variational Adam (Khan et al. 2018), carried forward.

    q_t = N(mean, 1 / precision) ~ argmin_q  E_q[ -log p(D_t | w) ] + KL(q || q_{t-1})

by steps as in Adam, where the moving average s of squared mini-batch gradients approximates the
curvature of the mean NLL:

    precision_t = precision_{t-1} + N s

The prior is the whole previous posterior, a mean and a precision for each weight: its gradient and
its precision enter each step (`vcl_radial.optimizers.vadam`), not the loss. s depends on the batch
size, about as 1/B near an optimum, and so does the precision that a task adds.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch.optim import Optimizer

from vcl_radial.methods.natural_gradient import NaturalGradientMethod
from vcl_radial.nn import WeightPosterior
from vcl_radial.optimizers.vadam import Vadam


class VADAM(NaturalGradientMethod):
    """Train by Vadam; the posterior of the body and of the trained heads becomes their prior.

    See `NaturalGradientMethod` for options and errors.
    """

    def natural_optimizer(
        self, posteriors: Sequence[WeightPosterior], lr: float, ess: float
    ) -> Optimizer:
        """Vadam on these posteriors."""
        return Vadam(posteriors, lr=lr, ess=ess, **self.decays)
