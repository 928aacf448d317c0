"""Variational Adam (Khan et al. 2018), carried forward.

    q_t = N(mean, 1 / precision) ~ argmin_q  E_q[ -log p(D_t | w) ] + KL(q || q_{t-1})

by steps in the shape of Adam's, whose moving average s of squared mini-batch gradients stands for
the curvature of the mean NLL:

    precision_t = precision_{t-1} + N s

The prior is the whole previous posterior, a mean and a precision for each weight: its gradient and
its precision enter each step (`vcl_radial.optimizers.vadam`), not the loss. s depends on the
batch size, about as 1/B near an optimum, and with it how much of a task is carried.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from vcl_radial.optimizers import (
    GaussianNetwork,
    check_decays,
    effective_sample_size,
    learning_rate_of,
)
from vcl_radial.optimizers.vadam import Vadam
from vcl_radial.strategies.base import ContinualStrategy


class VADAM(ContinualStrategy):
    """Train by Vadam; the posterior of the body and of the trained heads becomes their prior.

    Of `optimizer` only the learning rate is taken. `penalty_weight` tempers the KL.

    Args:
        model: a network of point parameters: the means.
        prior_scale: the first prior is N(0, prior_scale^2).
        initial_noise: a task starts with precision = prior precision + 1 / initial_noise^2.
        beta1: decay of the momentum.
        beta2: decay of the squared gradient.
        posterior_samples: weight samples in a prediction, in place of `eval_samples`; 0: predict
            at the means.
        settings: those of `ContinualStrategy`.

    Raises:
        UserError: an option is out of its range.
    """

    def __init__(
        self,
        *,
        model: nn.Module,
        prior_scale: float = 1.0,
        initial_noise: float = 0.03,
        beta1: float = 0.9,
        beta2: float = 0.999,
        posterior_samples: int = 100,
        **settings: Any,
    ) -> None:
        check_decays(beta1=beta1, beta2=beta2)
        network = GaussianNetwork(
            model,
            prior_scale=prior_scale,
            initial_noise=initial_noise,
            noisy_prediction=posterior_samples > 0,
        )
        super().__init__(model=network, **settings | {"eval_samples": max(posterior_samples, 1)})
        self.posterior = network
        self.learning_rate = learning_rate_of(self.optimizer)
        self.hyperparameters = {"beta1": beta1, "beta2": beta2}

    def make_optimizer(self, **kwargs: Any) -> None:
        """Start Vadam afresh on the body and the heads of the experience."""
        self.optimizer = Vadam(
            self.posterior.start(self.tasks),
            lr=self.learning_rate,
            ess=effective_sample_size(len(self.adapted_dataset), self.penalty_weight),
            **self.hyperparameters,
        )
        self.optimized_param_id = {}

    def penalty(self) -> Tensor | float:
        """KL(q || p) in nats, for whoever reads the loss; its gradient is in the optimiser."""
        return self.posterior.kl(self.tasks) if self.loss_value else 0.0

    def consolidate(self, experience: Any) -> None:
        """Make the posterior the prior; heads of other tasks keep theirs."""
        self.posterior.carry(experience.task_labels)
