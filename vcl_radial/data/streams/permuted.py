"""Permuted streams: every task has all the images, with its own fixed order of the pixels."""

from __future__ import annotations

from typing import Literal

import torch

from vcl_radial.data.streams.choices import check_count, check_stream_options
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.data.streams.preparation import hold_out, prepared
from vcl_radial.data.streams.tensors import TensorStream


def permuted_stream(
    data: ImageData,
    *,
    tasks: int = 10,
    heads: Literal["multi", "single"] = "single",
    statistics: Literal["all-tasks", "first-task"] = "all-tasks",
    validation: float = 0.1,
    seed: int = 0,
    flatten: bool = True,
) -> TensorStream:
    """Make T tasks of one data set by permuting its pixels (Permuted MNIST).

    Task 0 is *not* permuted. Tasks 1 to T-1 each have one random permutation, the same for all
    their images; with the same seed, a longer stream begins with the tasks of a shorter one. The
    held-out images are the same in every task, so none is ever trained on. The images are stored
    once; permuted inputs are made on demand.

    Args:
        data: The data set.
        tasks: The number of tasks T.
        heads: "single" (domain-incremental) or "multi" (a head for each task).
        statistics: See `split_stream`. Both values mean the same here: the first task has all
            images.
        validation: The share of the training images that is held out, unless the data have a
            validation part.
        seed: Seed of the permutations and of the validation split, which do not depend on
            each other.
        flatten: Inputs as vectors [N, D]; else as images [N, C, H, W].

    Raises:
        UserError: A setting is not valid; names it.

    Source: Goodfellow et al. (2013), section 3; Nguyen et al. (2018), section 6.1.
    """
    check_stream_options(heads, statistics, validation, seed)
    check_count("tasks", tasks)

    x, scaling = prepared(data, flatten=flatten)
    n, n_train, n_pixels = len(x), len(data.train_y), x[0].numel()
    generator = torch.Generator().manual_seed(seed)
    orders = [torch.arange(n_pixels)]
    orders += [torch.randperm(n_pixels, generator=generator) for _ in range(tasks - 1)]

    names = ("unpermuted", *(f"permutation {task}" for task in range(1, tasks)))
    trained, held_out = hold_out(
        torch.arange(n_train),
        validation,
        torch.Generator().manual_seed(seed),
        names[0],
        data.held_out,
    )
    return TensorStream(
        name=f"permuted {data.name}, {tasks} tasks, {heads}-head",
        x=x,
        y=torch.cat([data.train_y, data.test_y]),
        train=tuple(trained + task * n for task in range(tasks)),
        validation=tuple(held_out + task * n for task in range(tasks)),
        test=tuple(torch.arange(n_train, n) + task * n for task in range(tasks)),
        task_names=names,
        task_classes=(tuple(range(data.n_classes)),) * tasks,
        n_classes=data.n_classes,
        multi_head=heads == "multi",
        permutations=torch.stack(orders),
        class_names=(data.class_names,) * tasks,
        scaling=scaling,
    )
