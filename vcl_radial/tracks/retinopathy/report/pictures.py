"""The pictures of the report: scores by the share referred, and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vcl_radial.reporting.figures.panels import (
    balanced_per_line,
    finish,
    panel_title,
    panels,
    side_legend,
)
from vcl_radial.reporting.figures.style import (
    FAINT,
    PALE,
    QUIET_INK,
    SMALL_SIZE,
    MethodStyle,
    house_style,
    method_styles,
)
from vcl_radial.tracks.retinopathy.report.tables import UNCERTAINTY_NAMES, main_uncertainty, ranked

CURVES: Final = {"auc": "AUC", "accuracy": "Accuracy"}
"""Scores drawn by the share referred, and their names."""

_MOST_PER_LINE: Final = 4
_WIDE: Final = 2.6


def referral_curves(part_means: pd.DataFrame, title: str, notices: Sequence[str]) -> Figure:
    """Draw AUC and accuracy of the kept photographs by the share referred, a line per method.

    Bars are the standard error over seeds; for a single seed, the standard error over patients.

    Args:
        part_means: rows of `tables.means` for one part.
        title: title of the figure.
        notices: texts to show with the data.
    """
    methods = [str(name) for name in part_means["method"].unique()]
    styles = method_styles(methods)
    with house_style():
        figure, grid = panels(len(CURVES), len(CURVES))
        for axes, (metric, heading) in zip(grid, CURVES.items(), strict=True):
            chosen = ranked(part_means, metric)
            for index, method in enumerate(methods):
                line = chosen[chosen["method"] == method]
                label = f"{method}, by {UNCERTAINTY_NAMES.get(main_uncertainty(line), '')}"
                error = line["se_seeds"].where(line["seeds"] > 1, line["se_patients"])
                axes.errorbar(
                    100 * line["referred"],
                    line["mean"],
                    error.fillna(0.0),
                    # Bars of neighbours are side by side.
                    errorevery=(index % 4, 4),
                    color=styles[method].colour,
                    **styles[method].look,
                    markevery=(index % 4, 4),
                    markersize=3.2,
                    linewidth=1.2,
                    elinewidth=0.7,
                    label=label,
                )
            panel_title(axes, f"{heading} (%)", _WIDE)
            axes.set_xlabel("% referred", labelpad=3)
            axes.grid(axis="y", color=FAINT, linewidth=0.4)
        side_legend(grid[-1], list(grid[-1].get_legend_handles_labels()[1]))
        parts = [
            "of what is kept when the least certain photographs are referred",
            f"bars: {_bar_legend(part_means)}",
            *notices,
        ]
        finish(figure, (_WIDE, _WIDE * 0.8), title, parts)
    return figure


def calibration_curves(
    pooled: pd.DataFrame, errors: pd.DataFrame, title: str, notices: Sequence[str]
) -> Figure:
    """Draw a panel for each method: observed against predicted share of referable photographs.

    Args:
        pooled: rows of `tables.pooled_calibration` for one test set.
        errors: rows of `tables.means` for the same set, with its calibration errors.
        title: title of the figure.
        notices: texts to show with the data.
    """
    methods = [str(name) for name in pooled["method"].unique()]
    styles = method_styles(methods)
    parts = [
        "on the diagonal what is said is what happens",
        "columns: share of the photographs in each tenth",
        "all seeds together",
        *notices,
    ]
    per_line = _per_line(len(methods))
    errors_by_method = errors[errors["metric"] == "calibration_error"].set_index("method")["mean"]
    with house_style():
        figure, grid = panels(len(methods), per_line)
        for index, (axes, method) in enumerate(zip(grid, methods, strict=True)):
            method_bins = pooled[pooled["method"] == method]
            share = 100 * method_bins["count"] / method_bins["count"].sum()
            middle = 50 * (method_bins["lower"] + method_bins["upper"])
            axes.bar(middle, share, width=8.5, color=PALE, edgecolor=FAINT, linewidth=0.5)
            axes.plot([0, 100], [0, 100], color=QUIET_INK, linewidth=0.7, linestyle=(0, (4, 3)))
            predicted, observed = 100 * method_bins["predicted"], 100 * method_bins["observed"]
            _line(axes, predicted.to_numpy(), observed.to_numpy(), styles[method], markers=True)
            panel_title(axes, method, _size(len(methods))[0])
            axes.text(
                0.04,
                0.97,
                f"{errors_by_method[method]:.1f} % off",
                transform=axes.transAxes,
                va="top",
                fontsize=SMALL_SIZE,
                color=QUIET_INK,
            )
            axes.set_xlim(0, 100)
            axes.set_ylim(0, 100)
            axes.set_xticks([0, 25, 50, 75, 100])
            axes.set_yticks([0, 25, 50, 75, 100])
            below, beside = "said to be referable (%)", "are referable (%)"
            _edges(axes, index, per_line, len(methods), below, beside)
        finish(figure, _size(len(methods)), title, parts)
    return figure


def _per_line(count: int) -> int:
    return max(balanced_per_line(count, _MOST_PER_LINE), min(count, 2))


def _size(count: int) -> tuple[float, float]:
    """Size of a panel in inches; a single panel is as wide as its title needs."""
    return (3.2 if count == 1 else 1.55), 1.45


def _line(
    axes: Axes,
    x: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    y: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    style: MethodStyle,
    *,
    markers: bool = False,
) -> None:
    axes.plot(
        x,
        y,
        color=style.colour,
        linestyle=style.linestyle,
        linewidth=1.4,
        marker=style.marker if markers else None,
        markersize=3.2,
        clip_on=False,
    )


def _edges(axes: Axes, index: int, per_line: int, count: int, below: str, beside: str) -> None:
    """Label the outer panels."""
    if index + per_line >= count:
        axes.set_xlabel(below, labelpad=3)
    if index % per_line == 0:
        axes.set_ylabel(beside)


def _bar_legend(part_means: pd.DataFrame) -> str:
    single = {int(count) == 1 for count in part_means.groupby("method")["seeds"].max()}
    seeds, patients = "± standard error over seeds", "± standard error over patients"
    if single == {True, False}:
        return f"{seeds}; of a single seed over patients"
    return patients if single == {True} else seeds
