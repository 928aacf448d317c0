"""Split streams: the classes of a data set, distributed over the tasks, or in groups of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from vcl_radial.data.streams.choices import check_stream_options, checked_order, classes_per_task
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.data.streams.preparation import hold_out, prepared
from vcl_radial.data.streams.tensors import TensorStream
from vcl_radial.errors import DataError, bad_value


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
    k = classes_per_task(data.n_classes, tasks, heads == "multi")
    order = checked_order(class_order, data.n_classes)
    groups = [order[task * k : (task + 1) * k] for task in range(tasks)]
    names = [", ".join(data.class_names[c] for c in group) for group in groups]
    return _stream(data, groups, names, heads, statistics, validation, seed, flatten)


def grouped_stream(
    data: ImageData,
    *,
    tasks: int | None = None,
    heads: Literal["multi", "single"] = "multi",
    statistics: Literal["all-tasks", "first-task"] = "all-tasks",
    validation: float = 0.1,
    seed: int = 0,
    flatten: bool = True,
) -> TensorStream:
    """Make a task of each group of classes of a data set (the alphabets of Omniglot).

    Groups may differ in their number of classes. With heads "multi" every head has as many outputs
    as the largest group has classes; a smaller one leaves the last outputs without points.

    Args:
        data: A data set with groups.
        tasks: The number of groups; None: as many as there are.
        heads: See `split_stream`, and so for the other arguments.
        statistics: See there.
        validation: See there.
        seed: See there.
        flatten: See there.

    Raises:
        UserError: A setting does not fit the data; names it.
        DataError: The data have no groups, a task has no test images, or all pixels are equal.

    Source: Schwarz et al. (2018), section 5.2.
    """
    check_stream_options(heads, statistics, validation, seed)
    if not data.groups:
        raise DataError('has no groups of classes: use kind = "split"', at=data.name)
    if tasks not in (None, len(data.groups)):
        raise bad_value(
            "tasks",
            tasks,
            f"must be {len(data.groups)}, the number of groups; first_tasks is fewer",
        )
    names, groups = zip(*data.groups, strict=True)
    return _stream(data, groups, names, heads, statistics, validation, seed, flatten)


def _stream(
    data: ImageData,
    groups: Sequence[Sequence[int]],
    names: Sequence[str],
    heads: str,
    statistics: str,
    validation: float,
    seed: int,
    flatten: bool,
) -> TensorStream:
    """The stream whose tasks have these groups of classes; they hold each class once."""
    multi_head, tasks = heads == "multi", len(groups)
    task_of, label_of = torch.empty(2, data.n_classes, dtype=torch.int64)
    task_labels, seen = [], 0
    for task, group in enumerate(groups):
        labels = torch.arange(len(group)) + (0 if multi_head else seen)
        task_of[list(group)], label_of[list(group)] = task, labels
        task_labels.append(tuple(labels.tolist()))
        seen += len(group)
    classes = torch.cat([data.train_y, data.test_y])
    row_tasks, n_train = task_of[classes], len(data.train_y)

    generator = torch.Generator().manual_seed(seed)
    train, held_out, test = [], [], []
    for task in range(tasks):
        rows = (row_tasks == task).nonzero()[:, 0]
        training_rows = rows[rows < n_train]
        trained, out = hold_out(training_rows, validation, generator, names[task], data.held_out)
        train.append(trained)
        held_out.append(out)
        test.append(rows[rows >= n_train])
        if not len(test[-1]):
            raise DataError(
                f'has no test image for the task "{names[task]}": add some', at=data.name
            )

    in_first_task = row_tasks[:n_train] == 0
    standard_rows = in_first_task.nonzero()[:, 0] if statistics == "first-task" else None
    x, scaling = prepared(data, flatten=flatten, rows=standard_rows)
    return TensorStream(
        name=f"split {data.name}, {tasks} tasks, {heads}-head",
        x=x,
        y=label_of[classes],
        train=tuple(train),
        validation=tuple(held_out),
        test=tuple(test),
        task_names=tuple(names),
        task_classes=tuple(task_labels),
        n_classes=max(map(len, groups)) if multi_head else data.n_classes,
        multi_head=multi_head,
        class_names=tuple(tuple(data.class_names[c] for c in group) for group in groups),
        scaling=scaling,
    )
