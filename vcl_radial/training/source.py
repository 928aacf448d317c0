"""The sources of training data: one task after another."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    default_collate,
)

from vcl_radial.config import ranges
from vcl_radial.config.ranges import Count
from vcl_radial.data.streams.tensors import TaskData as StreamTask
from vcl_radial.errors import DataError, UserError, bad_value
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Batch


@runtime_checkable
class TaskData(Protocol):
    """The data of one task."""

    @property
    def name(self) -> str:
        """Name of the task, for messages."""

    @property
    def heads(self) -> Sequence[int]:
        """Labels of the heads that the task trains."""

    @property
    def batch_size(self) -> int:
        """Number of points in a step."""

    @property
    def epoch_steps(self) -> int:
        """Number of steps in an epoch."""

    def __len__(self) -> int:
        """N, the number of points."""

    def select(self, rows: Tensor) -> TaskData:
        """Some of the points, by their indices `[n]`."""

    def batches(self) -> Iterable[Batch]:
        """Every point once, in the order of the data."""

    def epoch(self, number: int) -> Iterable[Batch]:
        """The batches of an epoch; warm-up epochs have the numbers after the normal epochs."""


class TaskSource:
    """Tasks in their order, and the validation score of a method. A track extends it."""

    has_validation = False
    """Whether `validate` gives a score."""

    def tasks(self) -> Sequence[TaskData]:
        """The tasks, in order."""
        raise NotImplementedError

    def together(self) -> TaskData:
        """All tasks joined to one, for a method that needs the whole stream.

        Raises:
            UserError: the source has several tasks and does not join them.
        """
        tasks = self.tasks()
        if len(tasks) > 1:
            raise UserError(
                "a method that learns all tasks at once needs their points as tensors, or as "
                "datasets whose items are collated as PyTorch does"
            )
        return tasks[0]

    def validate(self, method: Method, task: int) -> float:
        """The score of a method on held-out points of a task in training; higher is better."""
        return math.nan


class _Batches(ABC):
    """The number of steps in an epoch of `batch_size` points a step."""

    batch_size: int
    drop_last: bool

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def epoch_steps(self) -> int:
        """Number of steps in an epoch."""
        full, rest = divmod(len(self), self.batch_size)
        return full + (rest > 0 and not self.drop_last)


@dataclass(frozen=True)
class TensorTask(_Batches):
    """A task whose points are tensors in memory; each epoch draws a random order.

    Attributes:
        name: name of the task.
        points: all points.
        heads: labels of the heads that the task trains.
        batch_size: number of points in a step.
        drop_last: whether to leave out the last batch of an epoch if it is smaller.
    """

    name: str
    points: Batch
    heads: Sequence[int] = (0,)
    batch_size: int = 32
    drop_last: bool = False

    def __len__(self) -> int:
        return len(self.points.y)

    def select(self, rows: Tensor) -> TensorTask:
        """Some of the points, by their indices `[n]`."""
        return replace(self, points=self.points.at(rows))

    def batches(self) -> Iterator[Batch]:
        """Every point once, in the order of the data."""
        return self.points.split(self.batch_size)

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch, in an order from PyTorch's global generator."""
        order = torch.randperm(len(self)).to(self.points.y.device)
        return map(self.points.at, torch.split(order, self.batch_size)[: self.epoch_steps])


