"""Draw scores over steps: a panel per task or data set, a line and a band per method."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vcl_radial.reporting.figures.drawing import DASHED, Curve, key_line, line, sheet
from vcl_radial.reporting.figures.names import benchmark_label, data_label, method_label
from vcl_radial.reporting.figures.panels import balanced_per_line
from vcl_radial.reporting.figures.style import method_styles
from vcl_radial.reporting.scores import means

_ALONE, _BESIDE_OTHERS = (3.2, 2.2), (2.0, 1.35)  # of the axes, in inches
_MARKERS = 8  # of a line, at most twice as many


def mean_curves(scores: pd.DataFrame, panel: str = "part") -> list[Curve]:
    """Mean over runs of a score after each step, with a band of ± its standard error.

    Args:
        scores: rows of `vcl_radial.reporting.scores.scores_table` of one metric.
        panel: the column whose values are panels.

    Returns:
        A curve for each panel and method, in order of appearance; without a band for single runs.
    """
    curves = []
    table = means(scores, [panel, "method", "after"]).sort_values("after", kind="stable")
    for (name, method), rows in table.groupby([panel, "method"], sort=False):
        mean, error = rows["mean"], rows["standard_error"].fillna(0.0)
        band = [(mean - error).tolist(), (mean + error).tolist()] if rows["seeds"].max() > 1 else []
        curves.append(Curve(str(name), str(method), rows["after"].tolist(), mean.tolist(), *band))
    return curves


def line_figure(
    title: str,
    notes: Sequence[str],
    curves: Sequence[Curve],
    labels: tuple[str, str],
    *,
    references: Sequence[Curve] = (),
    scale: Callable[[Axes, Sequence[Curve]], object] = lambda axes, curves: None,
) -> Figure:
    """Draw curves in the styles of their methods, with one legend for all panels.

    Args:
        title: title of the figure.
        notes: phrases below the title.
        curves: the curves; a name is a method, a panel a benchmark or a data set.
        labels: labels of the axes x and y.
        references: further curves of the same panels and methods, drawn dashed.
        scale: function that sets the scales of a panel with these curves.
    """
    names = list(dict.fromkeys(curve.name for curve in curves))
    titles = list(dict.fromkeys(curve.panel for curve in curves))
    styles = method_styles(names)
    key = [
        key_line(method_label(n), styles[n].colour, markersize=4, **styles[n].look) for n in names
    ]
    per_line = balanced_per_line(len(titles), 3)
    width, height = _ALONE if len(titles) == 1 else _BESIDE_OTHERS
    with sheet(
        title,
        notes,
        [data_label(benchmark_label(name)) for name in titles],
        per_line=per_line,
        width=width,
        height=height,
        key=key,
        grid="y",
    ) as (figure, panels):
        for index, (axes, panel) in enumerate(zip(panels, titles, strict=True)):
            shown = [curve for curve in curves if curve.panel == panel]
            for curve in shown:
                style, every = styles[curve.name], max(1, len(curve.x) // _MARKERS)
                line(axes, curve, style.colour, markersize=3.5, markevery=every, **style.look)
            for curve in references:
                if curve.panel == panel:
                    line(axes, curve, styles[curve.name].colour, linestyle=DASHED, linewidth=0.9)
            scale(axes, shown)
            if index % per_line == 0:
                axes.set_ylabel(labels[1])
            if index + per_line >= len(titles):
                axes.set_xlabel(labels[0], labelpad=3)
    return figure
