"""What every continual-learning method of the suite shares.

A method says how the current objective sees the past (`penalty`) and how a finished task is
consolidated (`consolidate`). Heads, batches, the objective's scale, evaluation and the optimiser
come with the base. It is a real Avalanche strategy: it trains on any Avalanche classification
benchmark, with stock plugins, metrics and loggers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import torch
from avalanche.models import MultiTaskModule
from avalanche.training.plugins import LRSchedulerPlugin
from avalanche.training.templates import SupervisedTemplate
from torch import Tensor, nn
from torch.nn.functional import nll_loss
from torch.optim import Optimizer

from vcl_radial.data.streams import TensorLoading, TensorStream
from vcl_radial.errors import Diverged, UserError
from vcl_radial.nn.movement import LayerMovement
from vcl_radial.objectives import categorical_nll, per_point
from vcl_radial.strategies.callbacks import StepCallbacks
from vcl_radial.strategies.schedules import Schedule, constant
from vcl_radial.strategies.task_model import (
    TaskModel,
    log_predictive_of,
    require_known_heads,
)


class ContinualStrategy(StepCallbacks, TensorLoading, SupervisedTemplate):
    """Learn one experience after another; the past enters the loss as a term in nats.

        loss = mean NLL + penalty_weight * penalty / N

    with N the number of training points of the experience.

    Args:
        model: a network, called as `network(x, task)` when it holds a
            `vcl_radial.nn.MultiHead` and as `network(x)` when not, or an Avalanche
            `MultiTaskModule`.
        optimizer: an optimiser over the model's parameters, or a function that makes one for a
            module; its state starts afresh with every experience.
        penalty_weight: factor of the penalty.
        train_samples: weight samples in the estimate of the NLL.
        eval_samples: weight samples in a prediction.
        eval_seed: of the weight samples in a prediction.
        tensor_stream: what the benchmark was made from, on the strategy's device, to cut batches
            from; without it Avalanche's own loaders serve.
        loss_value: whether the loss holds the penalty's value, for whoever reads it. Without it a
            method may give only the penalty's gradient, which can be cheaper.
        schedule: factor of the learning rates in an epoch, given the share of the task's epochs
            that is done.
        drop_last: leave out the last, incomplete batch of each training epoch.
        settings: those of Avalanche's `SupervisedTemplate`: `train_mb_size`, `train_epochs`,
            `eval_mb_size`, `device`, `plugins`, `evaluator`, `eval_every`.

    Raises:
        UserError: another criterion is given, or an optimiser that cannot serve every experience.
        Diverged: the loss is not a finite number at the end of an epoch.
    """

    needs_whole_stream: ClassVar[bool] = False
    """Whether the method trains once on all experiences together."""
    memoryless: ClassVar[bool] = False
    """Whether the method carries nothing from task to task, by design."""
    trains_old_heads: ClassVar[bool] = False
    """Whether the heads of earlier tasks go on changing, by design."""
    penalty_off_minimum: ClassVar[bool] = False
    """Whether the penalty of the next task is not minimal where the last one ended, by design: a
    prior that is broadened, say, or a term beside the distance from the past."""
    penalty_grows_with_points: ClassVar[bool] = False
    """Whether the penalty grows with the task's number of training points, by design: the base
    class divides by it, so that the loss then holds a mean over the points."""
    memory_is_mean: ClassVar[bool] = False
    """Whether what a task leaves is a mean over its points, by design, as in MAS as published: a
    task then counts the same in the past however many points it had."""
    recipe_keys: ClassVar[frozenset[str]] = frozenset()
    """What the method takes of a recipe beside the settings below, where it keeps a posterior of
    its own over a network of point estimates: of "prior_scale" and "initial_noise" those that its
    constructor has, and "eval_samples" where its predictions draw."""

    def __init__(
        self,
        *,
        model: nn.Module,
        optimizer: Optimizer | Callable[[nn.Module], Optimizer],
        penalty_weight: float = 1.0,
        train_samples: int = 1,
        eval_samples: int = 100,
        eval_seed: int = 0,
        loss_value: bool = True,
        schedule: Schedule = constant,
        drop_last: bool = False,
        tensor_stream: TensorStream | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(model, MultiTaskModule):
            for inner in model.modules():  # wrapped by a method that gives it a posterior
                if isinstance(inner, MultiTaskModule):
                    require_known_heads(inner, type(self).__name__)
            model = TaskModel(model, eval_samples, eval_seed)
        self._make_optimizer = None if isinstance(optimizer, Optimizer) else optimizer
        _refuse_other_loss(settings.setdefault("criterion", nn.CrossEntropyLoss()))
        super().__init__(
            model=model,
            optimizer=optimizer if isinstance(optimizer, Optimizer) else optimizer(model),
            **settings,
        )
        self.penalty_weight = penalty_weight
        self.train_samples = train_samples
        self.loss_value = loss_value
        self.schedule = schedule
        self.drop_last = drop_last
        self.tensor_stream = tensor_stream
        self.mb_logits: Tensor | None = None
        self.movement: Sequence[LayerMovement] = ()
        """Of the last task's posterior against its prior, where the method has one."""

    def penalty(self) -> Tensor | float:
        """What the past asks of the weights, a scalar in nats; 0 for a method without memory."""
        return 0.0

    def consolidate(self, experience: Any) -> None:
        """Carry a finished experience forward; nothing for a method without memory."""

    def state_dict(self) -> dict[str, Any]:
        """All that is carried from task to task, as plain tensors; extend it for more than that."""
        return {"model": self.model.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.model.load_state_dict(state["model"])

    @property
    def network(self) -> nn.Module:
        """The network inside Avalanche's model."""
        return self.model.network if isinstance(self.model, TaskModel) else self.model

    @property
    def tasks(self) -> list[int]:
        """The task labels of the current experience."""
        return sorted(self.experience.task_labels)

    def forward(self) -> Tensor:
        """The current mini-batch's output `[B, C]`: logits in training, log-predictive else.

        With several training samples the output is the log of their mean probability; the loss
        looks at each of them.
        """
        if not self.is_training or self.train_samples == 1:
            self.mb_logits = output = self._output()
            return output
        self.mb_logits = torch.stack([self._output() for _ in range(self.train_samples)])
        return self.mb_logits.log_softmax(-1).logsumexp(0) - math.log(self.train_samples)

    def _output(self) -> Tensor:
        """What the model says of the mini-batch."""
        task = self.sole_task
        output: Tensor
        if task is not None and isinstance(self.model, TaskModel):
            # A number, not a label per row: nobody has to look at those and wait for the device.
            output = self.model(self.mb_x, task)
        elif self.is_training:
            output = super().forward()
        else:
            output = log_predictive_of(self.model, self.mb_x, self.mb_task_id)
        return output

    def criterion(self) -> Tensor:
        """Mean NLL, and in training the penalty over N; nats per point."""
        if not self.is_training:
            return nll_loss(self.mb_output, self.mb_y)
        assert self.mb_logits is not None
        nll = categorical_nll(self.mb_logits, self.mb_y)
        penalty = self.penalty()
        if isinstance(penalty, Tensor):
            return nll + per_point(penalty, len(self.adapted_dataset), self.penalty_weight)
        return nll

    def make_optimizer(self, **kwargs: Any) -> None:
        """Start the optimiser afresh: Adam's moments belong to the task that made them."""
        if self._make_optimizer is not None:
            self.optimizer = self._make_optimizer(self.model)
            self.optimized_param_id: dict[str, Any] = {}
            _refuse_stale_schedulers(self.plugins, self.optimizer)
            return
        try:
            super().make_optimizer(**{**kwargs, "reset_optimizer_state": True})
        except AttributeError as error:  # a new head belongs to none of several groups
            if "No unique group" not in str(error):
                raise
            raise UserError(
                "a new head has no place among the optimiser's groups of parameters: give "
                "optimizer as a function of the model that makes the groups"
            ) from error

    def make_train_dataloader(
        self, shuffle: bool = True, drop_last: bool | None = None, **kwargs: Any
    ) -> None:
        """Batches cut from one tensor where the benchmark allows it, else Avalanche's loader."""
        drop_last = self.drop_last if drop_last is None else drop_last
        super().make_train_dataloader(shuffle=shuffle, drop_last=drop_last, **kwargs)

    def _before_training_epoch(self, **kwargs: Any) -> None:
        super()._before_training_epoch(**kwargs)
        self.set_rates(self.optimizer, self.clock.train_exp_epochs / self.train_epochs)

    def set_rates(self, optimizer: Optimizer, share: float) -> None:
        """Set the learning rates to what the schedule has after this share of the epochs."""
        if self.schedule is constant:  # somebody else may schedule them
            return
        factor = self.schedule(share)
        for group in optimizer.param_groups:
            group["lr"] = factor * group.setdefault("task_lr", group["lr"])

    def _after_training_epoch(self, **kwargs: Any) -> None:
        if not torch.isfinite(self.loss):
            raise Diverged(
                f"the loss became {self.loss.item()} in epoch {self.clock.train_exp_epochs + 1} "
                f"of task {self.experience.current_experience + 1}; try a smaller learning_rate"
            )
        super()._after_training_epoch(**kwargs)

    def _after_training_exp(self, **kwargs: Any) -> None:
        # Before the plugins: their evaluations and checkpoints are to see the new prior.
        self.consolidate(self.experience)
        super()._after_training_exp(**kwargs)


def _refuse_other_loss(criterion: Any) -> None:
    """Raises UserError: the loss is not the one that the objective is made of."""
    plain = nn.CrossEntropyLoss()
    if (
        type(criterion) is nn.CrossEntropyLoss
        and criterion.weight is None
        and vars(criterion).keys() == vars(plain).keys()
        and (criterion.reduction, criterion.label_smoothing, criterion.ignore_index)
        == (plain.reduction, plain.label_smoothing, plain.ignore_index)
    ):
        return
    raise UserError(
        f"criterion = {criterion}: the loss is the mean negative log-likelihood of the classes, "
        "nn.CrossEntropyLoss(); for another one override criterion() in a subclass"
    )


def _refuse_stale_schedulers(plugins: Iterable[Any], optimizer: Optimizer) -> None:
    """Raises UserError: a plugin turns the rates of an optimiser that is no longer in use."""
    for plugin in plugins:
        if isinstance(plugin, LRSchedulerPlugin) and plugin.scheduler.optimizer is not optimizer:
            raise UserError(
                "an LRSchedulerPlugin schedules one optimiser, and a function makes a new one for "
                "each experience: give optimizer as an instance, or say schedule instead"
            )
