"""LeNet-5 pruned by the radii of its rows and columns (RDP Table 2 and Fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.papers.analysis import Analysis, Setting
from reports.seeds.pruning.lenet.modes import GROUPS
from reports.seeds.pruning.lenet.size import WHOLE, Architecture, published
from reports.seeds.pruning.lenet.spec import LeNetSpec
from reports.seeds.pruning.track import Result, minutes, results_of
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.metrics.heaps import share_between_heaps
from vcl_radial.metrics.verdicts import of_figure, of_statement, together
from vcl_radial.report.figures.drawing import DOTTED, RADIAL, Curve, find, sheet
from vcl_radial.runs.sections import Claim, Column, Table

LeNetResult: TypeAlias = Result[LeNetSpec]

_PANELS = {
    "conv1 rows": "filters",
    "conv2 rows": "filters",
    "fc1 rows": "hidden units",
    "conv2 columns": "conv1 filters",
    "fc1 columns": "inputs",
    "fc2 columns": "hidden units",
}
"""Rows above, columns below; each with the units that they stand for."""
_SETS = {f"{layer} {kind}": name for name, groups in GROUPS.items() for layer, kind in groups}
RUN_METHODS = ("rdp",)
SIZE_MARGIN, ERROR_MARGIN = 0.1, 0.1
"""Of equivalence: a tenth of a published size, and 0.1 points of error, as the eight methods of the
table lie between 0.9 and 1.1 %."""
_BINS = 30
_CUT = "threshold"
_SCORES = (
    "error",
    "error_before",
    "error_of_draws",
    "validation_error",
    "validation_error_before",
)


def analyse(setting: Setting) -> Analysis:
    """Train and prune what is not finished, and hold all seeds against Table 2."""
    results = results_of("pruning-lenet", RUN_METHODS, setting)
    curves = [curve for result in results for curve in histograms(result)]
    run = results[0].run
    return Analysis(
        title="Rows and columns of LeNet-5 by the log of their radius' mode",
        source="Oh, Adamczewski and Park 2020, Table 2, Fig. 7, Section 3.3",
        shown=[
            "LeNet-5-Caffe with a radial and directional posterior over rows and columns; filters "
            "and units whose radius has a low mode are left out, the others keep their posterior "
            "means, without retraining."
            + (
                ""
                if run.data.dataset == "mnist"
                else f" Here it is {run.data.dataset}, not MNIST, that was used."
            ),
            "An architecture is filters of conv1, filters of conv2, inputs of fc1 that are left, "
            "and hidden units. FLOPs count a multiplication and an addition as one (Section 5.2). "
            "The first two counts are those of the network that is left; the next two have the "
            "further layer that the published numbers contain.",
        ],
        settings=_settings(results),
        curves=curves,
        figure=draw(curves, results[0]),
        claims=make_claims(results),
        notes=[
            f"errors on the test images (%): pruned, posterior means: {_spread(results, 'error')}",
            f"not pruned, posterior means: {_spread(results, 'error_before')}",
            f"not pruned, {run.recipe.eval_samples} draws of the weights: "
            f"{_spread(results, 'error_of_draws')}",
            f"on the validation images, pruned and not: {_spread(results, 'validation_error')} and "
            f"{_spread(results, 'validation_error_before')}",
        ],
        tables=[_table(results)],
    )


def histograms(result: LeNetResult) -> list[Curve]:
    """How many rows or columns there are by the log of their mode, the thresholds, and scores."""
    numbers = result.numbers
    curves = []
    for group in _PANELS:
        counts, edges = np.histogram(numbers["modes"][group], _BINS)
        middle = (edges[1:] + edges[:-1]) / 2
        panel = f"seed {result.run.seed}, {group}"
        curves.append(Curve(panel, "groups", middle.tolist(), counts.astype(float).tolist()))
        cut = numbers["cuts"][_SETS[group]]
        curves.append(Curve(panel, _CUT, [cut], [0.0]))
    size = _architecture(numbers)
    kept = {f"left of {name}": float(count) for name, count in vars(size).items()}
    scores = {key: float(numbers[key]) for key in _SCORES} | kept
    curves.append(Curve(f"seed {result.run.seed}", "scores", [*scores], [*scores.values()]))
    return curves


def draw(curves: Sequence[Curve], result: LeNetResult) -> Figure:
    """The histograms of one seed with their thresholds: Fig. 7."""
    numbers, seed = result.numbers, result.run.seed
    titles = []
    for group, words in _PANELS.items():
        modes, cut = np.asarray(numbers["modes"][group]), numbers["cuts"][_SETS[group]]
        titles.append(f"{group}: {int((modes > cut).sum())} of {len(modes)} {words}")
    with sheet(
        "Rows and columns of LeNet-5 by the log of their radius' mode",
        ["above: rows", "below: columns", "dotted: threshold", f"seed {seed}"],
        titles,
        per_line=3,
        width=2.2,
        height=1.35,
    ) as (figure, panels):
        for axes, group in zip(panels, _PANELS, strict=True):
            _draw_bars(axes, curves, f"seed {seed}, {group}")
        for axes in panels[::3]:
            axes.set_ylabel("how many")
        for axes in panels[3:]:
            axes.set_xlabel("log of the mode")
    return figure


def _draw_bars(axes: Axes, curves: Sequence[Curve], panel: str) -> None:
    bars = find(curves, panel, "groups")
    width = float(bars.x[1]) - float(bars.x[0])
    axes.bar(bars.x, bars.y, 0.9 * width, color=RADIAL, linewidth=0)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    cut = float(find(curves, panel, _CUT).x[0])
    if cut > float(bars.x[0]) - width:
        axes.axvline(cut, color="#d55e00", linewidth=1.2, linestyle=DOTTED)


def make_claims(results: Sequence[LeNetResult]) -> list[Claim]:
    """What the paper says of its Table 2."""
    rdp = published()[0]
    sizes = [_architecture(result.numbers) for result in results]
    errors = [result.numbers["error"] for result in results]
    claims = []
    exact = [row for row in published() if _rounds_to(row.architecture, row.flops, row.parameters)]
    plain = [
        row
        for row in published()
        if abs(row.architecture.flops() - row.flops) < 1000
        and abs(row.architecture.parameters() - row.parameters) < 1000
    ]
    claims.append(
        Claim(
            "Table 2: FLOPs and parameters are those of the pruned architecture by the formula",
            f"the formula gives the printed numbers of {len(plain)} of {len(published())} rows; "
            "with a fully connected layer more, from all 16 conv2 numbers to those that are left, "
            f"of {len(exact)} ({', '.join(row.method for row in exact)}). RDP's FLOPs are then "
            f"{rdp.architecture.flops(as_in_table_2=True):,} (printed {rdp.flops:,}), without that "
            f"layer {rdp.architecture.flops():,}; its parameters "
            f"{rdp.architecture.parameters(as_in_table_2=True):,} (printed {rdp.parameters:,}) and "
            f"{rdp.architecture.parameters():,}",
            of_statement(len(plain) == len(published())),
            "the network has no such layer: inputs that are left out are not computed. The table "
            "here has both counts",
        )
    )
    flops = [size.flops(as_in_table_2=True) for size in sizes]
    claims.append(
        Claim(
            f"Table 2: RDP leaves {rdp.architecture} of {WHOLE} ({rdp.flops // 1000}K FLOPs as "
            f"counted there) at {rdp.error:.1f} % error",
            f"{', '.join(map(str, sizes))}: {', '.join(f'{n // 1000}K' for n in flops)} FLOPs, "
            f"{', '.join(f'{e:.2f}' for e in errors)} % error",
            together(
                [
                    of_figure(flops, rdp.flops, SIZE_MARGIN * rdp.flops, rounding=500),
                    of_figure(errors, rdp.error, ERROR_MARGIN, rounding=0.05),
                ]
            ),
            "trained for "
            + ", ".join(sorted({str(result.run.recipe.epochs) for result in results}))
            + " epochs on the training images less those for validation; the authors' published "
            "code has 200, and the paper names neither the prior's scales nor the thresholds' "
            "choice",
        )
    )
    claims.append(
        Claim(
            "Fig. 7: the log modes form clearly separated clusters",
            _separation(results),
            of_statement(all(_between(r.numbers, g) <= 0.1 for r in results for g in _PANELS)),
            "too many lie between the clusters: what is left out is the lower part of one broad "
            "distribution",
        )
    )
    return claims


def _separation(results: Sequence[LeNetResult]) -> str:
    parts = []
    for group in _PANELS:
        shares = [f"{100 * _between(r.numbers, group):.0f} %" for r in results]
        parts.append(f"{group} {', '.join(shares)}")
    return (
        "so many lie in the middle third between the medians of what is left out and of what is "
        "left: " + "; ".join(parts)
    )


def _between(numbers: Mapping[str, Any], group: str) -> float:
    """The share of a group's modes in the middle third between the medians beside the threshold."""
    return share_between_heaps(numbers["modes"][group], numbers["cuts"][_SETS[group]])


