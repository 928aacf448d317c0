"""A tensor stream as an Avalanche benchmark."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils.data import Dataset

from vcl_radial.data.streams.tensors import TensorStream

ROW_ATTRIBUTE = "row"


class StreamRows(Dataset[tuple[Tensor, int]]):
    """Rows of a stream as a PyTorch dataset: item i is the input and label of row i."""

    def __init__(self, stream: TensorStream, rows: Tensor) -> None:
        self.stream = stream
        self.rows = rows
        self.targets: list[int] = stream.gather_labels(rows).tolist()

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        row = self.rows[index].unsqueeze(0)
        return self.stream.gather(row)[0], self.targets[index]


def to_avalanche(stream: TensorStream) -> Any:
    """Build the Avalanche benchmark (`CLScenario`) of a stream.

    Its streams are "train", "valid" (unless nothing was held out) and "test", an experience per
    task. Task labels are 0..T-1 with many heads, all 0 with one. Each dataset has the attributes
    `targets`, `targets_task_labels` and `row`: the row numbers, which survive subsets and
    concatenation and from which `TensorLoading` cuts whole batches. The samples are always in host
    memory, as PyTorch's loaders expect.
    """
    from avalanche.benchmarks import (
        benchmark_from_datasets,
        with_classes_timeline,
        with_task_labels,
    )

    stream = stream.to("cpu")
    parts = {"train": stream.train, "valid": stream.validation, "test": stream.test}
    if not any(len(rows) for rows in stream.validation):
        del parts["valid"]
    datasets = {
        name: [_dataset(stream, task, rows) for task, rows in enumerate(part)]
        for name, part in parts.items()
    }
    benchmark = with_task_labels(with_classes_timeline(benchmark_from_datasets(**datasets)))
    for experiences in benchmark.streams.values():
        for experience in experiences:
            # Avalanche leaves a set here, but its own multi-head classifier indexes with it.
            experience.classes_in_this_experience = sorted(experience.classes_in_this_experience)
    return benchmark


def _dataset(stream: TensorStream, task: int, rows: Tensor) -> Any:
    # Not a plain AvalancheDataset, because LwF, EWC and others need `task_set`.
    from avalanche.benchmarks.utils import TaskAwareSupervisedClassificationDataset
    from avalanche.benchmarks.utils.data_attribute import DataAttribute, TaskLabels
    from avalanche.benchmarks.utils.flat_data import ConstantSequence

    samples = StreamRows(stream, rows)
    return TaskAwareSupervisedClassificationDataset(
        [samples],
        data_attributes=[
            DataAttribute(samples.targets, "targets"),
            DataAttribute(rows.tolist(), ROW_ATTRIBUTE),
            TaskLabels(ConstantSequence(stream.task_label(task), len(rows))),
        ],
    )
