"""Task sizes of the data sets whose sizes are known without reading them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vcl_radial.config import outside
from vcl_radial.data.published import PUBLISHED
from vcl_radial.data.streams.choices import (
    check_first_tasks,
    check_keys,
    checked_order,
    classes_per_task,
    held_out,
)
from vcl_radial.errors import UserError


def rows_of(dataset: str) -> tuple[int, int] | None:
    """The numbers of training and test images of a data set, or None if they are not known."""
    images = PUBLISHED.get(dataset)
    return None if images is None else (sum(images.train_counts), images.test_count)


def task_sizes(settings: Mapping[str, Any], seed: int = 0) -> list[int] | None:
    """Numbers of training points of a stream's tasks, or None if only the data show them.

    Args:
        settings: settings of `build_stream`, with all of its keys.
        seed: seed of the run.

    Raises:
        UserError: a setting is not known, or does not fit the data.
    """
    check_keys(settings)
    images = PUBLISHED.get(settings["dataset"])
    # The number of an image folder's tasks is not known before it is read.
    tasks_are_known = settings["dataset"] != "image-folder" or settings["kind"] != "split"
    try:
        if tasks_are_known:
            check_first_tasks(settings.get("first_tasks"), settings["tasks"])
        if images is None or outside.is_named(settings["kind"]):
            return None
        return _task_sizes(settings, images.train_counts, seed)
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