def _rounds_to(size: Architecture, flops: int, parameters: int) -> bool:
    return (
        abs(size.flops(as_in_table_2=True) - flops) < 1000
        and abs(size.parameters(as_in_table_2=True) - parameters) < 1000
    )


def _architecture(numbers: Mapping[str, Any]) -> Architecture:
    return Architecture(*(int(part) for part in numbers["architecture"].split("-")))


def _table(results: Sequence[LeNetResult]) -> Table:
    columns = ["method", "pruned architecture", "FLOPs", "parameters"]
    columns += ["FLOPs as in Table 2", "parameters as in Table 2", "error (%)"]
    rows = []
    for result in results:
        size = _architecture(result.numbers)
        rows.append(
            [f"ours, seed {result.run.seed}", *_row(size), f"{result.numbers['error']:.2f}"]
        )
    for row in published():
        printed = [f"{row.flops // 1000}K", f"{row.parameters // 1000}K"]
        cells = [str(row.architecture), *_row(row.architecture)[1:3], *printed]
        rows.append([row.method, *cells, f"{row.error:.1f}"])
    rows.append(["not pruned", *_row(WHOLE), _spread(results, "error_before")])
    heads = [Column(name, words=name in ("method", "pruned architecture")) for name in columns]
    return Table(heads, rows)


