"""Sigma, and the distance of draws to the mean, in training (arXiv Fig. 8)."""

from __future__ import annotations

import math

from scipy import stats

from reports.analysis.two_posteriors import MFVI, RADIAL, train_both
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from vcl_radial.reporting.figures.drawing import Curve, find

_SIGMA, _DISTANCE, _RATIO = "sigma", "distance to the mean", "ratio of the distances"


def analyse(setting: Setting) -> Analysis:
    """Follow sigma and ||w - mean|| in the runs of `training-dynamics`."""
    histories = train_both(setting)
    curves = []
    for name in (MFVI, RADIAL):
        curves += [
            histories.curve(_SIGMA, name, "sigma", low="sigma_low", high="sigma_high"),
            histories.curve(_DISTANCE, name, "distance"),
        ]
    distances = (find(curves, _DISTANCE, name).y for name in (MFVI, RADIAL))
    ratios = [a / b for a, b in zip(*distances, strict=True)]
    gaussian, radial = (find(curves, _SIGMA, name) for name in (MFVI, RADIAL))
    curves.append(Curve(_RATIO, "MFVI over radial", gaussian.x, ratios))
    apart = max(max(a / b, b / a) for a, b in zip(gaussian.y, radial.y, strict=True))
    last = [histories.stages[name][-1] for name in (MFVI, RADIAL)]
    spread = [stage.sigma_high / stage.sigma_low for stage in last]
    numbers = {
        "start": gaussian.y[0],
        "end": (gaussian.y[-1], radial.y[-1]),
        "apart": apart,
        "spread": spread,
        "ratio": (min(ratios), max(ratios), ratios[-1]),
        "expected": ratio_at_equal_sigma(histories.weights, histories.radii),
        "histories": histories,
    }
    alike = {
        "mean": apart < 3,
        "ends": max(spread) < 3 * min(spread),
        "distance": 100 / 3 < ratios[-1] < 300,
    }
    return analysis(__file__, curves, numbers, histories.rules(alike))


def ratio_at_equal_sigma(weights: int, radii: int) -> float:
    """Ratio of the mean distances to the mean of a Gaussian and a radial network.

    sqrt(D) / E chi(L)   for D weights in all, L radii (one for a layer) and one sigma, since
    ||w - mean||^2 is about D sigma^2 under the Gaussian, and sigma^2 sum of r_l^2 under the radial
    """
    return math.sqrt(weights) / float(stats.chi(radii).mean())
