"""The picture of a figure, drawn from its curves as the TOML beside its module describes it.

    [figure]        title, notes, per_line, width, height
                    key      names of looks in the legend of all panels
                    same_y   numbers of panels that get the same limits
    [looks."NAME"]  of the curves with this name, or of this pattern:
                    colour, dash   names of `COLOURS` and `DASHES`; another colour as for matplotlib
                    kind           line (with its band), dots (with error bars), bars, rows
                    beside         on a second axis without ticks, from 0 to this number
                    end            a text at the last point
                    and keywords of matplotlib
    [[panels]]      title
                    draw           tables with `curves`, a panel of curves, of which `only` some are
                                   drawn, and with changes of their looks
                    xlabel, ylabel, xlim, ylim, xticks, log ("x", "y", "xy"), legend (its place)
                    marks          vertical lines: x, text
                    levels         horizontal lines in the legend: y, text
                    texts          x, y, text, colour

Every text is a format string, as in `reports.papers.texts`; a number may also be one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.papers.analysis import Analysis
from reports.papers.texts import Rule, fill, filled, read
from vcl_radial.reporting.figures.drawing import (
    DASHED,
    DOTTED,
    EQ44,
    GAUSSIAN,
    OTHER,
    RADIAL,
    Curve,
    dots,
    key_line,
    label,
    legend,
    line,
    logarithmic,
    mark,
    power_labels,
    sheet,
)
from vcl_radial.reporting.figures.style import INK, QUIET_INK, SMALL_SIZE

COLOURS = {
    "radial": RADIAL,
    "gaussian": GAUSSIAN,
    "eq44": EQ44,
    "other": OTHER,
    "ink": INK,
    "quiet": QUIET_INK,
}
DASHES = {"solid": "-", "dashed": DASHED, "dotted": DOTTED, "none": "none"}

Table = Mapping[str, Any]
"""A table of TOML."""


def analysis(
    module: str, curves: Sequence[Curve], numbers: Table, rules: Mapping[str, Rule]
) -> Analysis:
    """A figure from its curves, and from the texts and the picture in the TOML beside its module.

    Args:
        module: the file of the module.
        curves: the curves.
        numbers: numbers by their names in the texts.
        rules: rules by the keys of the claims.
    """
    texts = fill(module, numbers, rules)
    return Analysis(curves=curves, figure=draw(module, curves, numbers), **texts)


def draw(module: str, curves: Sequence[Curve], numbers: Table) -> Figure:
    """The picture of a figure; for the arguments see `analysis`."""
    texts = read(module)
    layout, looks, panels = (filled(texts[key], numbers) for key in ("figure", "looks", "panels"))
    key = [_key_line(name, _look(looks, name)) for name in layout.pop("key", ())]
    same, titles = layout.pop("same_y", ()), [panel["title"] for panel in panels]
    with sheet(titles=titles, key=key, **layout) as (figure, all_axes):
        for axes, panel in zip(all_axes, panels, strict=True):
            _draw_curves(axes, panel["draw"], looks, curves)
            _finish(axes, panel)
        limits = [all_axes[number].get_ylim() for number in same]
        for number in same:
            all_axes[number].set_ylim(min(limits)[0], max(high for _, high in limits))
    return figure


def _look(looks: Table, name: str) -> dict[str, Any]:
    """The look of a name: the look of the first pattern that matches."""
    look = next(dict(look) for pattern, look in looks.items() if fnmatchcase(name, pattern))
    look["colour"] = COLOURS.get(look["colour"], look["colour"])
    return look


def _key_line(name: str, look: Table) -> Any:
    shown = {key: look[key] for key in ("marker", "markersize", "linewidth") if key in look}
    dash = DASHES[look.get("dash", "solid")]
    return key_line(look.get("label", name), look["colour"], linestyle=dash, **shown)


def _draw_curves(axes: Axes, drawn: Sequence[Table], looks: Table, curves: Sequence[Curve]) -> None:
    for table in drawn:
        changes = {key: value for key, value in table.items() if key not in ("curves", "only")}
        names = table.get("only", ["*"])
        shown = [
            curve
            for curve in curves
            if curve.panel == table["curves"]
            and any(fnmatchcase(curve.name, name) for name in names)
        ]
        for number, curve in enumerate(shown):
            look = _look(looks, curve.name) | changes
            if look.get("kind") == "rows":
                _draw_rows(axes, curve, look["colour"], number - (len(shown) - 1) / 2)
            else:
                _draw_curve(axes, curve, look)


def _draw_curve(axes: Axes, curve: Curve, look: dict[str, Any]) -> None:
    """Draw a curve; a last point at infinity becomes a dotted line across the panel."""
    colour, kind, end = look.pop("colour"), look.pop("kind", "line"), look.pop("end", "")
    if "dash" in look:
        look["linestyle"] = DASHES[look.pop("dash")]
    if curve.x[-1] == math.inf:
        axes.axhline(curve.y[-1], color=colour, linestyle=DOTTED, linewidth=1.2)
        parts = {name: getattr(curve, name) for name in ("x", "y", "low", "high")}
        curve = replace(curve, **{name: part and part[:-1] for name, part in parts.items()})
    if top := look.pop("beside", None):
        axes.plot([], [], color=colour, label=curve.name)  # for the legend
        axes = axes.twinx()
        axes.set(ylim=(0, top), yticks=[])
        axes.spines["right"].set_visible(False)
    if kind == "bars":
        width = float(curve.x[1]) - float(curve.x[0])
        axes.bar(curve.x, curve.y, width, color=colour, alpha=0.3, linewidth=0)
    elif kind == "dots":
        dots(axes, curve, colour, **look)
    else:
        line(axes, curve, colour, **look)
    if end:
        label(axes, float(curve.x[-1]), curve.y[-1], end, QUIET_INK)


def _draw_rows(axes: Axes, curve: Curve, colour: str, index: float) -> None:
    """Draw a curve over names as bars from left to right, with their ranges and values."""
    y, low, high = (np.asarray(part) for part in (curve.y, curve.low, curve.high))
    rows = np.arange(len(y)) + 0.38 * index
    ranges = {"ecolor": INK, "elinewidth": 0.8}
    bars = axes.barh(rows, y, 0.36, xerr=(y - low, high - y), color=colour, error_kw=ranges)
    numbers = [f"{v:,.0f}" if v >= 20 or v == int(v) else f"{v:.2g}" for v in y]
    axes.bar_label(bars, numbers, padding=3, fontsize=SMALL_SIZE - 1)
    axes.set_yticks(range(len(y)), [str(name) for name in curve.x])
    axes.set_ylim(len(y) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.15)


def _finish(axes: Axes, panel: Table) -> None:
    """Set scales, limits and texts of a panel, after its curves are drawn."""
    for level in panel.get("levels", ()):
        across = axes.axhline(float(level["y"]), color=QUIET_INK, linewidth=0.8)
        across.set(linestyle=DASHED, label=level["text"])
    logarithmic(axes, panel.get("log", ""))
    if "xticks" in panel:
        axes.set_xticks(panel["xticks"], [f"{tick:g}" for tick in panel["xticks"]])
        axes.minorticks_off()
    axes.set_xlim(*map(float, panel.get("xlim", ())))
    axes.set_ylim(*map(float, panel.get("ylim", ())))
    if axes.get_yscale() == "linear" and axes.get_ylim()[1] >= 1e5:
        power_labels(axes.yaxis)
    axes.set(xlabel=panel.get("xlabel", ""), ylabel=panel.get("ylabel", ""))
    for table in panel.get("marks", ()):
        mark(axes, **table | {"x": float(table["x"])})
    for table in panel.get("texts", ()):
        label(axes, **table | {"colour": COLOURS.get(table["colour"], table["colour"])})
    if "legend" in panel:
        legend(axes, loc=panel["legend"])