@dataclass(frozen=True)
class DatasetTask(_Batches):
    """A task whose points come from a `torch.utils.data.Dataset`, batch by batch.

    An item is an input and a target, or an input, a target and the label of its head.

    Attributes:
        name: name of the task.
        dataset: the points.
        heads: labels of the heads that the task trains.
        batch_size: number of points in a step.
        drop_last: whether to leave out the last batch of an epoch if it is smaller.
        loader: a user's loader of the points, with its order, workers and collation.
    """

    name: str
    dataset: Dataset[Any]
    heads: Sequence[int] = (0,)
    batch_size: int = 32
    drop_last: bool = False
    loader: DataLoader[Any] | None = None

    def __len__(self) -> int:
        return len(cast(Any, self.dataset))

    def select(self, rows: Tensor) -> DatasetTask:
        """Some of the points, by their indices `[n]`."""
        return replace(self, dataset=Subset(self.dataset, rows.tolist()))

    def batches(self) -> Iterator[Batch]:
        """Every point once, in the order of the data."""
        return self._with_head(self._loader(shuffle=False))

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch, in an order from PyTorch's global generator."""
        return self._with_head(self._loader(shuffle=True))

    def _with_head(self, loader: Iterable[Any]) -> Iterator[Batch]:
        for batch in loader:
            if not isinstance(batch, list | tuple) or len(batch) not in (2, 3):
                raise DataError(
                    f"an item of {self.name} must be an input and a target, or an input, a target "
                    "and the label of its head"
                )
            if kinds := {type(v).__name__ for v in batch if not isinstance(v, Tensor)}:
                raise DataError(f"an item of {self.name} holds a {kinds.pop()}: give numbers")
            x, y, head = (*batch, self.heads[0])[:3]
            yield Batch(_float32(x), y, head)

    def _loader(self, *, shuffle: bool) -> DataLoader[Any]:
        if shuffle and self._own_loader is not None:
            return self._own_loader
        like: Any = {}
        if self.loader is not None:
            like = {"num_workers": self.loader.num_workers, "collate_fn": self.loader.collate_fn}
        drop_last = self.drop_last and shuffle
        return DataLoader(
            self.dataset, self.batch_size, shuffle=shuffle, drop_last=drop_last, **like
        )

    @property
    def _own_loader(self) -> DataLoader[Any] | None:
        """The user's loader, if it loads these points and not others of its data."""
        loader = self.loader
        return loader if loader is not None and loader.dataset is self.dataset else None


@dataclass(frozen=True)
class _WithHead(Dataset[Any]):
    """Items of a dataset with the label of their head."""

    dataset: Dataset[Any]
    head: int

    def __len__(self) -> int:
        return len(cast(Any, self.dataset))

    def __getitem__(self, index: int) -> Any:
        x, y, head = (*self.dataset[index], self.head)[:3]
        return x, y, head


