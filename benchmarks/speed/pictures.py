"""Pictures of speed: ratios with their range, growth on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.speed.setting import Row
from vcl_radial.reporting.figures.drawing import Curve, dots, key_line, logarithmic, sheet
from vcl_radial.reporting.figures.names import method_label
from vcl_radial.reporting.figures.style import INK, QUIET_INK, styles_in_order


class Ratios(NamedTuple):
    """One line per variant: the median of the metric as a dot, the range over rounds as a bar.

    Attributes:
        name: name of the files.
        title: title of the picture.
        metric: the metric that is drawn.
    """

    name: str
    title: str
    metric: str

    def draw(self, rows: Sequence[Row]) -> Figure:
        """The picture of a section's rows."""
        chosen = [row for row in rows if row.metric == self.metric]
        height = 0.26 * len(chosen) + 0.1
        with sheet(self.title, [], [""], per_line=1, width=3.6, height=height) as (figure, (axes,)):
            axes.axvline(1.0, color=QUIET_INK, linewidth=0.8, linestyle=(0, (3, 2)))
            for y, row in enumerate(chosen):
                axes.plot([row.low, row.high], [y, y], color=INK, linewidth=1.2)
                axes.plot(row.median, y, "o", color=INK, markersize=5)
                axes.text(row.high, y, f"   {row.median:.2f}", va="center")
            axes.set_yticks(range(len(chosen)), [_label(row) for row in chosen])
            axes.tick_params(axis="y", length=0)
            axes.set(xlim=(0, None), ylim=(len(chosen) - 0.5, -0.5), xlabel=self.metric)
            axes.grid(visible=False, axis="y")
        return figure


class Growth(NamedTuple):
    """One line of panels per growing axis, one panel per metric; all axes are logarithmic.

    Attributes:
        name: name of the files.
        title: title of the picture.
        metrics: the metrics that are drawn.
    """

    name: str
    title: str
    metrics: tuple[str, ...]

    def draw(self, rows: Sequence[Row]) -> Figure:
        """The picture of a section's rows."""
        panels: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            if row.metric in self.metrics:
                panels.setdefault((_axis(row), row.metric), []).append(row)
        axis_names = [axis for axis, _ in panels]
        slots = sorted(panels, key=lambda panel: axis_names.index(panel[0]))
        variants = dict.fromkeys(row.variant for panel in panels.values() for row in panel)
        styles = styles_in_order(list(variants))
        with sheet(
            self.title,
            ["bars: lowest and highest round"],
            [metric for _, metric in slots],
            per_line=axis_names.count(axis_names[0]),
            width=2.2,
            height=1.8,
            key=[
                key_line(method_label(v), style.colour, marker=style.marker)
                for v, style in styles.items()
            ],
        ) as (figure, all_axes):
            for axes, slot in zip(all_axes, slots, strict=True):
                for variant, style in styles.items():
                    line = [row for row in panels[slot] if row.variant == variant]
                    if line:
                        sizes = [int(row.size.partition("=")[2]) for row in line]
                        middle, low, high, _ = zip(*(row[3:] for row in line), strict=True)
                        curve = Curve("", variant, sizes, middle, low, high)
                        look = {"marker": style.marker, "linestyle": "-", "linewidth": 1.2}
                        dots(axes, curve, style.colour, **look)
                _logarithmic(axes)
                axes.set_xlabel(slot[0])
        return figure


_NAMES = {
    "convnet": "ConvNet",
    "mfvi": "MFVI",
    "radial": "radial VI",
    "rdp": "RDP",
    "resnet": "ResNet",
    "vgg": "VGG",
}


def _label(row: Row) -> str:
    """The readable name of a row: `radial VCL, ResNet, batch 32`."""
    parts = filter(None, f"{row.variant}, {row.size}".split(", "))
    return ", ".join(_NAMES.get(part, method_label(part.replace("=", " "))) for part in parts)


def _axis(row: Row) -> str:
    return row.size.partition("=")[0]


def _logarithmic(axes: Axes) -> None:
    """Set logarithmic axes; y spans at least a decade, as a flat line looks steep on less."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    reach = max(1.0, (10 * low / high) ** 0.5)
    axes.set_ylim(low / reach, high * reach)
    logarithmic(axes, "xy")
