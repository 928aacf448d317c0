"""Which method runs in which track, found out by planning a run of each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from vcl_radial.conformance import recipe_for
from vcl_radial.errors import UserError
from vcl_radial.methods.registry import built_in
from vcl_radial.runs import catalogue, planning, tracks

BENCHMARKS = {
    "continual": "split-digits-multi-head",
    "retinopathy": "retinopathy-synthetic",
    "regression": "diabetes-sequence",
    "bandits": "bandit-mushroom",
}
"""A benchmark of each track."""


@cache
def methods_by_track() -> Mapping[str, Mapping[str, str]]:
    """For each method, by track, an empty text if it runs there, or why it does not."""
    recipes: dict[str, str] = {}
    for name in catalogue.names("method"):
        recipes.setdefault(recipe_for(name).strategy, name)
    return {
        recipes[method]: {track: _gap(track, recipes[method]) for track in BENCHMARKS}
        for method in built_in()
    }


def _gap(track: str, name: str) -> str:
    try:
        tracks.find(track).check_runs(planning.plan(BENCHMARKS[track], [name], [0]))
    except UserError as error:
        reason = str(error).partition("' ")[2]  # after "NAME: strategy = 'STRATEGY' "
        return reason.partition(": choose")[0]
    return ""
