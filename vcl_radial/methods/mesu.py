"""Metaplasticity from synaptic uncertainty (Bonnet et al. 2025).

A Gaussian N(mu, sigma^2) for each weight moves with every mini-batch, along its gradients scaled by
its own variance, and back to the first prior N(mu_p, sigma_p^2), which is never replaced:

    d mu    = -sigma^2 dC/dmu + sigma^2 / (W sigma_p^2) (mu_p - mu)
    d sigma = -sigma^2 / 2 dC/dsigma + sigma / (2 W sigma_p^2) (sigma_p^2 - sigma^2)

with C = E_q[ -log p(mini-batch | w) ], a sum over the batch, and W = `window` the number of
mini-batches to remember (Nature Communications 16, 2025; arXiv 2504.13569). Both are steps along

    F = C + KL(q || p) / W,    d mu = -sigma^2 dF/dmu,    d sigma = -sigma^2 / 2 dF/dsigma

so that on a quadratic loss the fixed point is the exact posterior of W mini-batches, 1 / sigma^2 =
1 / sigma_p^2 + W d2C/dw2. What is certain hardly moves, and a weight without data goes back to the
prior in some W steps. Where a task ends, nothing happens.

The loss is F / B = mean NLL + kl_weight KL / (B W) with B points in a batch, where the paper has
kl_weight = 1. `rate` is a factor of both moves, 1 in the paper. As in the code of the paper
(djo1996/Bayesian_Continual_Learning_And_Forgetting), a step moves mean and scale by at most
`largest_move` sigma. The code has one rate for means and one for scales, and can average gradients
over steps. Parameters without a posterior take the steps of the optimiser.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vcl_radial.config.ranges import Count, Positive, ShareBelowOne
from vcl_radial.methods.base import Method
from vcl_radial.methods.serves import wrong_posterior
from vcl_radial.methods.tasks import Batch
from vcl_radial.nn import kl_divergence, posterior_blocks
from vcl_radial.nn.blocks import rho_of
from vcl_radial.posteriors import Gaussian


class MESU(Method):
    """Move means and scales by their own variance, and slowly back to the first prior.

    Args:
        window: W, the number of mini-batches to remember.
        rate: factor of every move.
        largest_move: largest move of a step in units of the weight's scale, below 1.
        settings: settings of `Method`.

    Raises:
        UserError: the network has no Gaussian posterior.
    """

    carries = "the posterior: the mean and the scale of every weight, which no task starts anew"
    posteriors = frozenset({"gaussian"})
    memoryless = True  # beside the posterior, which is in the network
    penalty_off_minimum = True
    penalty_grows_with_points = True

    def __init__(
        self,
        network: nn.Module,
        *,
        window: Count = 100_000,
        rate: Positive = 1.0,
        largest_move: ShareBelowOne = 0.05,
        **settings: Any,
    ) -> None:
        super().__init__(network, **settings)
        families = {block.family for block in posterior_blocks(network, [])}
        if families != {Gaussian}:
            raise wrong_posterior(type(self).__name__, self.posteriors)
        self.window, self.rate, self.largest_move = window, rate, largest_move
        self._size = 0

    def penalty(self) -> Tensor:
        """N / (B W) KL(q || p) to the first prior, in nats."""
        share = self.task.points / (self.task.batch_size * self.window)
        return share * kl_divergence(self.network, self.heads)

    def outputs(self, batch: Batch) -> Tensor:
        """The outputs of a step, whose number of points is kept."""
        self._size = len(batch.y)
        return super().outputs(batch)

    @torch.no_grad()
    def step(self, optimizer: Optimizer) -> None:
        """Move means and scales, and other parameters by the optimiser."""
        for block in posterior_blocks(self.network, self.heads):
            sigma = block.scale()
            size, limit = self.rate * self._size * sigma.square(), self.largest_move * sigma
            if block.mean.grad is not None:  # neither frozen nor out of use
                block.mean.add_((-size * block.mean.grad).clamp(-limit, limit))
            if block.rho.grad is not None:
                by_scale = block.rho.grad / -torch.expm1(-sigma)  # dsigma/drho = 1 - exp(-sigma)
                block.rho.copy_(rho_of(sigma + (-size / 2 * by_scale).clamp(-limit, limit)))
            block.mean.grad = block.rho.grad = None
        super().step(optimizer)
