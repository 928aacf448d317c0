"""The table of methods and tracks: for each method, where it runs and why not elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from vcl_radial.conformance import recipe_for
from vcl_radial.conformance.in_tracks import SMALL_RUNS, gap
from vcl_radial.methods.registry import built_in
from vcl_radial.runs import catalogue


@cache
def methods_by_track() -> Mapping[str, Mapping[str, str]]:
    """For each method and track, an empty text if the method runs there, or the reason why not."""
    recipes: dict[str, str] = {}
    for name in catalogue.names("method"):
        recipes.setdefault(recipe_for(name).strategy, name)
    return {
        recipes[method]: {track: gap(track, recipes[method]) for track in SMALL_RUNS}
        for method in built_in()
    }
