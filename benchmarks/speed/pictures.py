"""Pictures of speed: ratios with their range, growth on logarithmic axes, a flame graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from benchmarks.speed.setting import Row
from vcl_radial.reporting.figures.drawing import Curve, dots, key_line, logarithmic, sheet
from vcl_radial.reporting.figures.style import FAINT, INK, QUIET_INK, SMALL_SIZE, method_styles

STACK = "stack"
"""Metric of rows for pictures alone: the share of a stack, whose frames are the variant."""

_MOST_TICKS = 7
_FLAME_WIDTH, _FLAME_LINE = 10.0, 0.17
_LETTER = 0.55 * SMALL_SIZE / 72
"""Width of a letter in inches."""

_PACKAGES = ("vcl_radial", "torch", "avalanche", "matplotlib")
_OTHERS = "others"


class Ratios(NamedTuple):
    """One line per variant: the median of the metric as a dot, the range over rounds as a bar."""

    name: str
    """of the files"""
    title: str
    metric: str

    def drawn(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of the metric."""
        return [r for r in rows if r.metric == self.metric]

    def draw(self, rows: Sequence[Row]) -> Figure:
        """The picture of a section's rows."""
        chosen = self.drawn(rows)
        height = 0.26 * len(chosen) + 0.1
        with sheet(self.title, [], [""], per_line=1, width=3.6, height=height) as (figure, (axes,)):
            axes.axvline(1.0, color=QUIET_INK, linewidth=0.8, linestyle=(0, (3, 2)))
            for y, r in enumerate(chosen):
                axes.plot([r.low, r.high], [y, y], color=INK, linewidth=1.2)
                axes.plot(r.median, y, "o", color=INK, markersize=5)
                axes.annotate(
                    f"{r.median:.2f}", (r.high, y), (6, 0), textcoords="offset points", va="center"
                )
            names = [", ".join(filter(None, (r.variant, r.size))) for r in chosen]
            axes.set_yticks(range(len(chosen)), names)
            axes.tick_params(axis="y", length=0)
            axes.set(xlim=(0, None), ylim=(len(chosen) - 0.5, -0.5), xlabel=self.metric)
            axes.grid(visible=False, axis="y")
        return figure


class Growth(NamedTuple):
    """A line of panels for each axis that grows, a panel for each metric, all logarithmic.

    Sizes of rows are such as "width=400".
    """

    name: str
    title: str
    metrics: tuple[str, ...] = ("seconds", "ratio", "last", "memory: peak")
    """what the names of the metrics begin with that are drawn"""

    def drawn(self, rows: Sequence[Row]) -> list[Row]:
        """The rows with a size and one of the metrics."""
        return [r for r in rows if r.size and r.metric.startswith(self.metrics)]

    def draw(self, rows: Sequence[Row]) -> Figure:
        """The picture of a section's rows."""
        panels: dict[tuple[str, str], list[Row]] = {}
        for r in self.drawn(rows):
            panels.setdefault((r.size.partition("=")[0], r.metric), []).append(r)
        axis_names = [axis for axis, _ in panels]
        per_line = max(map(axis_names.count, axis_names))
        slots: list[tuple[str, str]] = []
        for name in dict.fromkeys(axis_names):
            line_panels = [panel for panel in panels if panel[0] == name]
            slots += line_panels + [(name, "")] * (per_line - len(line_panels))
        styles = method_styles(list(dict.fromkeys(r.variant for r in self.drawn(rows))))
        with sheet(
            self.title,
            ["bars: lowest and highest round"],
            [metric for _, metric in slots],
            per_line=per_line,
            width=2.2,
            height=1.8,
            key=[key_line(v, style.colour, marker=style.marker) for v, style in styles.items()],
        ) as (figure, all_axes):
            for axes, panel in zip(all_axes, slots, strict=True):
                if panel not in panels:
                    axes.remove()
                    continue
                for variant, style in styles.items():
                    points = sorted((_size(r), r) for r in panels[panel] if r.variant == variant)
                    if points:
                        sizes, of = zip(*points, strict=True)
                        _, _, _, _, middle, low, high, _ = zip(*of, strict=True)
                        curve = Curve("", variant, sizes, middle, low, high)
                        look = {"marker": style.marker, "linestyle": "-", "linewidth": 1.2}
                        dots(axes, curve, style.colour, **look)
                _logarithmic(axes, sorted({_size(r) for r in panels[panel]}))
                axes.set_xlabel(panel[0])
        return figure


class Flame(NamedTuple):
    """A flame graph: a box for each function, as wide as its share, on what calls it."""

    name: str
    title: str

    def drawn(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of stacks."""
        return [r for r in rows if r.metric == STACK]

    def draw(self, rows: Sequence[Row]) -> Figure:
        """The picture of a section's rows, callers before what they call."""
        shares = {tuple(r.variant.split(";")): r.median for r in self.drawn(rows)}
        colours = {name: style.colour for name, style in method_styles(_PACKAGES).items()}
        colours[_OTHERS] = FAINT
        free: dict[tuple[str, ...], float] = {(): 0.0}
        """The start of the next box on each stack."""
        depth = max(map(len, shares))
        with sheet(
            self.title,
            [],
            [""],
            per_line=1,
            width=_FLAME_WIDTH,
            height=_FLAME_LINE * depth,
            key=[key_line(name, colour, linewidth=5) for name, colour in colours.items()],
        ) as (figure, (axes,)):
            for stack, share in shares.items():
                left, level = free[stack[:-1]], len(stack) - 1
                free[stack[:-1]], free[stack] = left + share, left
                name, _, file = stack[-1].rpartition(" (")
                package = file.partition("/")[0]
                colour = colours.get(package, FAINT)
                box = Rectangle((left, level), share, 1, facecolor=colour, edgecolor="white")
                box.set(alpha=0.55, linewidth=0.6)
                axes.add_patch(box)
                room = share / 100 * _FLAME_WIDTH / _LETTER - 1
                text = next((text for text in (stack[-1], name) if len(text) <= room), "")
                centre = left + share / 2, level + 0.5
                axes.text(*centre, text, size=SMALL_SIZE, ha="center", va="center")
            axes.set(xlim=(0, 100), ylim=(0, depth), yticks=[], xlabel="per cent of the time")
            axes.spines["left"].set_visible(False)
            axes.grid(visible=False)
        return figure


Picture: TypeAlias = Ratios | Growth | Flame


def _logarithmic(axes: Axes, sizes: Sequence[int]) -> None:
    """Set logarithmic axes with some of the sizes as ticks; y has at least a decade.

    On a shorter axis a flat line would look steep.
    """
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    reach = max(1.0, (10 * low / high) ** 0.5)
    axes.set_ylim(low / reach, high * reach)
    logarithmic(axes, "xy")
    slots = sizes[:: 1 + len(sizes) // _MOST_TICKS]
    axes.set_xticks(slots, [_short(size) for size in slots])


def _size(r: Row) -> int:
    return int(r.size.partition("=")[2])


def _short(size: int) -> str:
    """Write 1k for 1,000 and 2.5M for 2,500,000."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if size >= unit:
            return f"{size / unit:.3g}{letter}"
    return str(size)
