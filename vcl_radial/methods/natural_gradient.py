"""The base class of VADAM, VOGN and IVON, whose optimiser updates a Gaussian posterior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.optim import Optimizer

from vcl_radial.config.ranges import Positive, ShareBelowOne
from vcl_radial.methods.base import MakeOptimizer, Method
from vcl_radial.methods.tasks import Task
from vcl_radial.nn import GaussianNetwork, WeightPosterior
from vcl_radial.optimizers.natural_gradient import (
    decay_within,
    effective_sample_size,
)


class NaturalGradientMethod(Method):
    """A method whose optimiser updates a Gaussian posterior, which is the next task's prior.

    Subclasses define `natural_optimizer`. It takes only the learning rate of the optimiser in the
    settings; `kl_weight` tempers the KL.

    Args:
        network: network of point parameters, which are the means.
        prior_scale: the first prior is N(0, prior_scale^2).
        initial_noise: a task starts with precision = prior precision + 1 / initial_noise^2.
        beta1: decay of the momentum.
        beta2: decay of the curvature; by default it depends on the number of steps of a task, see
            `vcl_radial.optimizers.decay_within`.
        predict_at_means: predict at the means, instead of with `eval_samples` draws of the weights.
        settings: settings of `Method`.

    Attributes:
        posterior: the network, with the posterior and the prior of its weights.

    Raises:
        UserError: an option is out of its range, or the weights have a posterior already.
    """

    carries = "the mean and the precision of every weight, which become the prior"
    posteriors = frozenset({"none"})
    recipe_keys = frozenset({"eval_samples", "prior_scale", "initial_noise"})
    kl_in_steps = False
    draws_in_training: ClassVar[bool] = True
    """Whether a forward pass in training draws the weights; if not, the optimiser draws them."""

    def __init__(
        self,
        network: nn.Module,
        *,
        prior_scale: Positive = 1.0,
        initial_noise: float = 0.03,
        beta1: ShareBelowOne = 0.9,
        beta2: ShareBelowOne | None = None,
        predict_at_means: bool = False,
        **settings: Any,
    ) -> None:
        self.posterior = GaussianNetwork(
            network,
            prior_scale=prior_scale,
            initial_noise=initial_noise,
            noisy_training=self.draws_in_training,
            noisy_prediction=not predict_at_means,
        )
        if predict_at_means:
            settings["eval_samples"] = 1
        super().__init__(self.posterior, **settings)
        self.beta1, self.beta2 = beta1, beta2

    @property
    def decays(self) -> dict[str, float]:
        """The optimiser's decays in the current task."""
        beta2 = decay_within(self.task.steps) if self.beta2 is None else self.beta2
        return {"beta1": self.beta1, "beta2": beta2}

    def natural_optimizer(
        self, posteriors: Sequence[WeightPosterior], lr: float, ess: float
    ) -> Optimizer:
        """Make an optimiser that updates these means and precisions.

        Args:
            posteriors: posteriors of the body and of the task's heads.
            lr: the learning rate.
            ess: the effective sample size.
        """
        raise NotImplementedError

    def make_optimizer(self, make: MakeOptimizer) -> Optimizer:
        """Make a new optimiser over the body and the heads of the task."""
        group = super().make_optimizer(make).param_groups[0]
        ess = effective_sample_size(self.task.points, self.kl_weight)
        lr = float(group.get("task_lr", group["lr"]))
        return self.natural_optimizer(self.posterior.start(self.heads), lr, ess)

    def penalty(self) -> Tensor | float:
        """KL(q || p) in nats, for the value of the loss; its gradient is in the optimiser."""
        return self.posterior.kl(self.heads) if self.loss_value else 0.0

    def end_task(self, task: Task) -> None:
        """Make the posterior the prior; the priors of other tasks' heads do not change."""
        self.posterior.carry(task.heads)
