"""The task sequences to measure, and their features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.runs import catalogue, planning

BENCHMARKS = (
    "split-fashion-single-head",
    "permuted-mnist",
    "uci-sequence",
    "retinopathy-hospitals",
)
"""Benchmarks that are measured by default."""

METHOD = "bayes-linear"
"""The method that has the features, and the exact posterior of the same model."""

SETTINGS = {"regression": {"options.features": "random-relu", "options.units": 200}}
"""Keys of the features, by track, where they differ from the method's file."""

_HAS_ONE_TASK: dict[str, Callable[[Any], bool]] = {
    "continual": lambda spec: spec.stream.trained_tasks == 1,
    "regression": lambda spec: (spec.data.slices or 1) == 1,
    "retinopathy": lambda spec: spec.data.parts == "whole" and not spec.data.then,
}
"""Whether the settings have one task, by track, before any data are read or drawn."""


def plan(benchmarks: Sequence[str], seeds: Sequence[int], settings: dict[str, Any]) -> list[Any]:
    """The runs of `METHOD` on task sequences.

    Args:
        benchmarks: names or paths of benchmarks.
        seeds: seeds of every benchmark; a table's seed is its split.
        settings: keys of the method and the stream.

    Raises:
        UserError: a benchmark or a key is unknown, or a benchmark is no task sequence.
    """
    return [spec for name in benchmarks for spec in _sequences(name, seeds, settings)]


def _sequences(benchmark: str, seeds: Sequence[int], settings: dict[str, Any]) -> list[Any]:
    track = catalogue.track_of(catalogue.load("benchmark", benchmark)).name
    if track not in _HAS_ONE_TASK:
        raise UserError("is no task sequence of a model with fixed features", benchmark)
    planned = planning.plan(benchmark, [METHOD], seeds, {**SETTINGS.get(track, {}), **settings})
    if planned[0].recipe.options.get("features") == "first-task-body":
        raise UserError("is trained, and here nothing is; use 'patches'", "options.features")
    # The plan has tables in slices and all rows at once.
    sequences = [spec for spec in planned if not _HAS_ONE_TASK[track](spec)]
    stream: Any = getattr(planned[0], "stream", None)
    decided = stream is not None and not outside.is_named(stream.kind)
    check(benchmark, tasks=1 + bool(sequences), multi_head=decided and stream.multi_head)
    return sequences


def check(benchmark: str, tasks: int, multi_head: bool = False) -> None:
    """Check that a benchmark has several tasks, which share a head.

    Raises:
        UserError: it has one task, or a separate head for every task.
    """
    if tasks < 2:
        raise UserError("has one task, and nothing is carried: name a sequence", benchmark)
    if multi_head:
        raise UserError("has a head for each task: name a stream with one head", benchmark)
