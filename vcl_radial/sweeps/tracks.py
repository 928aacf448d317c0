"""The track of a run, of a benchmark and of the tables of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcl_radial.runs import catalogue, tracks
from vcl_radial.runs.spec import DEFAULT_TRACK, RunSpec
from vcl_radial.runs.track import AnyTrack


def track_with(tables: Mapping[str, Any]) -> AnyTrack:
    """The track of a run's tables."""
    return tracks.find(tables.get("track", DEFAULT_TRACK))


def track_of(run: RunSpec) -> AnyTrack:
    """The track of a run."""
    return tracks.find(run.TRACK)


def track_of_benchmark(name: str) -> AnyTrack:
    """The track of a benchmark.

    Raises:
        UserError: there is no such benchmark.
    """
    return catalogue.track_of(catalogue.load("benchmark", name))
