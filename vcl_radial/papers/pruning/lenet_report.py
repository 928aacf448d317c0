"""The page of the pruned LeNet-5: Table 2 and Fig. 7 of Oh et al. (2020) beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.papers import page
from vcl_radial.papers.pruning.lenet_size import WHOLE, Architecture, published
from vcl_radial.papers.pruning.lenet_training import LeNetUnit
from vcl_radial.papers.pruning.rdp_modes import GROUPS
from vcl_radial.report.figures import house_style, save
from vcl_radial.report.figures.drawing import DOTTED, RADIAL, Curve, find, sheet, to_csv
from vcl_radial.report.figures.tables import markdown
from vcl_radial.report.sections import Claim
from vcl_radial.runs.folder import not_written, write_atomically
from vcl_radial.runs.result_file import provenance

Result: TypeAlias = tuple[LeNetUnit, Mapping[str, Any], Mapping[str, Any]]
"""What was done, its numbers, and where they came from."""

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
_BINS = 30
_CUT = "threshold"


def write_report(results: Sequence[Result], to: Path, command: str) -> None:
    """Write `README.md`, `pruning-lenet.csv`, `.png` and `.svg`, and say where they lie.

    Raises:
        UserError: something cannot be written.
    """
    curves = [curve for result in results for curve in histograms(result)]
    stem = to / "pruning-lenet"
    try:
        save(draw(curves, results[0]), stem)
    except OSError as error:
        raise not_written(stem, error) from None
    claims = make_claims(results)
    write_atomically(stem.with_suffix(".csv"), to_csv(curves))
    write_atomically(to / "README.md", _page(results, claims, command))
    print(markdown(_table(results), words=("method", "pruned architecture")))
    print(page.to_text(claims))
    print(f"{to / 'README.md'}, pruning-lenet.png, .svg, .csv")


def histograms(result: Result) -> list[Curve]:
    """How many rows or columns there are by the log of their mode, and the thresholds."""
    unit, numbers, _ = result
    curves = []
    for group in _PANELS:
        counts, edges = np.histogram(numbers["modes"][group], _BINS)
        middle = (edges[1:] + edges[:-1]) / 2
        panel = f"seed {unit.seed}, {group}"
        curves.append(Curve(panel, "groups", middle.tolist(), counts.astype(float).tolist()))
        cut = numbers["cuts"][_SETS[group]]
        curves.append(Curve(panel, _CUT, [cut], [0.0]))
    return curves


def draw(curves: Sequence[Curve], result: Result) -> Figure:
    """The histograms of one seed with their thresholds: Fig. 7."""
    unit, numbers, _ = result
    titles = []
    for group, words in _PANELS.items():
        modes, cut = np.asarray(numbers["modes"][group]), numbers["cuts"][_SETS[group]]
        titles.append(f"{group}: {int((modes > cut).sum())} of {len(modes)} {words}")
    with house_style():
        figure, panels = sheet(
            "Rows and columns of LeNet-5 by the log of their radius' mode",
            ["above: rows", "below: columns", "dotted: threshold", f"seed {unit.seed}"],
            titles,
            per_line=3,
            width=2.2,
            height=1.35,
            left=0.5,
        )
        for axes, group in zip(panels, _PANELS, strict=True):
            _draw_bars(axes, curves, f"seed {unit.seed}, {group}")
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


def make_claims(results: Sequence[Result]) -> list[Claim]:
    """What the paper says of its Table 2."""
    rdp = published()[0]
    sizes = [_architecture(numbers) for _, numbers, _ in results]
    errors = [numbers["error"] for _, numbers, _ in results]
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
            len(plain) == len(published()),
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
            max(flops) <= 1.2 * rdp.flops and max(errors) <= rdp.error + 0.2,
            "trained for "
            + ", ".join(sorted({str(unit.epochs) for unit, _, _ in results}))
            + " epochs on the training images less those for validation; the authors' published "
            "code has 200, and the paper names neither the prior's scales nor the thresholds' "
            "choice",
        )
    )
    claims.append(
        Claim(
            "Fig. 7: the log modes form clearly separated clusters",
            _separation(results),
            all(_between(numbers, g) <= 0.1 for _, numbers, _ in results for g in _PANELS),
            "too many lie between the clusters: what is left out is the lower part of one broad "
            "distribution",
        )
    )
    return claims


def _separation(results: Sequence[Result]) -> str:
    parts = []
    for group in _PANELS:
        shares = [f"{100 * _between(numbers, group):.0f} %" for _, numbers, _ in results]
        parts.append(f"{group} {', '.join(shares)}")
    return (
        "so many lie in the middle third between the medians of what is left out and of what is "
        "left: " + "; ".join(parts)
    )


def _between(numbers: Mapping[str, Any], group: str) -> float:
    """The share of a group's modes in the middle third between the medians beside the threshold."""
    modes, cut = np.asarray(numbers["modes"][group]), numbers["cuts"][_SETS[group]]
    below, above = modes[modes <= cut], modes[modes > cut]
    if not (len(below) and len(above)):
        return 1.0
    low, high = np.median(below), np.median(above)
    third = (high - low) / 3
    return float(((modes > low + third) & (modes < high - third)).mean())


