"""Pictures of speed: ratios as dots with their range, growth as lines on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from benchmarks.speed.flame import Flame
from benchmarks.speed.setting import Row
from vcl_radial.reporting.figures.drawing import key_line, sheet
from vcl_radial.reporting.figures.style import FAINT, INK, QUIET_INK, method_styles

_LINE = 0.26
_MOST_TICKS = 7


class Ratios(NamedTuple):
    """One line per variant: the median ratio as a dot, the range over the rounds as a bar."""

    name: str
    """of the files"""
    title: str
    metric: str
    """the ratio to draw"""

    def drawn(self, rows: Sequence[Row]) -> list[Row]:
        """Those of a section's rows that it shows."""
        return [r for r in rows if r.metric == self.metric]

    def draw(self, rows: Sequence[Row]) -> Figure:
        """The picture of a section's rows."""
        chosen = self.drawn(rows)
        height = _LINE * len(chosen) + 0.1
        with sheet(self.title, [], [""], per_line=1, width=3.6, height=height) as (figure, (axes,)):
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
            names = [", ".join(filter(None, (r.variant, r.size))) for r in chosen]
            axes.set_yticks(range(len(chosen)), names)
            axes.tick_params(axis="y", length=0)
            axes.set_ylim(len(chosen) - 0.5, -0.5)
            axes.set_xlim(left=0)
            axes.grid(visible=False, axis="y")
            axes.set_xlabel(self.metric)
        return figure


class Growth(NamedTuple):
    """A line of panels for each axis that grows, a panel for each metric, all logarithmic.

    Sizes of rows are such as "width=400".
    """

    name: str
    """of the files"""
    title: str
    metrics: tuple[str, ...] = ("seconds", "ratio", "last", "memory: peak")
    """how those begin that are drawn"""

    def drawn(self, rows: Sequence[Row]) -> list[Row]:
        """Those of a section's rows that it shows."""
        return [r for r in rows if r.size and r.metric.startswith(self.metrics)]

    def draw(self, rows: Sequence[Row]) -> Figure:
        """The picture of a section's rows."""
        chosen = self.drawn(rows)
        by_axis: dict[str, list[str]] = {}
        for axis, metric in dict.fromkeys((_axis(r), r.metric) for r in chosen):
            by_axis.setdefault(axis, []).append(metric)
        variants = list(dict.fromkeys(r.variant for r in chosen))
        per_line = max(map(len, by_axis.values()))
        panels = [
            (axis, metric)
            for axis, metrics in by_axis.items()
            for metric in [*metrics, *[""] * (per_line - len(metrics))]
        ]
        styles = method_styles(variants)
        with sheet(
            self.title,
            ["bars: lowest and highest round"],
            [metric for _, metric in panels],
            per_line=per_line,
            width=2.2,
            height=1.8,
            key=[key_line(v, styles[v].colour, marker=styles[v].marker) for v in variants],
        ) as (figure, all_axes):
            for axes, (axis, metric) in zip(all_axes, panels, strict=True):
                if metric:
                    of_panel = [r for r in chosen if (_axis(r), r.metric) == (axis, metric)]
                    _lines(axes, of_panel, variants)
                    axes.set_xlabel(axis)
                else:
                    axes.remove()
        return figure


Picture: TypeAlias = Ratios | Growth | Flame


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
    """1k for 1,000 and 2.5M for 2,500,000."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if size >= unit:
            return f"{size / unit:.3g}{letter}"
    return str(size)
