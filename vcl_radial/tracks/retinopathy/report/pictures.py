"""The pictures of the report: scores by the share referred, and calibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vcl_radial.report.figures.panels import (
    balanced_per_line,
    finish,
    panel_title,
    panels,
)
from vcl_radial.report.figures.style import (
    DASHES,
    FAINT,
    PALE,
    QUIET_INK,
    LineLook,
    house_style,
    line_looks,
)
from vcl_radial.tracks.retinopathy.report.tables import UNCERTAINTY_NAMES, main_uncertainty, ranked

_MOST_PER_LINE: Final = 4


def referral_curves(
    of_set: pd.DataFrame, metric: str, words: str, title: str, notices: Sequence[str]
) -> Figure:
    """A panel for each method: its score by the share referred, with the others in grey.

    The band is the standard error over seeds; of a single seed, the middle 90 % of the resamples
    of its patients.

    Args:
        of_set: what `tables.means` gave, of one test set.
        metric: "auc", "accuracy" or "balanced_accuracy".
        words: of the metric, for the axis.
        title: of the figure.
        notices: what has to be said with the data.
    """
    chosen = ranked(of_set, metric)
    methods = [str(name) for name in chosen["method"].unique()]
    looks = line_looks(methods)
    parts = [
        "of what is kept when the least certain photographs are referred",
        f"band: {_band_words(chosen)}",
        *(["grey: the other methods"] if len(methods) > 1 else []),
        *notices,
    ]
    bands = {method: _band(chosen[chosen["method"] == method]) for method in methods}
    low, high = _reach(list(bands.values()))
    per_line = _per_line(len(methods))
    with house_style():
        figure, grid = panels(len(methods), per_line)
        for place, (axes, method) in enumerate(zip(grid, methods, strict=True)):
            for other, group in chosen.groupby("method", sort=False):
                if other != method:
                    axes.plot(100 * group["referred"], group["mean"], color=FAINT, linewidth=0.8)
            own = chosen[chosen["method"] == method]
            referred = 100 * own["referred"]
            colour = looks[method].style.colour
            axes.fill_between(referred, *bands[method], color=colour, alpha=0.2, linewidth=0)
            axes.axhline(own["mean"].iloc[0], color=QUIET_INK, linewidth=0.6, linestyle=(0, (1, 2)))
            _line(axes, referred.to_numpy(), own["mean"].to_numpy(), looks[method])
            by = UNCERTAINTY_NAMES.get(main_uncertainty(own), "")
            panel_title(axes, f"{method}, by {by}", _size(len(methods))[0])
            axes.set_ylim(low, high)
            axes.set_xlim(0, 100 * float(chosen["referred"].max()))
            axes.grid(axis="y", color=FAINT, linewidth=0.4)
            _edges(axes, place, per_line, len(methods), "% referred", f"{words} (%)")
        finish(figure, _size(len(methods)), title, parts)
    return figure


def calibration_curves(
    pooled: pd.DataFrame, errors: pd.DataFrame, title: str, notices: Sequence[str]
) -> Figure:
    """A panel for each method: how often photographs are referable that are said to be so.

    Args:
        pooled: what `tables.pooled_calibration` gave, of one test set.
        errors: what `tables.means` gave, of the same set, with its calibration errors.
        title: of the figure.
        notices: what has to be said with the data.
    """
    methods = [str(name) for name in pooled["method"].unique()]
    looks = line_looks(methods)
    parts = [
        "on the diagonal what is said is what happens",
        "columns: share of the photographs in each tenth",
        "all seeds together",
        *notices,
    ]
    per_line = _per_line(len(methods))
    known = errors[errors["metric"] == "calibration_error"].set_index("method")["mean"]
    with house_style():
        figure, grid = panels(len(methods), per_line)
        for place, (axes, method) in enumerate(zip(grid, methods, strict=True)):
            own = pooled[pooled["method"] == method]
            share = 100 * own["count"] / own["count"].sum()
            middle = 50 * (own["lower"] + own["upper"])
            axes.bar(middle, share, width=8.5, color=PALE, edgecolor=FAINT, linewidth=0.5)
            axes.plot([0, 100], [0, 100], color=QUIET_INK, linewidth=0.7, linestyle=(0, (4, 3)))
            predicted, observed = 100 * own["predicted"], 100 * own["observed"]
            _line(axes, predicted.to_numpy(), observed.to_numpy(), looks[method], markers=True)
            panel_title(axes, f"{method}: {known[method]:.1f} % off", _size(len(methods))[0])
            axes.set_xlim(0, 100)
            axes.set_ylim(0, 100)
            axes.set_xticks([0, 25, 50, 75, 100])
            axes.set_yticks([0, 25, 50, 75, 100])
            below, beside = "said to be referable (%)", "are referable (%)"
            _edges(axes, place, per_line, len(methods), below, beside)
        finish(figure, _size(len(methods)), title, parts)
    return figure


def _per_line(count: int) -> int:
    return max(balanced_per_line(count, _MOST_PER_LINE), min(count, 2))


def _size(count: int) -> tuple[float, float]:
    """Of a panel, in inches: one that stands alone is as wide as its title needs."""
    return (3.2 if count == 1 else 1.55), 1.45


def _line(
    axes: Axes,
    x: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    y: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    look: LineLook,
    *,
    markers: bool = False,
) -> None:
    axes.plot(
        x,
        y,
        color=look.style.colour,
        linestyle=DASHES[look.dashes],
        linewidth=1.4,
        marker=look.style.marker if markers else None,
        markersize=3.2,
        clip_on=False,
    )


def _edges(axes: Axes, place: int, per_line: int, count: int, below: str, beside: str) -> None:
    """Labels of the outer panels."""
    if place + per_line >= count:
        axes.set_xlabel(below, labelpad=3)
    if place % per_line == 0:
        axes.set_ylabel(beside)


def _band(own: pd.DataFrame) -> tuple[pd.Series[float], pd.Series[float]]:
    """Lower and upper end of a method's band."""
    if _is_one_seed(own):
        return own["lower"], own["upper"]
    error = own["se_seeds"].fillna(0.0)
    return own["mean"] - error, own["mean"] + error


def _band_words(chosen: pd.DataFrame) -> str:
    of_one = {_is_one_seed(own) for _, own in chosen.groupby("method")}
    seeds, resamples = "± standard error over seeds", "the middle 90 % of resamples of patients"
    if of_one == {True, False}:
        return f"{seeds}; of a single seed {resamples}"
    return resamples if of_one == {True} else seeds


def _is_one_seed(own: pd.DataFrame) -> bool:
    return int(own["seeds"].max()) == 1


def _reach(bands: Sequence[tuple[pd.Series[float], pd.Series[float]]]) -> tuple[float, float]:
    """The axis of scores in per cent, over all that is drawn."""
    low = float(np.nanmin([below.min() for below, _ in bands]))
    high = float(np.nanmax([above.max() for _, above in bands]))
    if math.isnan(low):
        return 0.0, 100.0
    margin = 0.06 * max(high - low, 1.0)
    return max(low - margin, 0.0), min(high + margin, 100.5)