def _rounds_to(size: Architecture, flops: int, parameters: int) -> bool:
    return (
        abs(size.flops(as_in_table_2=True) - flops) < 1000
        and abs(size.parameters(as_in_table_2=True) - parameters) < 1000
    )


def _architecture(numbers: Mapping[str, Any]) -> Architecture:
    return Architecture(*(int(part) for part in numbers["architecture"].split("-")))


def _table(results: Sequence[Result]) -> list[list[str]]:
    header = ["method", "pruned architecture", "FLOPs", "parameters"]
    header += ["FLOPs as in Table 2", "parameters as in Table 2", "error (%)"]
    rows = [header]
    for unit, numbers, _ in results:
        size = _architecture(numbers)
        rows.append([f"ours, seed {unit.seed}", *_row(size), f"{numbers['error']:.2f}"])
    for row in published():
        printed = [f"{row.flops // 1000}K", f"{row.parameters // 1000}K"]
        cells = [str(row.architecture), *_row(row.architecture)[1:3], *printed]
        rows.append([row.method, *cells, f"{row.error:.1f}"])
    rows.append(["not pruned", *_row(WHOLE), _spread(results, "error_before")])
    return rows


def _row(size: Architecture) -> list[str]:
    counts = (
        size.flops(),
        size.parameters(),
        size.flops(as_in_table_2=True),
        size.parameters(as_in_table_2=True),
    )
    return [str(size), *(f"{n:,}" for n in counts)]


def _spread(results: Sequence[Result], key: str) -> str:
    mean, spread = mean_and_standard_error([numbers[key] for _, numbers, _ in results])
    return f"{mean:.2f}" if len(results) == 1 else f"{mean:.2f} ± {spread:.2f}"


def _page(results: Sequence[Result], claims: Sequence[Claim], command: str) -> str:
    unit = results[0][0]
    of_claims = [["published", "ours", "verdict"]]
    of_claims += [[claim.published, claim.ours, claim.verdict] for claim in claims]
    images = (
        ""
        if unit.dataset == "mnist"
        else f" **Here it is {unit.dataset}, not MNIST, that was used.**"
    )
    lines = [
        "# LeNet-5 pruned by the radii of its rows and columns",
        "",
        "Table 2 and Fig. 7 of Oh, Adamczewski and Park 2020: LeNet-5-Caffe with a radial and "
        "directional posterior over rows and columns; filters and units whose radius has a low "
        f"mode are left out, the others keep their posterior means, without retraining.{images}",
        "",
        "![How many rows and columns there are by the log of their mode](pruning-lenet.png)",
        "",
        markdown(_table(results), words=("method", "pruned architecture")),
        "An architecture is filters of conv1, filters of conv2, inputs of fc1 that are left, and "
        "hidden units. FLOPs count a multiplication and an addition as one (Section 5.2). The "
        "first two counts are those of the network that is left; the next two have the further "
        "layer that the published numbers contain.",
        "",
        markdown(of_claims, words=of_claims[0]),
        "## Errors on the test images (%)",
        "",
        f"- pruned, posterior means: {_spread(results, 'error')}",
        f"- not pruned, posterior means: {_spread(results, 'error_before')}",
        f"- not pruned, {unit.samples} draws of the weights: {_spread(results, 'error_of_draws')}",
        f"- on the validation images, pruned and not: {_spread(results, 'validation_error')} and "
        f"{_spread(results, 'validation_error_before')}",
        "",
        "## Settings",
        "",
        f"- data: {unit.dataset}, standardised; {unit.validation:.3f} of the training images are "
        "held out for validation, the same ones for every seed",
        f"- training: {unit.epochs} epochs of Adam on the mean NLL + KL / N in batches of "
        f"{unit.batch_size}, learning rate {unit.learning_rate:g}, of radii and concentrations "
        f"{unit.radius_learning_rate:g}, both falling to 0 as a cosine",
        f"- posterior: double grouping, in conv1 rows (its one input channel is no group); mean "
        f"directions start at length {unit.length:g}, factors of the radii at width "
        f"{unit.spread:g}",
        f"- prior: half-Cauchy radii with gamma = {unit.prior_scale:g}; directions about those of "
        f"the posterior with mean length {unit.prior_length:g}",
        "- thresholds: one for each set of units, on the smaller one of a unit's log modes, chosen "
        f"on the validation images: as many are left out as raise the error by {unit.tolerance:g} "
        "percentage points in all",
        f"- seeds: {', '.join(str(unit.seed) for unit, _, _ in results)}; the picture shows seed "
        f"{unit.seed}",
        "- numbers: [pruning-lenet.csv](pruning-lenet.csv)",
        "",
        provenance(command, [environment for _, _, environment in results]),
    ]
    return "\n".join(lines)
