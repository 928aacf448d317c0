"""Find tracks by name: a folder `vcl_radial/tracks/NAME` with a `track.py`, or a user's class.

There is no list of tracks: a track exists if its folder does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from vcl_radial.config import outside
from vcl_radial.errors import bad_value, nearest
from vcl_radial.runs.spec import DEFAULT_TRACK
from vcl_radial.runs.track import AnyTrack, Track

_FOLDER = Path(__file__).parents[1] / "tracks"


def names() -> list[str]:
    """The names of the shipped tracks, the default one first."""
    shipped = {path.parent.name for path in _FOLDER.glob("*/track.py")}
    return sorted(shipped, key=lambda name: (name != DEFAULT_TRACK, name))


@cache
def find(name: Any) -> AnyTrack:
    """Find a track by its name, or a user's track by `package.module:Class`.

    Raises:
        UserError: there is no track of that name, it is no subclass of `Track`, or see
            `outside.find`.
    """
    if outside.is_named(name):
        cls = outside.find("track", name)
        if not (isinstance(cls, type) and issubclass(cls, Track)):
            raise bad_value("track", name, "is no subclass of vcl_radial.runs.track.Track")
        return cls()
    if name not in names():
        raise bad_value(
            "track",
            name,
            f"is no track: the nearest is {nearest(str(name), names())!r} (or name your own as "
            "'package.module:Class')",
        )
    track: AnyTrack = import_module(f"vcl_radial.tracks.{name}.track").TRACK()
    return track


def from_tables(tables: Mapping[str, Any]) -> AnyTrack:
    """The track of a run, by its tables.

    Raises:
        UserError: there is no such track.
    """
    name = tables.get("track", DEFAULT_TRACK)
    if not isinstance(name, str):
        raise bad_value("track", name, "is no track: write its name as a string")
    return find(name)
