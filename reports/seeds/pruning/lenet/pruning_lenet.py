"""LeNet-5 pruned by the radii of its rows and columns (RDP Table 2 and Fig. 7).

The template of the page beside it compares the sizes and errors with the published ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill
from reports.seeds.pruning.lenet.modes import GROUPS
from reports.seeds.pruning.lenet.size import Architecture
from reports.seeds.pruning.track import Result, minutes, results_of
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.reporting.blocks import with_spread
from vcl_radial.reporting.figures.drawing import DOTTED, RADIAL, Curve, sheet

_UNITS = {
    "conv1 rows": "filters",
    "conv2 rows": "filters",
    "fc1 rows": "hidden units",
    "conv2 columns": "conv1 filters",
    "fc1 columns": "inputs",
    "fc2 columns": "hidden units",
}
"""The units of each group: rows in the upper panels, columns in the lower ones."""
_SETS = {group: name for name, groups in GROUPS.items() for group in groups}
RUN_METHODS = ("rdp",)
_BINS = 30
_SCORES = (
    "error",
    "error_before",
    "error_of_draws",
    "validation_error",
    "validation_error_before",
)


def analyse(setting: Setting) -> Analysis:
    """Train and prune the unfinished seeds, and draw their rows and columns."""
    results = results_of("pruning-lenet", RUN_METHODS, setting)
    curves = [curve for result in results for curve in histograms(result)]
    return Analysis(curves=curves, figure=draw(results[0]), **_texts(results))


def histograms(result: Result) -> list[Curve]:
    """Counts of rows and columns by the log of their mode, the thresholds, and the scores."""
    numbers, seed = result.numbers, f"seed {result.run.seed}"
    curves = []
    for group in _UNITS:
        counts, edges = np.histogram(numbers["modes"][group], _BINS)
        middles = (edges[1:] + edges[:-1]) / 2
        curves += [
            Curve(f"{seed}, {group}", "groups", middles.tolist(), counts.astype(float).tolist()),
            Curve(f"{seed}, {group}", "threshold", [numbers["cuts"][_SETS[group]]], [0.0]),
        ]
    kept = {f"left of {name}": count for name, count in vars(_architecture(result)).items()}
    scores = {key: numbers[key] for key in _SCORES} | kept
    return [*curves, Curve(seed, "scores", [*scores], [*map(float, scores.values())])]


def draw(result: Result) -> Figure:
    """The histograms of one seed with their thresholds: Fig. 7."""
    modes = {group: np.asarray(result.numbers["modes"][group]) for group in _UNITS}
    cuts = {group: result.numbers["cuts"][_SETS[group]] for group in _UNITS}
    titles = [
        f"{group}: {(modes[group] > cuts[group]).sum()} of {len(modes[group])} {units}"
        for group, units in _UNITS.items()
    ]
    notes = ["above: rows", "below: columns", "dotted: threshold", f"seed {result.run.seed}"]
    title = "Rows and columns of LeNet-5 by the log of their radius' mode"
    with sheet(title, notes, titles, per_line=3, width=2.2, height=1.35) as (figure, panels):
        for axes, group in zip(panels, _UNITS, strict=True):
            _, edges, _ = axes.hist(modes[group], _BINS, rwidth=0.9, color=RADIAL, linewidth=0)
            axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
            if cuts[group] > edges[0] - (edges[1] - edges[0]) / 2:
                axes.axvline(cuts[group], color="#d55e00", linewidth=1.2, linestyle=DOTTED)
        for axes in panels[::3]:
            axes.set_ylabel("count")
        for axes in panels[3:]:
            axes.set_xlabel("log of the mode")
    return figure


def _texts(results: Sequence[Result]) -> dict[str, Any]:
    run = results[0].run
    numbers = {
        "data": run.data,
        "recipe": run.recipe,
        "minutes": minutes(results),
        "seeds": [result.run.seed for result in results],
        "sizes": "; ".join(_size(result) for result in results),
        **{key: _spread(results, key) for key in _SCORES},
    }
    return fill(__file__, numbers, {})


def _architecture(result: Result) -> Architecture:
    return Architecture(*map(int, result.numbers["architecture"].split("-")))


def _size(result: Result) -> str:
    size = _architecture(result)
    return f"{size} ({size.flops:,} FLOPs, {size.parameters:,} parameters)"


def _spread(results: Sequence[Result], key: str) -> str:
    return with_spread(*mean_and_standard_error(result.numbers[key] for result in results), 2)
