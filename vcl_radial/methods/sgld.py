"""Stochastic gradient Langevin dynamics (Welling and Teh 2011), carried forward.

The steps of a task draw from its tempered posterior exp(-(U(w)) / T), U the negative logarithm of
likelihood and prior:

    w <- w - eps/2 N g + N(0, eps T),    g = gradient of mean NLL + kl_weight R / N,   eps = 2 r / N

with r the learning rate, so that a step is w <- w - r g + N(0, 2 r T / N). The iterates after
the burn-in, the first `collect_from` of the steps, are the samples. Predictions draw from the last
ones; the diagonal Gaussian of all of them is the next task's prior, see
`vcl_radial.methods.iterates`. The first prior is N(0, prior_scale^2). The paper has no sequence of
tasks.

Without a schedule the rate is constant: for a curvature h of U the variance of the iterates is then
T / (h (1 - r h / (2 N))) plus that of the mini-batches' gradients, which vanishes with r. A burn-in
shorter than N / (r h) steps gives too small a variance.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from vcl_radial.config.ranges import NotNegative, Positive
from vcl_radial.methods.base import MakeOptimizer
from vcl_radial.methods.iterates import IterateMethod
from vcl_radial.methods.tasks import Task


class SGLD(IterateMethod):
    """Sample the posterior by noisy gradient steps; carry its mean and diagonal.

    It takes only the learning rate of the optimiser in the settings.

    Args:
        prior_scale: the first prior is N(0, prior_scale^2).
        temperature: T; 1 is the posterior, and 0 is gradient descent.
        settings: settings of `IterateMethod`.
    """

    recipe_keys = frozenset({"eval_samples", "prior_scale"})

    def __init__(
        self,
        network: nn.Module,
        *,
        prior_scale: Positive = 1.0,
        temperature: NotNegative = 1.0,
        **settings: Any,
    ) -> None:
        super().__init__(network, **settings)
        self.prior_precision, self.temperature = prior_scale**-2, temperature

    def begin_task(self, task: Task) -> None:
        """Give new weights the first prior."""
        super().begin_task(task)
        for name, weight in self.parameters_in_use().items():
            if name not in self.past.precision:
                self.past.centre[name] = torch.zeros_like(weight)
                self.past.precision[name] = torch.full_like(weight, self.prior_precision)

    def make_optimizer(self, make: MakeOptimizer) -> Optimizer:
        """Plain gradient descent at the rates of the settings."""
        groups = super().make_optimizer(make).param_groups
        return SGD(
            [{"params": g["params"], "lr": float(g.get("task_lr", g["lr"]))} for g in groups]
        )

    @torch.no_grad()
    def step(self, optimizer: Optimizer) -> None:
        """Take a gradient step with noise."""
        noise = {
            weight: math.sqrt(2 * float(group["lr"]) * self.temperature / self.task.points)
            for group in optimizer.param_groups
            for weight in group["params"]
            if weight.grad is not None
        }
        for weight, scale in noise.items():
            weight.add_(torch.randn_like(weight), alpha=scale)
        super().step(optimizer)

    def draw(self) -> dict[str, Tensor]:
        """One of the iterates that are kept, by chance."""
        kept = min(max(self.iterates.count.values()), self.kept)
        row = int(torch.randint(kept, ()))
        rows = {name: self.iterates.rows(name) for name in self.iterates.count}
        return {name: some[row % len(some)] for name, some in rows.items()}
