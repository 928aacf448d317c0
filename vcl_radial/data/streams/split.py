"""Split streams: the classes of a data set, distributed over the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from vcl_radial.data.streams.choices import check_stream_options, checked_order, classes_per_task
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.data.streams.preparation import hold_out, prepared
from vcl_radial.data.streams.tensors import TensorStream
from vcl_radial.errors import DataError


def split_stream(
    data: ImageData,
    *,
    tasks: int = 5,
    heads: Literal["multi", "single"] = "multi",
    class_order: Sequence[int] | None = None,
    statistics: Literal["all-tasks", "first-task"] = "all-tasks",
    validation: float = 0.1,
    seed: int = 0,
    flatten: bool = True,
) -> TensorStream:
    """Cut a data set into tasks with C / T classes each (Split-MNIST, Split-FashionMNIST).

    Task t has the classes `class_order[t k : (t + 1) k]`, k = C / T. With heads "multi" each task
    has its own head with labels 0..k-1; with "single" one head has the labels 0..C-1, and a class's
    label is its position in the class order.

    Args:
        data: The data set.
        tasks: The number of tasks T; it must divide the number of classes.
        heads: "multi" (task-incremental) or "single" (class-incremental).
        class_order: A permutation of the classes; None: the conventional order 0..C-1.
        statistics: Training images on which the inputs have mean 0 and variance 1, before a
            validation set is held out: those of "all-tasks", or of the "first-task" alone, so that
            no task depends on later ones.
        validation: The share of each task's training images that is held out, unless the data have
            a validation part.
        seed: Seed of the validation split, and of nothing else.
        flatten: Inputs as vectors [N, D]; else as images [N, C, H, W].

    Raises:
        UserError: A setting does not fit the data; names it.
        DataError: A task has no test images, or all training pixels are equal.

    Source: Zenke, Poole, Ganguli (2017), section 5.1; Nguyen et al. (2018), section 6.1.
    """
    check_stream_options(heads, statistics, validation, seed)
    multi_head = heads == "multi"
    k = classes_per_task(data.n_classes, tasks, multi_head)
    order = checked_order(class_order, data.n_classes)

    position = torch.empty(data.n_classes, dtype=torch.int64)
    position[torch.tensor(order)] = torch.arange(data.n_classes)
    row_positions = position[torch.cat([data.train_y, data.test_y])]
    row_tasks = row_positions // k
    n_train = len(data.train_y)

    generator = torch.Generator().manual_seed(seed)
    train, held_out, test, names = [], [], [], []
    for task in range(tasks):
        names.append(", ".join(data.class_names[c] for c in order[task * k : (task + 1) * k]))
        rows = (row_tasks == task).nonzero()[:, 0]
        training_rows = rows[rows < n_train]
        trained, out = hold_out(training_rows, validation, generator, names[-1], data.held_out)
        train.append(trained)
        held_out.append(out)
        test.append(rows[rows >= n_train])
        if not len(test[-1]):
            raise DataError(f'has no test image for the task "{names[-1]}": add some', at=data.name)

    in_first_task = row_tasks[:n_train] == 0
    standard_rows = in_first_task.nonzero()[:, 0] if statistics == "first-task" else None
    lowest_labels = [0 if multi_head else task * k for task in range(tasks)]
    x, scaling = prepared(data, flatten=flatten, rows=standard_rows)
    return TensorStream(
        name=f"split {data.name}, {tasks} tasks, {heads}-head",
        x=x,
        y=row_positions % k if multi_head else row_positions,
        train=tuple(train),
        validation=tuple(held_out),
        test=tuple(test),
        task_names=tuple(names),
        task_classes=tuple(tuple(range(label, label + k)) for label in lowest_labels),
        n_classes=k if multi_head else data.n_classes,
        multi_head=multi_head,
        class_names=tuple(
            tuple(data.class_names[c] for c in order[task * k : (task + 1) * k])
            for task in range(tasks)
        ),
        scaling=scaling,
    )
