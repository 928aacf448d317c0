"""Pictures of speed: ratios as dots with their range, growth as lines on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from vcl_radial.bench.setting import Row
from vcl_radial.report.figures.layout import Grid, header_height
from vcl_radial.report.figures.style import FAINT, INK, QUIET_INK, house_style, method_styles

_LINE = 0.26
_MOST_TICKS = 7
_DRAWN = ("seconds", "ratio", "KL", "last", "bytes")
"""How the metrics begin that are drawn as growth."""


def ratios(rows: Sequence[Row], metric: str, title: str) -> Figure:
    """One line per variant: the median ratio as a dot, the range over the rounds as a bar.

    Args:
        rows: of one section.
        metric: the ratio to draw.
        title: of the figure.
    """
    chosen = [r for r in rows if r.metric == metric]
    grid = Grid(
        panels=1,
        per_line=1,
        width=3.6,
        height=_LINE * len(chosen) + 0.1,
        left=1.9,
        above=0.05,
        below=0.45,
        right=0.7,
        header=header_height(0) + 0.1,
    )
    with house_style():
        figure = grid.figure()
        axes = grid.axes(figure, 0)
        axes.axvline(1.0, color=QUIET_INK, linewidth=0.8, linestyle=(0, (3, 2)))
        for line, r in enumerate(chosen):
            axes.plot([r.low, r.high], [line, line], color=INK, linewidth=1.2)
            axes.plot(r.median, line, "o", color=INK, markersize=5)
            axes.annotate(
                f"{r.median:.2f}",
                (r.high, line),
                (6, 0),
                textcoords="offset points",
                va="center",
            )
        axes.set_yticks(range(len(chosen)), [r.variant for r in chosen])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(chosen) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.grid(axis="x", color=FAINT, linewidth=0.4)
        axes.set_xlabel(metric)
        grid.write_header(figure, title, [])
    return figure


def growth(rows: Sequence[Row], title: str) -> Figure:
    """One line of panels for each axis that grows, one panel for each metric, all logarithmic.

    Args:
        rows: of one section, with sizes such as "width=400".
        title: of the figure.
    """
    drawn = [r for r in rows if r.metric.startswith(_DRAWN)]
    metrics: dict[str, list[str]] = {}
    for r in drawn:
        of_axis = metrics.setdefault(_axis(r), [])
        if r.metric not in of_axis:
            of_axis.append(r.metric)
    variants = list(dict.fromkeys(r.variant for r in drawn))
    per_line = max(map(len, metrics.values()))
    grid = Grid(
        panels=per_line * len(metrics),
        per_line=per_line,
        width=2.2,
        height=1.8,
        left=0.75,
        above=0.15,
        below=0.5,
        right=0.2,
        header=header_height(2) + 0.1,
    )
    with house_style():
        figure = grid.figure()
        for line, (name, of_axis) in enumerate(metrics.items()):
            for column, metric in enumerate(of_axis):
                axes = grid.axes(figure, line * per_line + column)
                _lines(axes, [r for r in drawn if (_axis(r), r.metric) == (name, metric)], variants)
                axes.set_xlabel(name)
                axes.set_ylabel(metric)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        top = header_height(1) + 0.04
        figure.legend(
            handles,
            labels,
            loc="upper left",
            bbox_to_anchor=(grid.left / grid.total_width, 1 - top / grid.total_height),
            ncols=len(labels),
            frameon=False,
            borderpad=0,
            borderaxespad=0,
        )
        grid.write_header(figure, title, ["bars: lowest and highest round"])
    return figure


def _lines(axes: Axes, rows: Sequence[Row], variants: Sequence[str]) -> None:
    styles = method_styles(variants)
    for variant in variants:
        points = sorted((_size(r), r) for r in rows if r.variant == variant)
        if not points:
            continue
        sizes = [size for size, _ in points]
        medians = [r.median for _, r in points]
        below = [r.median - r.low for _, r in points]
        above = [r.high - r.median for _, r in points]
        style = styles[variant]
        axes.errorbar(
            sizes,
            medians,
            (below, above),
            color=style.colour,
            marker=style.marker,
            markersize=3.5,
            linewidth=1.2,
            elinewidth=0.8,
            label=variant,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    # At least a decade: on a shorter axis what is flat would look steep.
    middle, reach = math.sqrt(low * high), max(math.sqrt(high / low), math.sqrt(10))
    axes.set_ylim(middle / reach, middle * reach)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if reach < 100 else (1,)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    sizes = sorted({_size(r) for r in rows})
    shown = sizes[:: 1 + len(sizes) // _MOST_TICKS]
    axes.set_xticks(shown, [_short(size) for size in shown])
    axes.minorticks_off()
    axes.grid(color=FAINT, linewidth=0.4)


def _axis(r: Row) -> str:
    return r.size.partition("=")[0]


def _size(r: Row) -> int:
    return int(r.size.partition("=")[2])


def _short(size: int) -> str:
    """1k for 1,000 and 1M for 1,000,000."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)
