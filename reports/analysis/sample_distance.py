"""Sigma, and the distance of draws to the mean, in training (arXiv Fig. 8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from scipy import stats

from reports.analysis.two_posteriors import (
    MFVI,
    Histories,
    train_both,
)
from reports.analysis.two_posteriors import RADIAL as RADIAL_RUN
from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill
from vcl_radial.reporting.figures.drawing import (
    DASHED,
    GAUSSIAN,
    RADIAL,
    Curve,
    find,
    legend,
    line,
    logarithmic,
    sheet,
)
from vcl_radial.reporting.figures.style import INK, QUIET_INK, SMALL_SIZE

_SIGMA, _DISTANCE, _RATIO = "sigma", "distance to the mean", "ratio of the distances"
_COLOURS = {MFVI: GAUSSIAN, RADIAL_RUN: RADIAL}


def analyse(setting: Setting) -> Analysis:
    """Follow sigma and ||w - mean|| in the runs of `training-dynamics`."""
    histories = train_both(setting)
    curves = []
    for name in _COLOURS:
        curves += [
            histories.curve(_SIGMA, name, "sigma", low="sigma_low", high="sigma_high"),
            histories.curve(_DISTANCE, name, "distance"),
        ]
    gaussian, radial = (find(curves, _DISTANCE, name) for name in _COLOURS)
    ratios = [a / b for a, b in zip(gaussian.y, radial.y, strict=True)]
    curves.append(Curve(_RATIO, "MFVI over radial", gaussian.x, ratios))
    texts = _texts(curves, histories)
    return Analysis(curves=curves, figure=_figure(curves, histories), **texts)


def ratio_at_equal_sigma(weights: int, radii: int) -> float:
    """What the mean distances to the mean of a Gaussian and a radial network have as their ratio.

    sqrt(D) / E chi(L)   for D weights in all, L radii (one for a layer) and one sigma, since
    ||w - mean||^2 is about D sigma^2 under the Gaussian, and sigma^2 sum of r_l^2 under the radial
    """
    return math.sqrt(weights) / float(stats.chi(radii).mean())


def _expected(histories: Histories) -> float:
    return ratio_at_equal_sigma(histories.weights, histories.radii)


def _figure(curves: Sequence[Curve], histories: Histories) -> Figure:
    with sheet(
        "Sigma and the distance of draws to the mean",
        [histories.images.description, f"{histories.weights:,} weights"],
        ["σ: mean, smallest, largest", "Distance of a draw to the mean", "MFVI over radial"],
        per_line=3,
        width=1.95,
        height=1.8,
    ) as (figure, (sigma, distance, ratio)):
        for axes, panel in ((sigma, _SIGMA), (distance, _DISTANCE)):
            for name, colour in _COLOURS.items():
                line(axes, find(curves, panel, name), colour)
            logarithmic(axes, "y")
        line(ratio, find(curves, _RATIO, "MFVI over radial"), INK)
        expected = _expected(histories)
        ratio.axhline(expected, color=QUIET_INK, linewidth=0.8, linestyle=DASHED)
        ratio.annotate(
            "at equal σ",
            (0.02, expected),
            (0, -3),
            va="top",
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize=SMALL_SIZE,
        )
        ratio.set_ylim(0, 1.25 * max(expected, *find(curves, _RATIO, "MFVI over radial").y))
        sigma.set_ylabel("σ")
        distance.set_ylabel("‖w − mean‖")
        ratio.set_ylabel("ratio of the distances")
        for axes in (sigma, distance, ratio):
            axes.set_xlim(0, histories.recipe.epochs)
            axes.set_xlabel("epoch")
        legend(sigma, loc="lower right")
        legend(distance, loc="lower right")
    return figure


def _texts(curves: Sequence[Curve], histories: Histories) -> dict[str, Any]:
    gaussian, radial = (find(curves, _SIGMA, name) for name in _COLOURS)
    ratio = find(curves, _RATIO, "MFVI over radial")
    apart = max(max(a / b, b / a) for a, b in zip(gaussian.y, radial.y, strict=True))
    spread = (_last_spread(gaussian), _last_spread(radial))
    numbers = {
        "start": gaussian.y[0],
        "end": (gaussian.y[-1], radial.y[-1]),
        "apart": apart,
        "spread": spread,
        "ratio": (min(ratio.y), max(ratio.y), ratio.y[-1]),
        "expected": _expected(histories),
        "weights": histories.weights,
    }
    alike = {
        "mean": apart < 3,
        "ends": max(spread) < 3 * min(spread),
        "distance": 100 / 3 < ratio.y[-1] < 300,
    }
    texts = fill(__file__, numbers, {key: histories.rule(holds) for key, holds in alike.items()})
    return texts | {"settings": histories.settings}


def _last_spread(curve: Curve) -> float:
    assert curve.low is not None
    assert curve.high is not None
    return curve.high[-1] / curve.low[-1]
