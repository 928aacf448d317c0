"""Notes on runs whose settings let them learn far less than the recipes that the suite ships."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vcl_radial.errors import UserError
from vcl_radial.runs.planning import NamedMethod, plan
from vcl_radial.runs.settings import UNNAMED_TABLE
from vcl_radial.runs.spec import RunSpec

LESS = 0.1
"""A note is for less than this share of what the shipped recipe has."""

_LENGTHS = ("epochs", "steps")
_NOISES = ("initial_noise", "initial_rho")


def doubts(
    runs: Sequence[RunSpec],
    benchmark: str,
    methods: Sequence[NamedMethod],
    settings: Mapping[str, Any],
) -> list[str]:
    """Lines on trainings that a command makes very short, and on noises that it makes tiny.

    Args:
        runs: the runs of the command.
        benchmark: its benchmark.
        methods: its methods.
        settings: its settings; without one of a length or a noise there is no line.
    """
    if not settings.keys() & {*_LENGTHS, *_NOISES}:
        return []
    try:
        shipped = plan(benchmark, methods, [runs[0].seed])
    except UserError:  # the settings of the command complete those of a file
        return []
    before = {run.method: getattr(run, UNNAMED_TABLE) for run in shipped}
    now = {run.method: getattr(run, UNNAMED_TABLE) for run in runs}
    pairs = {method: (recipe, before[method]) for method, recipe in now.items() if method in before}
    lines = []
    for key in _LENGTHS:
        short = {
            method: getattr(shipped, key)
            for method, (recipe, shipped) in pairs.items()
            if hasattr(recipe, key) and getattr(recipe, key) < LESS * getattr(shipped, key)
        }
        if short:
            usual = ", ".join(f"{method} {count}" for method, count in short.items())
            lines.append(
                f"{key} = {settings.get(key)} may be too few to learn; shipped recipes have "
                f"{usual}: leave {key} out to compare methods"
            )
    faint = [
        method
        for method, (recipe, shipped) in pairs.items()
        if getattr(recipe, "posterior", "none") != "none"
        and _noise(recipe) < LESS * _noise(shipped)
    ]
    if faint:
        lines.append(
            f"{', '.join(faint)}: the initial noise of the weights is less than a tenth of that of "
            "the shipped recipe; so small a noise hardly grows, and the weights stay close to "
            "point estimates: leave initial_noise and initial_rho out"
        )
    return lines


def _noise(recipe: Any) -> float:
    return float(recipe.initial_noise or math.log1p(math.exp(recipe.initial_rho)))