class Tasks(TaskSource):
    """A sequence of tasks in the usual forms of PyTorch.

    Args:
        tasks: the tasks in order. Each is a task of a stream (`vcl_radial.benchmark`), a pair of
            inputs `[n, ...]` and targets `[n]` (tensors or arrays), a `torch.utils.data.Dataset`,
            a `DataLoader` of one, or any `TaskData`. Inputs of float64 and float16 become float32.
        heads: the label of each task's head; by default the head of a stream's task, and for other
            tasks see `a_head_each`.
        batch_size: number of points in a step; a `DataLoader` keeps its own.
        drop_last: whether to leave out the last batch of an epoch if it is smaller.
        a_head_each: whether task t (from 0) has head t by default, and not head 0.

    Raises:
        UserError: there is no task, a task has none of these forms, or a task has no head.
        DataError: inputs or targets are no numbers, they differ in length, or a task has no point.
    """

    @ranges.checked
    def __init__(
        self,
        tasks: Iterable[Any],
        *,
        heads: Sequence[int] | None = None,
        batch_size: Count = 32,
        drop_last: bool = False,
        a_head_each: bool = False,
    ) -> None:
        self._batch_size, self._drop_last = batch_size, drop_last
        if isinstance(tasks, str | Dataset | DataLoader | TaskData) or not isinstance(
            tasks, Iterable
        ):
            raise UserError(f"a {type(tasks).__name__} is no list of tasks: give [task]")
        tasks = list(tasks)
        if not tasks:
            raise UserError("there are no tasks to learn: give at least one")
        if heads is not None and (len(heads) != len(tasks) or not all(map(_is_label, heads))):
            fault = f"must give a whole number from 0 for each of {len(tasks)} tasks"
            raise bad_value("heads", heads, fault)
        self._tasks: list[TaskData] = [
            self._task(
                f"task {number + 1}",
                task,
                None if heads is None else heads[number],
                number if a_head_each else 0,
            )
            for number, task in enumerate(tasks)
        ]
        for task in self._tasks:
            if not task.epoch_steps:
                raise DataError(f"{task.name} has {len(task)} points: no batch can be made of them")

    def tasks(self) -> list[TaskData]:
        """The tasks, in order."""
        return self._tasks

    def together(self) -> TaskData:
        """All tasks as one, each point with its head."""
        tasks: Any = self._tasks
        heads = sorted({head for task in tasks for head in task.heads})
        if all(isinstance(task, TensorTask) for task in tasks):
            x, y, labels = zip(
                *((t.points.x, t.points.y, t.points.labels) for t in tasks), strict=True
            )
            points = Batch(torch.cat(x), torch.cat(y), torch.cat(labels))
            return TensorTask("all tasks", points, heads, self._batch_size, self._drop_last)
        loaders = [task.loader for task in tasks if isinstance(task, DatasetTask)]
        collated = {loader.collate_fn for loader in loaders if loader is not None}
        # A collation of the user's may drop the label of the head, which is the third of an item.
        if len(loaders) == len(tasks) and collated <= {default_collate}:
            joined: ConcatDataset[Any] = ConcatDataset(
                [_WithHead(task.dataset, task.heads[0]) for task in tasks]
            )
            like = tasks[0].batch_size, tasks[0].drop_last, tasks[0].loader
            return DatasetTask("all tasks", joined, heads, *like)
        return super().together()

    def _task(self, name: str, task: Any, head: int | None, usual: int) -> TaskData:
        if isinstance(task, TaskData):
            return task
        if isinstance(task, StreamTask):
            head = task.head if head is None else head
            return self._of_tensors(task.name, task.train, head)
        head = usual if head is None else head
        if isinstance(task, tuple | list) and len(task) == 2:
            return self._of_tensors(name, task, head)
        dataset = task.dataset if isinstance(task, DataLoader) else task
        if not isinstance(dataset, Dataset):
            raise UserError(
                f"{name} is a {type(task).__name__}: give a pair of inputs and targets, a "
                "torch.utils.data.Dataset, or a task of vcl_radial.benchmark(...)"
            )
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
            raise UserError(
                f"{name} is a {type(dataset).__name__}, whose points have no numbers: give a "
                "Dataset with __len__ and __getitem__"
            )
        if isinstance(task, DataLoader):
            if task.batch_size is None or not isinstance(
                task.sampler, RandomSampler | SequentialSampler
            ):
                raise UserError(
                    f"{name} has a sampler of its own, which may leave out points or repeat them: "
                    "give a Dataset of the points to train on"
                )
            own = task.batch_size, task.drop_last, task
            return DatasetTask(name, dataset, (head,), *own)
        return DatasetTask(name, dataset, (head,), self._batch_size, self._drop_last)

    def _of_tensors(self, name: str, pair: Sequence[Any], head: int) -> TensorTask:
        try:
            x, y = (v if isinstance(v, Tensor) else torch.as_tensor(np.asarray(v)) for v in pair)
        except (TypeError, ValueError) as error:
            raise DataError(f"the inputs or targets of {name} are no numbers: {error}") from error
        if not x.dim() or x.shape[:1] != y.shape[:1]:
            raise DataError(
                f"{name} has inputs of shape {list(x.shape)} and targets of shape {list(y.shape)}: "
                "give one target for each input"
            )
        points = Batch(_float32(x), y, head)
        return TensorTask(name, points, (head,), self._batch_size, self._drop_last)


def _float32(x: Tensor) -> Tensor:
    """Inputs as float32, where they are floating-point numbers."""
    return x.float() if x.is_floating_point() else x


def _is_label(head: object) -> bool:
    return isinstance(head, Integral) and int(head) >= 0
