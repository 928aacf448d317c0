"""What the natural-gradient methods share as strategies: the posterior of one task, carried on."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.optim import Optimizer

from vcl_radial.nn import GaussianNetwork, WeightPosterior
from vcl_radial.optimizers.natural_gradient import (
    check_decays,
    decay_within,
    effective_sample_size,
)


class NaturalGradientMemory:
    """Mixin for a strategy whose optimiser moves a Gaussian posterior, the next task's prior.

    Put it before the strategy's base, `class Mine(NaturalGradientMemory, ContinualStrategy)`, and
    define `natural_optimizer`. Of the strategy's `optimizer` only the learning rate is taken;
    `penalty_weight` tempers the KL.

    Args:
        model: a network of point parameters: the means.
        prior_scale: the first prior is N(0, prior_scale^2).
        initial_noise: a task starts with precision = prior precision + 1 / initial_noise^2.
        beta1: decay of the momentum.
        beta2: decay of the curvature; by default what the steps of a task ask for, see
            `vcl_radial.optimizers.decay_within`.
        predict_at_means: predict at the means, in place of `eval_samples` draws of the weights.
        settings: those of the strategy's base.

    Attributes:
        posterior: the network, with the posterior and the prior of its weights.

    Raises:
        UserError: an option is out of its range, or the weights have a posterior already.
    """

    recipe_keys: ClassVar[frozenset[str]] = frozenset(
        {"eval_samples", "prior_scale", "initial_noise"}
    )
    draws_in_training: ClassVar[bool] = True
    """Whether a forward pass in training draws the weights; if not, the optimiser does."""

    # Given by the strategy.
    optimizer: Optimizer
    optimized_param_id: dict[str, Any]
    tasks: list[int]
    adapted_dataset: Sized
    dataloader: Sized
    train_epochs: int
    penalty_weight: float
    loss_value: bool

    def __init__(
        self,
        *,
        model: nn.Module,
        prior_scale: float = 1.0,
        initial_noise: float = 0.03,
        beta1: float = 0.9,
        beta2: float | None = None,
        predict_at_means: bool = False,
        **settings: Any,
    ) -> None:
        check_decays(beta1=beta1, beta2=0.0 if beta2 is None else beta2)
        posterior = GaussianNetwork(
            model,
            prior_scale=prior_scale,
            initial_noise=initial_noise,
            noisy_training=self.draws_in_training,
            noisy_prediction=not predict_at_means,
        )
        if predict_at_means:
            settings["eval_samples"] = 1
        super().__init__(model=posterior, **settings)  # type: ignore[call-arg]
        self.posterior = posterior
        self.learning_rate = float(self.optimizer.param_groups[0]["lr"])
        self.beta1, self.beta2 = beta1, beta2

    @property
    def decays(self) -> dict[str, float]:
        """Those of the optimiser, for the experience that is trained."""
        beta2 = self.beta2
        if beta2 is None:
            beta2 = decay_within(self.train_epochs * len(self.dataloader))
        return {"beta1": self.beta1, "beta2": beta2}

    def natural_optimizer(self, posteriors: Sequence[WeightPosterior], ess: float) -> Optimizer:
        """An optimiser that moves these means and precisions, for an effective sample size."""
        raise NotImplementedError

    def make_optimizer(self, **kwargs: Any) -> None:
        """Start the optimiser afresh on the body and the heads of the experience."""
        ess = effective_sample_size(len(self.adapted_dataset), self.penalty_weight)
        self.optimizer = self.natural_optimizer(self.posterior.start(self.tasks), ess)
        self.optimized_param_id = {}

    def penalty(self) -> Tensor | float:
        """KL(q || p) in nats, for whoever reads the loss; its gradient is in the optimiser."""
        return self.posterior.kl(self.tasks) if self.loss_value else 0.0

    def consolidate(self, experience: Any) -> None:
        """Make the posterior the prior; heads of other tasks keep theirs."""
        self.posterior.carry(experience.task_labels)
