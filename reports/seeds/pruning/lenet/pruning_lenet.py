"""LeNet-5 pruned by the radii of its rows and columns (RDP Table 2 and Fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import Rule, fill
from reports.seeds.pruning.lenet.modes import GROUPS
from reports.seeds.pruning.lenet.size import WHOLE, Architecture, Published, published
from reports.seeds.pruning.track import Result, minutes, results_of
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.metrics.bimodality import bimodality_gap_fraction
from vcl_radial.metrics.verdicts import verdict_of_figure, verdict_of_parts
from vcl_radial.reporting.blocks import Column, Table, with_spread
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
SIZE_MARGIN, ERROR_MARGIN = 0.1, 0.1
"""Margins of equivalence: a tenth of a published size, and 0.1 points of error, because the eight
methods of the table lie between 0.9 and 1.1 %."""
_BINS = 30
_SCORES = (
    "error",
    "error_before",
    "error_of_draws",
    "validation_error",
    "validation_error_before",
)


def analyse(setting: Setting) -> Analysis:
    """Train and prune the unfinished seeds, and compare all seeds with Table 2."""
    results = results_of("pruning-lenet", RUN_METHODS, setting)
    curves = [curve for result in results for curve in histograms(result)]
    return Analysis(
        curves=curves, figure=draw(results[0]), tables=[_table(results)], **_texts(results)
    )


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
    run, rows = results[0].run, published()
    rdp = rows[0]
    sizes = [_architecture(result) for result in results]
    errors = [result.numbers["error"] for result in results]
    flops = [size.flops + size.extra for size in sizes]
    plain = [row for row in rows if _is_printed(row, 0)]
    exact = [row for row in rows if _is_printed(row, row.architecture.extra)]
    gaps = {group: [_gap(result.numbers, group) for result in results] for group in _UNITS}
    shares = (
        f"{group} " + ", ".join(f"{100 * gap:.0f} %" for gap in group_gaps)
        for group, group_gaps in gaps.items()
    )
    other = run.data.dataset != "mnist"
    numbers = {
        "other_data": f" Here it is {run.data.dataset}, not MNIST, that was used." * other,
        "data": run.data,
        "recipe": run.recipe,
        "minutes": minutes(results),
        "seeds": [result.run.seed for result in results],
        "epochs": sorted({str(result.run.recipe.epochs) for result in results}),
        **{key: _spread(results, key) for key in _SCORES},
        "rows": len(rows),
        "plain": len(plain),
        "exact": len(exact),
        "exact_methods": [row.method for row in exact],
        "rdp": rdp,
        "rdp_thousands": rdp.flops // 1000,
        "whole": WHOLE,
        "sizes": [str(size) for size in sizes],
        "flops": [f"{count // 1000}K" for count in flops],
        "errors": errors,
        "between": "; ".join(shares),
    }
    rules: dict[str, Rule] = {
        "formula": len(plain) == len(rows),
        "table": verdict_of_parts(
            [
                verdict_of_figure(flops, rdp.flops, SIZE_MARGIN * rdp.flops, rounding=500),
                verdict_of_figure(errors, rdp.error, ERROR_MARGIN, rounding=0.05),
            ]
        ),
        "clusters": all(gap <= 0.1 for group_gaps in gaps.values() for gap in group_gaps),
    }
    return fill(__file__, numbers, rules)


def _gap(numbers: Mapping[str, Any], group: str) -> float:
    """Fraction of modes in the middle third between the two medians beside the threshold."""
    return bimodality_gap_fraction(numbers["modes"][group], numbers["cuts"][_SETS[group]])


def _is_printed(row: Published, extra: int) -> bool:
    """Whether the formula plus `extra` gives a row's printed FLOPs and parameters."""
    size = row.architecture
    return (
        abs(size.flops + extra - row.flops) < 1000
        and abs(size.parameters + extra - row.parameters) < 1000
    )


def _architecture(result: Result) -> Architecture:
    return Architecture(*map(int, result.numbers["architecture"].split("-")))


def _table(results: Sequence[Result]) -> Table:
    columns = [Column("method", is_text=True), Column("pruned architecture", is_text=True)]
    columns += [Column("FLOPs"), Column("parameters")]
    columns += [Column("FLOPs as in Table 2"), Column("parameters as in Table 2")]
    rows = []
    for result in results:
        error = f"{result.numbers['error']:.2f}"
        rows.append([f"ours, seed {result.run.seed}", *_sizes(_architecture(result)), error])
    for row in published():
        printed = [f"{row.flops // 1000}K", f"{row.parameters // 1000}K"]
        rows.append([row.method, *_sizes(row.architecture)[:3], *printed, f"{row.error:.1f}"])
    rows.append(["not pruned", *_sizes(WHOLE), _spread(results, "error_before")])
    return Table([*columns, Column("error (%)")], rows)


def _sizes(size: Architecture) -> list[str]:
    counts = (size.flops, size.parameters)
    return [str(size), *(f"{count + extra:,}" for extra in (0, size.extra) for count in counts)]


def _spread(results: Sequence[Result], key: str) -> str:
    return with_spread(*mean_and_standard_error(result.numbers[key] for result in results), 2)
