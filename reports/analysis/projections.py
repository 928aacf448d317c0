"""Draws in two dimensions, with the distance to the mean or in a plane (blog's first picture).

A draw w of D weights is shown in two ways, with the mean at 0 and the noise tau of one weight as
the unit, so that both posteriors have E ||w||^2 = D tau^2:

    distance kept    ||w|| / (tau sqrt(D)) at the angle of (w_1, w_2)
    in a plane       (w_1, w_2) / tau, a linear projection

Any linear projection of a Gaussian is a Gaussian: N(0, I) of two weights, whatever D is. So no
plane shows the soap bubble; the first way does. In a plane a radial draw is far more peaked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from reports.analysis.soap_bubble import CONV_64
from reports.figures import curve
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from vcl_radial.posteriors import Gaussian, Posterior, Radial

FAMILIES: dict[str, type[Posterior]] = {"Gaussian": Gaussian, "radial": Radial}
SHOWN = 1_000
_KEPT, _PLANE = "distance kept", "in a plane"
_BLOCK = 50


def draws(family: type[Posterior], D: int, n: int) -> tuple[Tensor, Tensor]:
    """Draw n times D weights with noise 1 of one weight, in both ways.

    Returns:
        The points with the distance kept, and those in a plane; `[n, 2]` each.
    """
    scale = math.sqrt(D) if family is Radial else 1.0
    posterior = family(torch.zeros(D), torch.full((D,), scale))
    kept, plane = [], []
    for start in range(0, n, _BLOCK):
        w = posterior.sample(min(_BLOCK, n - start))
        two = w[:, :2]
        length = w.norm(dim=1, keepdim=True) / math.sqrt(D)
        kept.append(length * two / two.norm(dim=1, keepdim=True))
        plane.append(two)
    return torch.cat(kept), torch.cat(plane)


def share_near(points: Tensor) -> float:
    """The share of points that are nearer to 0 than half of their median distance."""
    distance = points.norm(dim=1)
    return float((distance < distance.median() / 2).double().mean())


def analyse(setting: Setting) -> Analysis:
    """Draw both posteriors in both ways."""
    n, D = (SHOWN // 2, CONV_64 // 16) if setting.quick else (SHOWN, CONV_64)
    made = {name: draws(family, D, n) for name, family in FAMILIES.items()}
    curves = [
        curve(panel, name, *points.T.numpy())
        for name, ways in made.items()
        for panel, points in zip((_KEPT, _PLANE), ways, strict=True)
    ]
    kept, plane = (points.norm(dim=1).numpy() for points in made["Gaussian"])
    low, high = np.quantile(kept, [0.05, 0.95])
    rayleigh = stats.kstest(plane, stats.rayleigh.cdf)
    near = {name: share_near(points) for name, (points, _) in made.items()}
    numbers: dict[str, Any] = {
        "D": D,
        "draws": n,
        "radial": 100 * near["radial"],
        "gaussian": 100 * near["Gaussian"],
        "low": float(low),
        "high": float(high),
        "plane": 100 * share_near(made["Gaussian"][1]),
        "apart": float(rayleigh.statistic),
        # P(distance < median / 2) of N(0, I) in two dimensions: the median squared is 2 log 2.
        "two": 100 * (1 - 2**-0.25),
    }
    rules = {
        "intuition": near["radial"] > 0.2,
        "bubble": near["Gaussian"] == 0 and high - low < 0.1,
        "projection": rayleigh.pvalue < 0.01,
    }
    return analysis(__file__, curves, numbers, rules)
