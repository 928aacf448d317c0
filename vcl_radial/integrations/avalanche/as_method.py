"""A user's Avalanche strategy as a method, for tracks with a loop in plain PyTorch.

Such a loop calls the strategy's method, and the method calls the hooks that the strategy defines:
its penalty, the end of a task, and its state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.utils.data import DataLoader, Dataset, TensorDataset

from vcl_radial.errors import UserError
from vcl_radial.integrations.avalanche.base import ContinualStrategy
from vcl_radial.likelihoods.predict import in_mode
from vcl_radial.methods.base import MakeOptimizer, Method
from vcl_radial.methods.options import require_base
from vcl_radial.methods.tasks import Batch, Task, columns
from vcl_radial.system.quiet import quiet

HOOKS = ("penalty", "consolidate", "state_dict", "load_state_dict")
"""Methods of a strategy that are called outside of Avalanche's loop."""


class TaskPoints(Dataset[tuple[Tensor, ...]]):
    """The points of a task in Avalanche's form: input, target and task label.

    They are loaded when the first point is read.
    """

    def __init__(self, task: Task) -> None:
        self.task = task

    @cached_property
    def _rows(self) -> TensorDataset:
        return TensorDataset(*columns(self.task.batches(), torch.device("cpu")))

    def __len__(self) -> int:
        return self.task.points

    def __getitem__(self, row: int) -> tuple[Tensor, ...]:
        point: tuple[Tensor, ...] = self._rows[row]
        return point


@dataclass(frozen=True)
class TaskExperience:
    """The part of an experience that a strategy may read.

    Attributes:
        current_experience: number of the task, from 0.
        task_labels: labels of the task's heads.
        dataset: the task's training points, unchanged.
    """

    current_experience: int
    task_labels: Sequence[int]
    dataset: TaskPoints

    @property
    def task_label(self) -> int:
        """The label of the only head."""
        (label,) = self.task_labels
        return label


def method_of(cls: type[ContinualStrategy], network: nn.Module, **settings: Any) -> Method:
    """The method of a strategy, made for a network.

    Args:
        cls: class of the strategy.
        network: network that it trains.
        settings: settings of `Method`, and further parameters of the strategy's constructor.

    Raises:
        UserError: the strategy overrides the step or the loop.
    """
    base = ContinualStrategy
    fixed = {name for name in dir(base) if name[:2] != "__"} - {*HOOKS, "method_class"}
    for name in sorted(fixed):
        if callable(getattr(base, name)) and getattr(cls, name) is not getattr(base, name):
            raise UserError(
                f"{cls.__name__} overrides {name}(), which Avalanche alone calls, and this "
                f"track trains without it: define {', '.join(HOOKS)} alone, or derive the class "
                "from vcl_radial.methods.base.Method"
            )
    with quiet():
        strategy = cls(
            model=network,
            optimizer=lambda model: Adam(model.parameters()),  # replaced when a task begins
            device=next(network.parameters()).device,
            evaluator=None,
            **settings,
        )
    require_base(strategy)
    return _bound_to(strategy)


def _bound_to(strategy: ContinualStrategy) -> Method:
    """The strategy's method, which calls the strategy's `HOOKS`."""
    method = strategy.method
    plain = type(method)

    def begin_task(task: Task) -> None:
        points = TaskPoints(task)
        strategy.experience = TaskExperience(task.number, list(task.heads), points)
        strategy.adapted_dataset, strategy.dataloader = points, DataLoader(points, task.batch_size)
        strategy.train_epochs, strategy.train_mb_size = task.epochs, task.batch_size
        strategy.is_training = True
        # The strategy's own penalty has no closed-form gradient.
        method.gradients_are_read |= type(strategy).penalty is not ContinualStrategy.penalty
        plain.begin_task(method, task)

    def end_task(task: Task) -> None:
        with in_mode(method.network, training=False):
            strategy.consolidate(strategy.experience)

    def make_optimizer(make: MakeOptimizer) -> Optimizer:
        strategy.optimizer = plain.make_optimizer(method, make)
        return strategy.optimizer

    def loss(batch: Batch, outputs: Tensor) -> Tensor:
        strategy.mbatch = [batch.x, batch.y, batch.labels]
        strategy.mb_output = strategy.mb_logits = outputs
        return plain.loss(method, batch, outputs)

    vars(method).update(
        begin_task=begin_task,
        make_optimizer=make_optimizer,
        loss=loss,
        end_task=end_task,
        state_dict=strategy.state_dict,
        load_state_dict=strategy.load_state_dict,
    )
    return method
