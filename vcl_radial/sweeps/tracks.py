"""The tracks that a sweep can search."""

from __future__ import annotations

from collections.abc import Container, Iterator
from difflib import get_close_matches

from vcl_radial.runs import catalogue
from vcl_radial.runs.run import Run
from vcl_radial.runs.track import AnyTrack
from vcl_radial.tracks.continual.track import Continual


def tracks() -> Iterator[AnyTrack]:
    """All of them; the rooms of the later ones are entered only if the earlier ones will not do."""
    yield Continual()
    from vcl_radial.tracks.retinopathy.track import Referral

    yield Referral()


def track_with(tables: Container[str]) -> AnyTrack:
    """The track whose data's table is among these; the first where there is none."""
    return next((track for track in tracks() if track.table in tables), Continual())


def track_of(run: Run) -> AnyTrack:
    """The track of a run."""
    return track_with(vars(run))


def track_of_benchmark(name: str) -> AnyTrack:
    """The track of a benchmark's name, or of the nearest one, or of a .toml file, by its tables.

    Raises:
        UserError: the file cannot be read.
    """
    if name.endswith(".toml"):
        return track_with(catalogue.load("benchmark", name).table)
    by_name: dict[str, AnyTrack] = {}
    for track in tracks():
        by_name |= dict.fromkeys(track.benchmarks(), track)
        if name in by_name:
            return track
    return by_name[get_close_matches(name, by_name, 1, cutoff=0.0)[0]]
