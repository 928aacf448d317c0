"""What a method learns from: a batch, and a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vcl_radial.errors import DataError, UserError
from vcl_radial.optimizers.schedules import Schedule, constant


class Batch(NamedTuple):
    """Some points of a task.

    Attributes:
        x: inputs `[B, ...]`.
        y: targets `[B]`.
        task: the label of the head that answers, one for all rows or one per row `[B]`.
    """

    x: Tensor
    y: Tensor
    task: int | Tensor = 0

    @property
    def labels(self) -> Tensor:
        """The label of the head of each row, `[B]`."""
        return torch.as_tensor(self.task, device=self.y.device).expand(len(self.y))

    def at(self, rows: Tensor) -> Batch:
        """Some of the points, by their numbers `[b]`."""
        task = self.task[rows] if isinstance(self.task, Tensor) else self.task
        return Batch(self.x[rows], self.y[rows], task)

    def split(self, size: int) -> Iterator[Batch]:
        """All points in their order, so many at a time."""
        return map(self.at, torch.split(torch.arange(len(self.y)), size))


@dataclass(frozen=True)
class Task:
    """The data that are learned from at a time, and how long.

    Attributes:
        number: of the task, from 0.
        points: N, the training points.
        batches: gives every training point once, in the order of the data.
        heads: the labels of the heads that are trained.
        steps: of the optimiser that are to come.
        epochs: passes over the data that are to come.
        batch_size: points of a step.
        schedule: the factor of the learning rates, given the share of the epochs that is done.
    """

    number: int
    points: int
    batches: Callable[[], Iterable[Batch]]
    heads: Sequence[int] = (0,)
    steps: int = 1
    epochs: int = 1
    batch_size: int = 1
    schedule: Schedule = constant


def check_batch(batch: Batch, heads: Sequence[int] | None) -> None:
    """See that every input has its target, and a head of its task.

    Args:
        batch: some points of a task.
        heads: the labels of the task's heads; None where the network has one head for all tasks.

    Raises:
        DataError: the batch is empty, or its parts differ in length.
        UserError: a point is of another head.
    """
    x, y, task = batch
    if not len(x) or x.shape[:1] != y.shape[:1]:
        raise DataError(
            f"a batch has inputs of shape {list(x.shape)} and targets of shape {list(y.shape)}: "
            "it takes at least one input, and one target for each"
        )
    if heads is None:
        return
    labels: list[Any] = [task]
    if isinstance(task, Tensor):
        if task.shape not in ((), y.shape[:1]):
            raise DataError(
                f"the heads of a batch of {len(y)} points have shape {list(task.shape)}: give one "
                "number, or one for each point"
            )
        # A look at a GPU's values waits for it: `Method.check_labels` does so once a task.
        labels = torch.unique(task).tolist() if task.is_cpu else []
    for label in labels:
        if label not in heads or isinstance(label, bool | float):
            raise UserError(
                f"points of head {label} in a task whose heads are {list(heads)}: make the task "
                "with Task(..., heads=[...]), or give its points another head"
            )


def check_inputs(x: Tensor, whose: str) -> None:
    """See that inputs `[B, ...]` are finite numbers.

    Args:
        x: the inputs.
        whose: what they belong to, for the message.

    Raises:
        DataError: one is NaN or infinite.
    """
    if (finite := x.isfinite()).all():
        return
    rows = (~finite.reshape(len(x), -1).all(1)).nonzero().flatten()
    raise DataError(
        f"the inputs of {whose} hold {'NaN' if x.isnan().any() else 'inf'} in {len(rows)} of "
        f"{len(x)} rows of a batch, first in row {int(rows[0])}: replace it, or leave the rows out"
    )


def columns(batches: Iterable[Batch], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, targets and a label for every row of all points of some batches, on a device."""
    x, y, labels = zip(*((batch.x, batch.y, batch.labels) for batch in batches), strict=True)
    return torch.cat(x).to(device), torch.cat(y).to(device), torch.cat(labels).to(device)
