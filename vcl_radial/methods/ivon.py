"""Improved variational online Newton (Shen et al. 2024), carried forward.

    q_t = N(mean, 1 / precision) = argmin_q  E_q[ -log p(D_t | w) ] + KL(q || q_{t-1})

with the optimiser of the package `ivon-opt`, whose estimate of the diagonal Hessian needs no
squares: E_q[ H ] = E_q[ (w - mean) g ] precision. Its prior is N(0, 1 / (ess * weight_decay)) and
its posterior's precision is ess (hessian + weight_decay). To hold the previous posterior N(mean_p,
1 / precision_p) as the prior,

    weight_decay = precision_p / ess, a value for each weight, and
    its step is taken in the coordinates w - mean_p,

in which the carried prior has the package's form. On a quadratic loss the fixed point
is then the exact mean and precision, up to a relative 1 - beta2 in the precision, which comes from
the term in the package's Hessian step that keeps it positive.

A moving average that is long enough for the estimate's noise still contains beta2^t of the initial
Hessian h_0 after the t steps of a task. By default the carried posterior is the package's,
including h_0: a task adds the precision beta2^t / initial_noise^2 to every weight, which acts as an
L2 penalty. With `debias`, predictions still draw from this posterior, but only the part of the
Hessian that comes from the data is carried:

    h_data = max(0, (hessian - beta2^t h_0) / (1 - beta2^t))
    precision_t = precision_{t-1} + ess h_data

so that a weight without data keeps its prior, up to (1 - beta2) / 2 of ess h_0. In a task of some
hundred steps h_data is mostly the noise of the estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vcl_radial.config.ranges import Positive, ShareBelowOne
from vcl_radial.errors import UserError
from vcl_radial.methods.natural_gradient import NaturalGradientMethod
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import WeightPosterior


class IVON(NaturalGradientMethod):
    """Train by IVON; the posterior of the body and of the trained heads becomes their prior.

    The learning rate is in the unit of the package: the step of the means is learning rate *
    (initial hessian + first weight decay) / (hessian + weight decay). The Hessian belongs to the
    mean NLL.

    Args:
        initial_noise: a task starts with precision = prior precision + 1 / initial_noise^2.
        train_samples: weight samples in a step, with one backward pass per sample.
        beta2: decay of the Hessian. The estimate of a step is so noisy that the average needs
            thousands of steps: a shorter decay lets the noise through.
        debias: carry only the part of the Hessian that comes from the data.
        settings: settings of `NaturalGradientMethod`.

    Raises:
        UserError: the package is not installed, or an option is out of its range.
    """

    draws_in_training = False

    def __init__(
        self,
        network: nn.Module,
        *,
        initial_noise: Positive = 0.03,
        train_samples: int = 1,
        beta2: ShareBelowOne | None = 0.999,
        debias: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(network, initial_noise=initial_noise, beta2=beta2, **settings)
        self.draws_of_step, self.debias = train_samples, debias
        try:
            self._optimizer_class = import_module("ivon").IVON
        except ImportError:
            raise UserError(
                "strategy = 'ivon' needs the package ivon-opt: pip install 'vcl-radial[ivon]'"
            ) from None
        self._ivon: Any = None
        self._ess = 1.0
        self._parts: Sequence[WeightPosterior] = []
        self._draw: AbstractContextManager[None] | None = None
        self._kl: Tensor | float = 0.0
        self._batch: Batch | None = None

    def natural_optimizer(
        self, posteriors: Sequence[WeightPosterior], lr: float, ess: float
    ) -> Optimizer:
        """The package's optimiser on these posteriors, with a decay for each weight."""
        initial = self.posterior.initial_precision / ess
        self._ess = ess
        self._parts = posteriors
        self._ivon = self._optimizer_class(
            [q.mean for q in posteriors],
            # The rate is scaled here as the package does for a single weight decay; with one decay
            # per weight the package would scale the step of each weight by a different factor.
            lr=lr * (initial + self.posterior.prior_precision / ess),
            rescale_lr=False,
            ess=ess,
            hess_init=initial,
            **self.decays,
        )
        decay = torch.cat([q.prior_precision.flatten() for q in posteriors]) / ess
        self._ivon.param_groups[0]["weight_decay"] = decay
        optimizer: Optimizer = self._ivon
        return optimizer

    def outputs(self, batch: Batch) -> Tensor:
        """The outputs under one draw, which lasts until the end of the backward pass."""
        self._batch = batch
        (group,) = self._ivon.param_groups
        if group["ess"] != self._ess:  # loaded from a task with another number of points
            group["weight_decay"] = group["weight_decay"] * (group["ess"] / self._ess)
            group["ess"] = self._ess
        # This comes before the draw, which replaces the means.
        self._kl = self.penalty()
        self._draw = self._ivon.sampled_params(train=True)
        self._draw.__enter__()
        return super().outputs(batch)

    def backward(self, loss: Tensor) -> Tensor:
        """Accumulate the gradients under all draws; returns the mean loss over the draws."""
        losses = [self._backward_of_draw(loss)]
        for _ in range(self.draws_of_step - 1):
            self._ivon.zero_grad()
            assert self._batch is not None
            loss = self.loss(self._batch, self.outputs(self._batch))
            losses.append(self._backward_of_draw(loss))
        return torch.stack([value.squeeze() for value in losses]).mean()

    def _backward_of_draw(self, loss: Tensor) -> Tensor:
        assert self._draw is not None
        loss = super().backward(loss)
        self._draw.__exit__(None, None, None)
        self._draw = None
        return loss

    @torch.no_grad()
    def step(self, optimizer: Optimizer) -> None:
        """Step in coordinates centred at the prior's mean."""
        means = (q.mean for q in self._parts)
        # The momentum of the package would move means that were frozen during the task.
        frozen = [(mean, mean.clone()) for mean in means if not mean.requires_grad]
        for q in self._parts:
            q.mean.sub_(q.prior_mean)
        self._ivon.step()
        for q in self._parts:
            q.mean.add_(q.prior_mean)
        for mean, value in frozen:
            mean.copy_(value)
        (group,) = self._ivon.param_groups
        precision = group["ess"] * (group["hess"] + group["weight_decay"])
        pieces = precision.split([q.mean.numel() for q in self._parts])
        for q, piece in zip(self._parts, pieces, strict=True):
            q.precision = piece.view_as(q.mean)

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        """Make the posterior the prior; with `debias` only the part that comes from the data."""
        if not self.debias:
            super().end_task(task)
            return
        (group,) = self._ivon.param_groups
        start = group["beta2"] ** self._ivon.current_step  # the share of h_0
        # The lower bound keeps a task without steps finite.
        data = (group["hess"] - start * group["hess_init"]).div(max(1 - start, 1e-12)).clamp(min=0)
        pieces = (group["ess"] * data).split([q.mean.numel() for q in self._parts])
        for q, piece in zip(self._parts, pieces, strict=True):
            precision = q.prior_precision + piece.view_as(q.mean)
            q.carry()
            q.prior_precision = precision

    def penalty(self) -> Tensor | float:
        """KL(q || p) in nats, for the value of the loss; its gradient is in the optimiser."""
        if self._draw is not None:
            return self._kl
        return super().penalty()

    def state_dict(self) -> dict[str, Any]:
        """The state of every method, and the number of steps, which the package does not store."""
        steps = {} if self._ivon is None else {"steps": self._ivon.current_step}
        return super().state_dict() | steps

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        if self._ivon is not None and "steps" in state:
            self._ivon.current_step = state["steps"]
