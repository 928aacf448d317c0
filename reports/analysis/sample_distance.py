"""Sigma, and the distance of draws to the mean, in training (arXiv Fig. 8)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure
from scipy import stats

from reports.analysis.training_dynamics import settings_of
from reports.analysis.two_posteriors import (
    MFVI,
    Histories,
    train_both,
)
from reports.analysis.two_posteriors import RADIAL as RADIAL_RUN
from reports.papers.analysis import Analysis, Setting
from vcl_radial.report.figures.drawing import (
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
from vcl_radial.report.figures.style import INK, QUIET_INK, SMALL_SIZE
from vcl_radial.runs.sections import Claim

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
    return Analysis(
        title="Sigma and the distance of draws to the mean in training",
        source="arXiv version, Fig. 8",
        shown=[
            "The runs of `training-dynamics`, as Fig. 8 there is of the run of its Fig. 1. Left: "
            "sigma, mean over all weights, with the smallest and the largest in pale. Middle: the "
            "Euclidean distance ||w - mean|| over all weights of the network, averaged over draws. "
            "Right: the ratio of the two distances, and what it should be at equal sigma, the root "
            "of the number of weights over the mean of chi(L) for the radii of L layers.",
        ],
        settings=settings_of(histories),
        curves=curves,
        figure=_figure(curves, histories),
        claims=_claims(curves, histories),
        notes=[
            "The ratio is no constant of the method: at equal sigma it grows as the root of the "
            f"number of weights ({_expected(histories):.0f} for the {histories.weights:,} of this "
            "network). In noise per weight both posteriors would be as far "
            "from their means, by root mean square: see `soap-bubble`.",
        ],
    )


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


def _claims(curves: Sequence[Curve], histories: Histories) -> list[Claim]:
    sigmas = {name: find(curves, _SIGMA, name) for name in _COLOURS}
    ratio = find(curves, _RATIO, "MFVI over radial")
    apart = max(
        max(a / b, b / a) for a, b in zip(sigmas[MFVI].y, sigmas[RADIAL_RUN].y, strict=True)
    )
    spread = {name: _last_spread(curve) for name, curve in sigmas.items()}
    return [
        histories.claim(
            "Fig. 8: the average sigma grows similarly for both",
            f"from {sigmas[MFVI].y[0]:.2g} to {sigmas[MFVI].y[-1]:.2g} (MFVI) and "
            f"{sigmas[RADIAL_RUN].y[-1]:.2g} (radial); never more than {apart:.1f} times apart",
            apart < 3,
        ),
        histories.claim(
            "Fig. 8: the smallest and largest sigma of the model (shading) are similar too",
            f"largest over smallest at the end: {spread[MFVI]:.1f} (MFVI), "
            f"{spread[RADIAL_RUN]:.2f} (radial)",
            max(spread.values()) < 3 * min(spread.values()),
            "the Gaussian's sigmas part, for its NLL pulls on single weights; the radial's feel "
            "the entropy alone so far, which moves all by the same step",
        ),
        histories.claim(
            "Section 3.3: the average distance to the mode is about 100 times larger for MFVI",
            f"{min(ratio.y):.0f} to {max(ratio.y):.0f} times, {ratio.y[-1]:.0f} at the end",
            100 / 3 < ratio.y[-1] < 300,
        ),
    ]


def _last_spread(curve: Curve) -> float:
    assert curve.low is not None
    assert curve.high is not None
    return curve.high[-1] / curve.low[-1]
