"""Mini-batches cut from whole tensors, for plain loops and for Avalanche strategies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from vcl_radial.data.streams.benchmark import ROW_ATTRIBUTE
from vcl_radial.data.streams.tensors import TensorStream

_SAMPLES_COMPARED = 8

_Tensors: TypeAlias = tuple[Tensor, Tensor, Tensor]


class TensorBatches:
    """Mini-batches [x, y, t] of three tensors with equal first dimension; iterate once per epoch.

    With `shuffle`, each epoch draws one random order and takes its batches from it; without,
    batches are views in the stored order. Works on any device.

    Args:
        x: Inputs [n, ...].
        y: Labels [n].
        t: Task labels [n].
        batch_size: Rows per batch.
        shuffle: Whether each epoch has a new random order.
        drop_last: Leave out the last batch if it is smaller than the others.
        generator: Source of the orders; None: PyTorch's global one.
    """

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        t: Tensor,
        batch_size: int,
        shuffle: bool = False,
        drop_last: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        if not len(x) == len(y) == len(t):
            raise ValueError(
                f"x, y and t have {len(x)}, {len(y)} and {len(t)} rows, not one number"
            )
        if batch_size < 1:
            raise ValueError(f"batch_size = {batch_size} must be at least 1")
        self.x, self.y, self.t = x, y, t
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.generator = generator
        self.task: int | None = None
        """The task of all rows, if the batches have a single task."""

    def __len__(self) -> int:
        full, remainder = divmod(len(self.y), self.batch_size)
        return full if self.drop_last or not remainder else full + 1

    def __iter__(self) -> Iterator[list[Tensor]]:
        tensors = (self.x, self.y, self.t)
        order = self._random_order() if self.shuffle else None
        for start in range(0, len(self) * self.batch_size, self.batch_size):
            chosen = slice(start, start + self.batch_size)
            if order is None:
                yield [tensor[chosen] for tensor in tensors]
            else:
                yield [tensor.index_select(0, order[chosen]) for tensor in tensors]

    def _random_order(self) -> Tensor:
        device = "cpu" if self.generator is None else self.generator.device
        order = torch.randperm(len(self.y), generator=self.generator, device=device)
        return order.to(self.x.device)


class TensorLoading:
    """Mixin that gives an Avalanche strategy batches cut from one tensor, at no cost per sample.

    Put it before the strategy's template: `class Mine(TensorLoading, SupervisedTemplate)`, and
    set `tensor_stream` to the benchmark's stream (`to_avalanche`), on the strategy's device. Rows
    are followed through subsets and concatenation, as in joint training. A dataset without row
    numbers, or with other samples than the stream (another benchmark, transforms), uses Avalanche's
    loaders; a few of its samples are compared to detect this. A plugin with its own loader, such as
    Avalanche's replay, still uses it.

    Avalanche's training loader fills each batch evenly from the tasks of a dataset. This one
    shuffles all rows together: each occurs once per epoch.

    Attributes:
        tensor_stream: Stream of the rows; None: Avalanche's loaders.
        shuffle_generator: Source of the training order; None: PyTorch's global one.
    """

    tensor_stream: TensorStream | None = None
    shuffle_generator: torch.Generator | None = None

    # The Avalanche template sets these.
    adapted_dataset: Any
    dataloader: Any
    train_mb_size: int
    eval_mb_size: int

    def make_train_dataloader(
        self, shuffle: bool = True, drop_last: bool = False, **kwargs: Any
    ) -> None:
        """Set `dataloader` for one training experience."""
        tensors = _stream_tensors(self.adapted_dataset, self.tensor_stream)
        if tensors is None:
            super().make_train_dataloader(  # type: ignore[misc]
                shuffle=shuffle, drop_last=drop_last, **kwargs
            )
            return
        self.dataloader = TensorBatches(
            *tensors, self.train_mb_size, shuffle, drop_last, self.shuffle_generator
        )
        self._note_sole_task()

    def make_eval_dataloader(self, **kwargs: Any) -> None:
        """Set `dataloader` for the evaluation of one experience."""
        tensors = self._evaluation_tensors()
        if tensors is None:
            super().make_eval_dataloader(**kwargs)  # type: ignore[misc]
            return
        self.dataloader = TensorBatches(*tensors, self.eval_mb_size)
        self._note_sole_task()

    @property
    def sole_task(self) -> int | None:
        """The task of all rows of the batches, if it is a single one."""
        # A plugin may have replaced the loader.
        return self.dataloader.task if isinstance(self.dataloader, TensorBatches) else None

    def _note_sole_task(self) -> None:
        tasks = self.adapted_dataset.targets_task_labels.uniques
        self.dataloader.task = next(iter(tasks)) if len(tasks) == 1 else None

    @cached_property
    def _evaluated(self) -> WeakKeyDictionary[Any, tuple[TensorStream, _Tensors]]:
        return WeakKeyDictionary()

    def _evaluation_tensors(self) -> _Tensors | None:
        """Tensors of a dataset that is evaluated after every task; cached while it exists."""
        stream = self.tensor_stream
        rows = getattr(self.adapted_dataset, ROW_ATTRIBUTE, None)
        if rows is None or stream is None:
            return None
        cached_stream, tensors = self._evaluated.get(rows, (None, None))
        # A copy with other transforms or task labels has the same rows: hence the comparison.
        if cached_stream is stream and tensors and _samples_agree(self.adapted_dataset, tensors):
            return tensors
        tensors = _stream_tensors(self.adapted_dataset, stream)
        if tensors is not None:
            self._evaluated[rows] = stream, tensors
        return tensors


def _stream_tensors(dataset: Any, stream: TensorStream | None) -> _Tensors | None:
    """Return inputs, labels and task labels of an Avalanche dataset; None if not the stream's."""
    if stream is None or not hasattr(dataset, ROW_ATTRIBUTE):
        return None
    device = stream.x.device
    rows = torch.tensor(_values(getattr(dataset, ROW_ATTRIBUTE).data), dtype=torch.int64)
    if not len(rows) or int(rows.max()) >= stream.n_rows:
        return None
    rows = rows.to(device)
    labels = dataset.targets_task_labels
    if len(labels.uniques) == 1:
        t = torch.full((len(rows),), int(labels[0]), dtype=torch.int64, device=device)
    else:
        t = torch.tensor(_values(labels.data), dtype=torch.int64, device=device)
    tensors = stream.gather(rows), stream.gather_labels(rows), t
    return tensors if _samples_agree(dataset, tensors) else None


def _values(data: Any) -> list[int]:
    """All values of an Avalanche attribute, much faster than one by one."""
    parts = getattr(data, "_datasets", None)  # of Avalanche's FlatData
    if parts is None:
        return list(data)
    values = [value for part in parts for value in _values(part)]
    return values if data._indices is None else [values[i] for i in data._indices]


def _samples_agree(dataset: Any, tensors: _Tensors) -> bool:
    """Whether a few samples of the dataset, with the first and last, equal the tensors' rows."""
    n = len(dataset)
    for row in torch.linspace(0, n - 1, min(n, _SAMPLES_COMPARED)).long().tolist():
        x, y, t = (tensor[row].cpu() for tensor in tensors)
        sample = dataset[row]
        same_x = isinstance(sample[0], Tensor) and torch.equal(sample[0].cpu().to(x.dtype), x)
        if not same_x or (int(sample[1]), int(sample[2])) != (int(y), int(t)):
            return False
    return True
