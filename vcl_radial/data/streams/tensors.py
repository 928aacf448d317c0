"""A sequence of tasks as rows of whole tensors, without a continual-learning library."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import torch
from torch import Tensor

from vcl_radial.errors import UserError

Split: TypeAlias = Literal["train", "validation", "test"]
PARTS: Final[tuple[Split, ...]] = ("train", "validation", "test")

_PIECE = 256


@dataclass(frozen=True, eq=False)
class TaskData:
    """A task of a stream.

    Attributes:
        name: readable name of the task.
        head: head of the task in training and testing.
        classes: labels that occur, in the head's numbering.
        train: inputs, float32 [n, ...], and labels, int64 [n].
        validation: inputs and labels held out of the training data; they may be empty.
        test: test inputs and labels.
    """

    name: str
    head: int
    classes: tuple[int, ...]
    train: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class TensorStream:
    """Tasks cut from one tensor of inputs; each task is three lists of row numbers.

    A row number names an input of one task: if the stream has permutations, row r is input `r % N`
    in the order of task `r // N` (then each task has N rows), else it is input r.

    Attributes:
        name: Readable name of the stream.
        x: All inputs, training images before test images: float32 [N, D] or [N, C, H, W].
        y: Their labels in the head's numbering: int64 [N].
        train: Row numbers of each task's training inputs.
        validation: Row numbers held out of the training set; empty tensors if there are none.
        test: Row numbers of each task's test inputs.
        task_names: A name for each task.
        task_classes: The labels that occur in each task, in the head's numbering.
        n_classes: The number of outputs of each head.
        multi_head: Whether each task has its own head, and tests know the task.
        permutations: int64 [T, D], the order of the D pixels in task t; None: as stored.
        class_names: The names of each task's classes; empty if they are not known.
        scaling: m and s of x = (pixel - m) / s; None if they are not known.
    """

    name: str
    x: Tensor
    y: Tensor
    train: tuple[Tensor, ...]
    validation: tuple[Tensor, ...]
    test: tuple[Tensor, ...]
    task_names: tuple[str, ...]
    task_classes: tuple[tuple[int, ...], ...]
    n_classes: int
    multi_head: bool
    permutations: Tensor | None = None
    class_names: tuple[tuple[str, ...], ...] = ()
    scaling: tuple[float, float] | None = None
    _blocks: dict[tuple[Split, int], Tensor] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Reject data that would fail, or give wrong results, during training.

        Raises:
            UserError: a field is wrong; the message names it and its required value.
        """
        for fault in self._faults():
            raise UserError(fault, at=f"stream {self.name!r}")

    def _faults(self) -> Iterator[str]:
        parts = [(name, rows) for name in PARTS for rows in getattr(self, name)]
        tensors = [("x", self.x, torch.float32), ("y", self.y, torch.int64)]
        tensors += [(f"every entry of {name}", rows, torch.int64) for name, rows in parts]
        for name, tensor, dtype in tensors:
            actual = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
            if actual != dtype:
                yield f"{name} must be a tensor of {dtype}, not {actual}"
        x, y = list(self.x.shape), list(self.y.shape)
        if y != x[:1]:
            yield f"y must have shape [N] with N = {x[0]} as x {x} has, not {y}"
        tasks = len(self.train)
        for name in ("validation", "test", "task_names", "task_classes"):
            if (count := len(getattr(self, name))) != tasks:
                yield f"{name} must have an entry for each of {tasks} tasks, not {count}"
        if not self.x.is_cpu:  # reading values of another device waits for it
            return
        if self.x.numel() and not bool(torch.stack(self.x.aminmax()).isfinite().all()):
            yield "x has numbers that are not finite"
        lowest, highest = (int(v) for v in self.y.aminmax()) if len(self.y) else (0, 0)
        if lowest < 0 or highest >= self.n_classes:
            yield (
                f"y must be from 0 to {self.n_classes - 1}, as n_classes = {self.n_classes} says, "
                f"not {lowest} to {highest}"
            )
        for name, rows in parts:
            if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < self.n_rows:
                yield f"{name} has row numbers that are not from 0 to {self.n_rows - 1}"

    @property
    def n_tasks(self) -> int:
        """The number of tasks."""
        return len(self.train)

    @property
    def n_rows(self) -> int:
        """The number of rows of `gather`."""
        views = 1 if self.permutations is None else len(self.permutations)
        return views * len(self.x)

    def __len__(self) -> int:
        return self.n_tasks

    def __getitem__(self, task: int) -> TaskData:
        if not 0 <= task < self.n_tasks:
            raise IndexError(f"stream {self.name!r} has the tasks 0 to {self.n_tasks - 1}")

        def part(split: Split) -> tuple[Tensor, Tensor]:
            rows = self.rows(task, split)
            return self.gather(rows), self.gather_labels(rows)

        names = self.task_names[task], self.task_label(task), self.task_classes[task]
        return TaskData(*names, part("train"), part("validation"), part("test"))

    def __iter__(self) -> Iterator[TaskData]:
        return (self[task] for task in range(self.n_tasks))

    def first(self, tasks: int) -> TensorStream:
        """Return the stream of the first tasks, which do not change.

        Heads, labels, held-out rows and permutations are the same as in the whole stream: a single
        head also has outputs for the classes of the other tasks.
        """
        fields = (*PARTS, "task_names", "task_classes", "class_names")
        return dataclasses.replace(
            self,
            name=f"{self.name}, the first {tasks}",
            permutations=None if self.permutations is None else self.permutations[:tasks],
            **{field: getattr(self, field)[:tasks] for field in fields},
        )

    def task_label(self, task: int) -> int:
        """Return the head of `task` in training and testing."""
        return task if self.multi_head else 0

    def rows(self, task: int, split: Split) -> Tensor:
        """Return the row numbers of one part of a task: int64 [n]."""
        parts: tuple[Tensor, ...] = getattr(self, split)
        return parts[task]

    def inputs(self, task: int, split: Split) -> Tensor:
        """Return the inputs of one part of a task as one tensor: float32 [n, ...].

        All validation and test inputs are stored for the next call, and the training inputs of the
        last call (those of all tasks can be several times as large as `x`).
        """
        key = (split, task)
        if key not in self._blocks:
            if split == "train":
                for old in [old for old in self._blocks if old[0] == "train"]:
                    del self._blocks[old]
            self._blocks[key] = self.gather(self.rows(task, split))
        return self._blocks[key]

    def labels(self, task: int, split: Split) -> Tensor:
        """Return the labels of one part of a task in its head's numbering: int64 [n]."""
        return self.gather_labels(self.rows(task, split))

    def gather(self, rows: Tensor) -> Tensor:
        """Return the inputs with these row numbers, of any tasks: float32 [len(rows), ...]."""
        if self.permutations is None:
            return self.x.index_select(0, rows)
        pixels = self.x.flatten(1)
        gathered = pixels.new_empty((len(rows), pixels.shape[1]))
        # Pieces that fit into a CPU's cache are several times as fast as all rows at once.
        for start in range(0, len(rows), _PIECE):
            piece = rows[start : start + _PIECE]
            images = pixels.index_select(0, piece % len(pixels))
            order = self.permutations.index_select(0, piece // len(pixels))
            torch.gather(images, 1, order, out=gathered[start : start + _PIECE])
        return gathered.view(len(rows), *self.x.shape[1:])

    def gather_labels(self, rows: Tensor) -> Tensor:
        """Return the labels with these row numbers: int64 [len(rows)]."""
        return self.y.index_select(0, rows % len(self.y))

    def to(self, device: torch.device | str) -> TensorStream:
        """Return this stream with all its tensors on `device`."""
        parts: dict[str, Any] = {
            part: tuple(rows.to(device) for rows in getattr(self, part)) for part in PARTS
        }
        return dataclasses.replace(
            self,
            x=self.x.to(device),
            y=self.y.to(device),
            permutations=None if self.permutations is None else self.permutations.to(device),
            **parts,
        )


def tensors_checksum(*tensors: Tensor) -> str:
    """Checksum of shapes and values, independent of how the tensors are stored."""
    content = hashlib.sha256()
    for tensor in tensors:
        content.update(f"{tuple(tensor.shape)}".encode())
        content.update(tensor.contiguous().numpy().tobytes())
    return content.hexdigest()[:16]