def _row(size: Architecture) -> list[str]:
    counts = (
        size.flops(),
        size.parameters(),
        size.flops(as_in_table_2=True),
        size.parameters(as_in_table_2=True),
    )
    return [str(size), *(f"{n:,}" for n in counts)]


def _spread(results: Sequence[LeNetResult], key: str) -> str:
    mean, spread = mean_and_standard_error([result.numbers[key] for result in results])
    return f"{mean:.2f}" if len(results) == 1 else f"{mean:.2f} ± {spread:.2f}"


def _settings(results: Sequence[LeNetResult]) -> list[tuple[str, str]]:
    run = results[0].run
    data, recipe = run.data, run.recipe
    return [
        (
            "data",
            f"{data.dataset}, standardised; {data.validation:.3f} of the training images are held "
            "out for validation, the same ones for every seed",
        ),
        (
            "training",
            f"{recipe.epochs} epochs of Adam on the mean NLL + KL / N in batches of "
            f"{recipe.batch_size}, learning rate {recipe.learning_rate:g}, of radii and "
            f"concentrations {recipe.radius_learning_rate:g}, both falling to 0 as a cosine; "
            f"{minutes(results)}",
        ),
        (
            "posterior",
            "double grouping, in conv1 rows (its one input channel is no group); mean directions "
            f"start at length {recipe.length:g}, factors of the radii at width {recipe.spread:g}",
        ),
        (
            "prior",
            f"half-Cauchy radii with gamma = {recipe.prior_scale:g}; directions about those of the "
            f"posterior with mean length {recipe.prior_length:g}",
        ),
        (
            "thresholds",
            "one for each set of units, on the smaller one of a unit's log modes, chosen on the "
            f"validation images: as many are left out as raise the error by {recipe.tolerance:g} "
            "percentage points in all",
        ),
        (
            "seeds",
            f"{', '.join(str(result.run.seed) for result in results)}; the picture shows seed "
            f"{run.seed}",
        ),
    ]
