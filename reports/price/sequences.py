"""The task sequences to measure and their features; nothing heavy is imported."""

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
"""The method with the features, which has the exact posterior of the same model."""

SETTINGS = {"regression": {"options.features": "random-relu", "options.units": 200}}
"""Keys of the features by track, if they differ from the method's file."""

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
        seeds: number of seeds of each; a table's seed is its split.
        settings: keys of the method and the stream.

    Raises:
        UserError: a benchmark or a key is unknown, or a benchmark is no task sequence.
    """
    return [spec for name in benchmarks for seed in seeds for spec in _specs(name, seed, settings)]


def _specs(benchmark: str, seed: int, settings: dict[str, Any]) -> list[Any]:
    """One run, or one for each of the benchmark's tables."""
    track = catalogue.track_of(catalogue.load("benchmark", benchmark)).name
    settings = {**SETTINGS.get(track, {}), **settings}
    planned = planning.plan(benchmark, [METHOD], [seed], settings)
    for spec in planned:
        if spec.TRACK not in _HAS_ONE_TASK:
            raise UserError(f"{benchmark}: is no task sequence of a model with fixed features")
        if spec.recipe.options.get("features") == "first-task-body":
            raise UserError(
                "options.features = 'first-task-body' is trained, and here nothing is: choose "
                "'random-relu' or 'patches'"
            )
    sequences = [spec for spec in planned if not _HAS_ONE_TASK[spec.TRACK](spec)]
    if not sequences:
        raise one_task(planned[0])
    for spec in sequences:
        if spec.TRACK == "continual" and not outside.is_named(spec.stream.kind):
            check_one_head(spec, spec.stream.multi_head)
    return sequences


def one_task(spec: Any) -> UserError:
    """The error of a benchmark that carries nothing."""
    return UserError(f"{spec.benchmark}: has one task, and nothing is carried: name a sequence")


def check_one_head(spec: Any, multi_head: bool) -> None:
    """Check that all tasks share a head.

    Raises:
        UserError: each task has its own.
    """
    if multi_head:
        raise UserError(f"{spec.benchmark}: has a head for each task: name a stream with one head")
