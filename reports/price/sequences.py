"""The task sequences to measure, and their features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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

TRACKS = ("continual", "regression", "retinopathy")
"""Tracks whose tasks a model with fixed features can learn."""


def plan(benchmarks: Sequence[str], seeds: Sequence[int], settings: dict[str, Any]) -> list[Any]:
    """The runs of `METHOD` on task sequences.

    Args:
        benchmarks: names or paths of benchmarks.
        seeds: seeds of every benchmark; a table's seed is its split.
        settings: keys of the method and the stream.

    Raises:
        UserError: a benchmark or a key is unknown, or a benchmark is of another track.
    """
    return [spec for name in benchmarks for spec in _sequences(name, seeds, settings)]


def _sequences(benchmark: str, seeds: Sequence[int], settings: dict[str, Any]) -> list[Any]:
    track = catalogue.track_of(catalogue.load("benchmark", benchmark)).name
    if track not in TRACKS:
        raise UserError("is no task sequence of a model with fixed features", benchmark)
    planned = planning.plan(benchmark, [METHOD], seeds, {**SETTINGS.get(track, {}), **settings})
    if planned[0].recipe.options.get("features") == "first-task-body":
        raise UserError("is trained, and here nothing is; use 'patches'", "options.features")
    if track == "regression":  # the plan has tables in slices and all rows at once
        planned = [spec for spec in planned if (spec.data.slices or 1) > 1]
        check(benchmark, tasks=1 + bool(planned))
    return planned


def check(benchmark: str, tasks: int, multi_head: bool = False) -> None:
    """Check that a benchmark has several tasks, which share a head.

    Raises:
        UserError: it has one task, or a separate head for every task.
    """
    if tasks < 2:
        raise UserError("has one task, and nothing is carried: name a sequence", benchmark)
    if multi_head:
        raise UserError("has a head for each task: name a stream with one head", benchmark)
