"""Scores by the share referred, and calibration curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd
from matplotlib.figure import Figure

from vcl_radial.reporting.figures.drawing import Curve, line, sheet
from vcl_radial.reporting.figures.names import method_label
from vcl_radial.reporting.figures.panels import balanced_per_line, side_legend
from vcl_radial.reporting.figures.style import (
    FAINT,
    PALE,
    QUIET_INK,
    SMALL_SIZE,
    method_styles,
)
from vcl_radial.reporting.scores import UNCERTAINTY_NAMES, main_uncertainty

CURVES: Final = {"auc": "AUC", "accuracy": "Accuracy"}
"""Scores drawn by the share referred, and their names."""

_MOST_PER_LINE: Final = 4
_WIDE: Final = 2.6


def referral_curves(means: pd.DataFrame, title: str, notices: Sequence[str]) -> Figure:
    """Draw AUC and accuracy of the kept points by the share referred, a line per method.

    Bars are the standard error over seeds; for a single seed, the standard error within it.

    Args:
        means: `scores.means` of one part by each method's main uncertainty, with `referred`.
        title: title of the figure.
        notices: texts to show with the data.
    """
    methods = [str(name) for name in means["method"].unique()]
    styles = method_styles(methods)
    notes = [
        "of what is kept when the least certain photographs are referred",
        f"bars: {_bar_legend(means)}",
        *notices,
    ]
    with sheet(
        title,
        notes,
        [f"{heading} (%)" for heading in CURVES.values()],
        per_line=len(CURVES),
        width=_WIDE,
        height=_WIDE * 0.8,
        grid="y",
    ) as (figure, panels):
        for axes, metric in zip(panels, CURVES, strict=True):
            chosen = means[means["metric"] == metric]
            for index, method in enumerate(methods):
                rows = chosen[chosen["method"] == method]
                by = UNCERTAINTY_NAMES.get(main_uncertainty(rows["uncertainty"]), "")
                error = rows["standard_error"].where(rows["seeds"] > 1, rows["error_within"])
                axes.errorbar(
                    100 * rows["referred"],
                    rows["mean"],
                    error.fillna(0.0),
                    # Bars of neighbours are side by side.
                    errorevery=(index % 4, 4),
                    color=styles[method].colour,
                    **styles[method].look,
                    markevery=(index % 4, 4),
                    markersize=3.2,
                    linewidth=1.2,
                    elinewidth=0.7,
                    label=f"{method_label(method)}, by {by}",
                )
            axes.set_xlabel("% referred", labelpad=3)
        side_legend(panels[-1], list(panels[-1].get_legend_handles_labels()[1]))
    return figure


def calibration_curves(
    pooled: pd.DataFrame, means: pd.DataFrame, title: str, notices: Sequence[str]
) -> Figure:
    """Draw a panel for each method: observed against predicted share of class 1.

    Args:
        pooled: rows of `pooled_calibration` for one part.
        means: `scores.means` of the same part, with its calibration errors.
        title: title of the figure.
        notices: texts to show with the data.
    """
    methods = [str(name) for name in pooled["method"].unique()]
    styles = method_styles(methods)
    notes = [
        "on the diagonal what is said is what happens",
        "columns: share of the photographs in each tenth",
        "all seeds together",
        *notices,
    ]
    per_line = max(balanced_per_line(len(methods), _MOST_PER_LINE), min(len(methods), 2))
    errors = means[means["metric"] == "calibration_error"].set_index("method")["mean"]
    width = 3.2 if len(methods) == 1 else 1.55  # a single panel is as wide as its title needs
    with sheet(
        title,
        notes,
        [*map(method_label, methods)],
        per_line=per_line,
        width=width,
        height=1.45,
        grid=None,
    ) as (
        figure,
        panels,
    ):
        for index, (axes, method) in enumerate(zip(panels, methods, strict=True)):
            bins, style = pooled[pooled["method"] == method], styles[method]
            share = 100 * bins["count"] / bins["count"].sum()
            middle = 50 * (bins["lower"] + bins["upper"])
            axes.bar(middle, share, width=8.5, color=PALE, edgecolor=FAINT, linewidth=0.5)
            axes.plot([0, 100], [0, 100], color=QUIET_INK, linewidth=0.7, linestyle=(0, (4, 3)))
            x, y = (100 * bins[name] for name in ("predicted", "observed"))
            curve = Curve("", method, x.tolist(), y.tolist())
            look = {"linestyle": style.linestyle, "marker": style.marker, "markersize": 3.2}
            line(axes, curve, style.colour, **look, clip_on=False)
            axes.text(
                0.04,
                0.97,
                f"{errors[method]:.1f} % off",
                transform=axes.transAxes,
                va="top",
                fontsize=SMALL_SIZE,
                color=QUIET_INK,
            )
            ticks = [0, 25, 50, 75, 100]
            axes.set(xlim=(0, 100), ylim=(0, 100), xticks=ticks, yticks=ticks)
            if index + per_line >= len(methods):
                axes.set_xlabel("said to be referable (%)", labelpad=3)
            if index % per_line == 0:
                axes.set_ylabel("are referable (%)")
    return figure


def pooled_calibration(calibration: pd.DataFrame) -> pd.DataFrame:
    """Calibration curves over the points of all seeds together.

    Args:
        calibration: bins of many runs: `method, part, lower, upper, count, predicted, observed`.

    Returns:
        The same columns, one row per method, part and bin, without empty bins.
    """
    bins = calibration[calibration["count"] > 0].copy()
    for name in ("predicted", "observed"):
        bins[name] *= bins["count"]
    keys = ["method", "part", "lower", "upper"]
    sums = bins.groupby(keys, sort=False)[["count", "predicted", "observed"]].sum().reset_index()
    for name in ("predicted", "observed"):
        sums[name] /= sums["count"]
    # Bins are sorted, because one seed may have points in a bin where another has none.
    order = {name: index for index, name in enumerate(dict.fromkeys(sums["method"]))}
    return sums.sort_values(
        ["method", "lower"], key=lambda c: c.map(order) if c.name == "method" else c
    ).reset_index(drop=True)


def _bar_legend(means: pd.DataFrame) -> str:
    single = {int(count) == 1 for count in means.groupby("method")["seeds"].max()}
    seeds, patients = "± standard error over seeds", "± standard error over patients"
    if single == {True, False}:
        return f"{seeds}; of a single seed over patients"
    return patients if single == {True} else seeds
