"""The data that a method learns from: a batch, and a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
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
        task: the label of the head, one for all rows or one per row `[B]`.
    """

    x: Tensor
    y: Tensor
    task: int | Tensor = 0

    @property
    def labels(self) -> Tensor:
        """The label of the head of each row, `[B]`."""
        return torch.as_tensor(self.task, device=self.y.device).expand(len(self.y))

    def at(self, rows: Tensor) -> Batch:
        """Some of the points, by their indices `[b]`."""
        task = self.task[rows] if isinstance(self.task, Tensor) else self.task
        return Batch(self.x[rows], self.y[rows], task)

    def to(self, device: torch.device) -> Batch:
        """The points on a device."""
        if self.x.device == device == self.y.device:
            return self
        task = self.task.to(device) if isinstance(self.task, Tensor) else self.task
        return Batch(self.x.to(device), self.y.to(device), task)

    def split(self, size: int) -> Iterator[Batch]:
        """All points in their order, in batches of this size."""
        return map(self.at, torch.split(torch.arange(len(self.y)), size))


@dataclass(frozen=True)
class Task:
    """The data of one task, and the length of the training.

    Attributes:
        number: number of the task, from 0.
        points: N, the number of training points.
        batches: returns every training point once, in the order of the data.
        heads: labels of the heads that are trained.
        steps: number of optimiser steps.
        epochs: number of passes over the data.
        batch_size: number of points in a step.
        schedule: factor of the learning rates as a function of the fraction of finished epochs.
    """

    number: int
    points: int
    batches: Callable[[], Iterable[Batch]]
    heads: Sequence[int] = (0,)
    steps: int = 1
    epochs: int = 1
    batch_size: int = 1
    schedule: Schedule = constant


def _no_batches() -> Iterator[Batch]:
    return iter(())


NO_TASK = Task(0, 1, _no_batches)
"""The batches of a method that has not begun a task."""


class WarmUp(NamedTuple):
    """Epochs before a task's own epochs.

    Attributes:
        epochs: number of epochs.
        inside: context manager that is open during these epochs.
    """

    epochs: int
    inside: AbstractContextManager[None]


def check_batch(batch: Batch, heads: Sequence[int] | None) -> None:
    """Check that every input has a target, and a head of its task.

    Args:
        batch: some points of a task.
        heads: labels of the task's heads; None where the network has one head for all tasks.

    Raises:
        DataError: the batch is empty, or its parts differ in length.
        UserError: a point belongs to another head.
    """
    x, y, task = batch
    if not len(x) or x.shape[:1] != y.shape[:1]:
        raise DataError(
            f"a batch has inputs of shape {list(x.shape)} and targets of shape {list(y.shape)}: "
            "it needs at least one input, and one target per input"
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
        # A read of values on a GPU waits for the GPU: `check_labels` does it once per task.
        labels = torch.unique(task).tolist() if task.is_cpu else []
    for label in labels:
        if label not in heads or isinstance(label, bool | float):
            raise UserError(
                f"points of head {label} in a task whose heads are {list(heads)}: make the task "
                "with Task(..., heads=[...]), or give its points another head"
            )


def check_inputs(x: Tensor, source: str) -> None:
    """Check that inputs `[B, ...]` are finite numbers.

    Args:
        x: the inputs.
        source: name of the source of the inputs, for the message.

    Raises:
        DataError: an input is NaN or infinite.
    """
    if (finite := x.isfinite()).all():
        return
    rows = (~finite.reshape(len(x), -1).all(1)).nonzero().flatten()
    raise DataError(
        f"the inputs of {source} hold {'NaN' if x.isnan().any() else 'inf'} in {len(rows)} of "
        f"{len(x)} rows of a batch, first in row {int(rows[0])}: replace it, or leave the rows out"
    )


def columns(batches: Iterable[Batch], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, targets and labels of the rows of some batches, concatenated on a device."""
    x, y, labels = zip(*((batch.x, batch.y, batch.labels) for batch in batches), strict=True)
    return torch.cat(x).to(device), torch.cat(y).to(device), torch.cat(labels).to(device)


def calls(
    batch: Batch, device: torch.device, *, by_head: bool
) -> Iterator[tuple[tuple[Any, ...], Tensor]]:
    """The arguments of a network's calls on a batch, inputs `[b, ...]` first, and targets `[b]`.

    Args:
        batch: some points of a task.
        device: the network's device.
        by_head: whether to make a call per head, with its label as the second argument.
    """
    x, y, labels = batch.x.to(device), batch.y.to(device), batch.labels.to(device)
    if not by_head:
        yield (x,), y
        return
    for task in torch.unique(labels).tolist():
        rows = labels == task
        yield (x[rows], task), y[rows]
