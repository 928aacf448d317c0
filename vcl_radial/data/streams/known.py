"""Task sizes of the data sets whose sizes are known without reading them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vcl_radial.config import outside
from vcl_radial.data.streams.choices import (
    check_first_tasks,
    check_keys,
    checked_order,
    classes_per_task,
    held_out,
)
from vcl_radial.errors import UserError

TRAIN_COUNTS: Mapping[str, tuple[int, ...]] = {
    "fashion-mnist": (6000,) * 10,
    "mnist": (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    "notmnist-small": (1560, 1561, 1561, 1561, 1561, 1560, 1560, 1560, 1560, 1560),
    # Every fifth image of each class of scikit-learn's digits is a test image.
    "digits": (143, 146, 142, 147, 145, 146, 145, 144, 140, 144),
}
"""Numbers of training images of each class."""

TEST_COUNTS: Mapping[str, int] = {
    "fashion-mnist": 10_000,
    "mnist": 10_000,
    "notmnist-small": 3_120,
    "digits": 355,
}
"""Numbers of test images."""


def rows_of(dataset: str) -> tuple[int, int] | None:
    """The numbers of training and test images of a data set, or None if they are not known."""
    if dataset not in TRAIN_COUNTS:
        return None
    return sum(TRAIN_COUNTS[dataset]), TEST_COUNTS[dataset]


def task_sizes(settings: Mapping[str, Any], seed: int = 0) -> list[int] | None:
    """Numbers of training points of a stream's tasks, or None if only the data show them.

    Args:
        settings: settings of `build_stream`, with all of its keys.
        seed: seed of the run.

    Raises:
        UserError: a setting is not known, or does not fit the data.
    """
    check_keys(settings)
    counts = TRAIN_COUNTS.get(settings["dataset"])
    # The number of an image folder's tasks is not known before it is read.
    tasks_are_known = settings["dataset"] != "image-folder" or settings["kind"] != "split"
    try:
        if tasks_are_known:
            check_first_tasks(settings.get("first_tasks"), settings["tasks"])
        if counts is None or outside.is_named(settings["kind"]):
            return None
        return _task_sizes(settings, counts, seed)
    except UserError as error:  # begins with the key
        raise UserError(f"stream.{error}") from None


def _task_sizes(settings: Mapping[str, Any], counts: Sequence[int], seed: int) -> list[int]:
    tasks, validation = settings["tasks"], settings["validation"]
    trained = settings.get("first_tasks") or tasks
    if settings["kind"] == "permuted":
        n = sum(counts)
        return [n - held_out(n, validation, "unpermuted")] * trained
    k = classes_per_task(len(counts), tasks, settings["heads"] == "multi")
    order = checked_order(settings.get("class_order"), len(counts), seed)
    sizes = []
    for start in range(0, k * trained, k):
        classes = order[start : start + k]
        n = sum(counts[label] for label in classes)
        sizes.append(n - held_out(n, validation, ", ".join(map(str, classes))))
    return sizes
