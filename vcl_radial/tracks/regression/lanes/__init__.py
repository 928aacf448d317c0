"""Methods that train many splits as lanes of one program: one module per method, by its name.

Its class `Lanes`, a subclass of `vcl_radial.tracks.regression.lane_method.LaneMethod`, says which
runs can be lanes, makes their networks, and predicts. Every other run trains alone.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vcl_radial.tracks.regression.lane_method import LaneMethod


def names() -> list[str]:
    """The methods that have lanes."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


@cache
def find(strategy: str) -> type[LaneMethod] | None:
    """The lanes of a method; None if it has none."""
    if strategy not in names():
        return None
    lanes: type[LaneMethod] = importlib.import_module(f"{__name__}.{strategy}").Lanes
    return lanes
