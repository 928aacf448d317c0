"""Checks of settings; an error names the nearest valid value."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from vcl_radial.errors import UserError, bad_value


def check_choice(key: str, value: object, choices: Iterable[str]) -> None:
    """Raise a `UserError` that names `key` and the nearest valid value unless `value` is one."""
    valid = list(choices)
    if value in valid:
        return
    near = difflib.get_close_matches(str(value), valid, n=1, cutoff=0.4)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    raise bad_value(key, value, f"is unknown: {hint}valid: {', '.join(valid)}")


def check_count(key: str, value: object) -> None:
    """Raise a `UserError` that names `key` unless `value` is a whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise bad_value(key, value, "must be a whole number, at least 1")


def check_stream_options(heads: str, statistics: str, validation: Any, seed: Any) -> None:
    """Raise a `UserError` that names an option of all kinds of streams with a wrong value."""
    check_choice("heads", heads, ("multi", "single"))
    check_choice("statistics", statistics, ("all-tasks", "first-task"))
    if type(validation) not in (int, float) or not 0 <= validation < 1:
        raise bad_value("validation", validation, "must be a number from 0 to below 1")
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise bad_value("split_seed", seed, "must be a whole number, at least 0")


def held_out(n: int, fraction: float, task_name: str) -> int:
    """The number of n images in a validation set.

    Raises:
        UserError: one of the two parts would be empty.
    """
    n_held_out = round(fraction * n)
    if n_held_out == n or (fraction > 0 and n_held_out == 0):
        raise bad_value(
            "validation",
            fraction,
            f"leaves {n - n_held_out} training and {n_held_out} "
            f'validation images for the task "{task_name}", which has {n}: change it, '
            "or set it to 0 for no validation set",
        )
    return n_held_out


def default_tasks(n_classes: int, heads: str) -> int:
    """The largest number of tasks of equal size with at least two classes each.

    Raises:
        UserError: Only one task of all classes is possible, and each task needs its own head.
    """
    tasks = next(t for t in range(max(1, n_classes // 2), 0, -1) if n_classes % t == 0)
    if tasks > 1 or n_classes == 2:
        return tasks
    if heads == "multi":
        raise UserError(
            f"{n_classes} classes cannot be dealt out over tasks of one size: add or take away a "
            'class, or use heads = "single" (image-folder-single-head), with a task for each class',
            at="tasks",
        )
    return n_classes


def classes_per_task(n_classes: int, tasks: int, multi_head: bool) -> int:
    """The number of classes of a task.

    Raises:
        UserError: the classes do not divide evenly, or a head would have one class.
    """
    check_count("tasks", tasks)
    if n_classes % tasks:
        divisors = [d for d in range(1, n_classes + 1) if n_classes % d == 0]
        raise bad_value(
            "tasks",
            tasks,
            f"does not divide the {n_classes} classes: use one of {', '.join(map(str, divisors))}",
        )
    k = n_classes // tasks
    if multi_head and k == 1:
        raise bad_value(
            "tasks",
            tasks,
            "leaves one class to each head, which is nothing to tell apart: "
            'use fewer tasks or heads = "single"',
        )
    return k


def check_first_tasks(first_tasks: int | None, tasks: int) -> None:
    """Raise a `UserError` unless a stream of `tasks` tasks has `first_tasks` first ones."""
    if first_tasks is None:
        return
    check_count("first_tasks", first_tasks)
    if first_tasks > tasks:
        raise bad_value(
            "first_tasks",
            first_tasks,
            f"is more than the {tasks} tasks: use {tasks} at most, or leave it out for all of them",
        )


def checked_order(
    class_order: Sequence[int] | str | None, n_classes: int, seed: int | None = None
) -> list[int]:
    """The class order, or the conventional one if it is None.

    The order "seed" is the permutation of `numpy.random.RandomState(seed)`, which is the same in
    all versions of NumPy. It depends on the run's seed alone, so that all methods have the same.

    Args:
        class_order: the classes in their order, None, or "seed" with a seed.
        n_classes: number of classes.
        seed: seed of the run.

    Raises:
        UserError: the order is not a permutation of the classes.
    """
    if class_order == "seed" and seed is not None:
        import numpy as np  # takes a while, and few streams need it

        return [int(c) for c in np.random.RandomState(seed).permutation(n_classes)]
    conventional = list(range(n_classes))
    if class_order is None:
        return conventional
    if (
        isinstance(class_order, str)
        or not isinstance(class_order, Sequence)
        or any(type(c) is not int for c in class_order)
        or sorted(class_order) != conventional
    ):
        raise bad_value(
            "class_order",
            class_order,
            f"must hold each class from 0 to {n_classes - 1} exactly once",
        )
    return [int(c) for c in class_order]
