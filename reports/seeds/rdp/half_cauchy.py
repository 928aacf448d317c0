"""Half-Cauchy radii, and log-normal ones held against them (RDP Fig. 2).

C+(r | gamma) = 2 / (pi gamma (1 + (r / gamma)^2))                              (Section 3.1)
r^2 = a b,   a ~ Gamma(1/2, scale gamma^2),   b ~ InverseGamma(1/2, scale 1)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy import integrate, stats

from reports.figures import curve, sheet_of
from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill
from vcl_radial.posteriors.log_normal_radius import LogNormal
from vcl_radial.reporting.figures.drawing import DASHED, RADIAL, Curve, find, key_line, legend, line

SCALES = {0.1: "#d55e00", 0.3: "#e69f00", 1.0: RADIAL, 3.0: "#56b4e9"}
"""Scales gamma of half-Cauchy radii, with their colours."""
WIDTHS = {0.1: "#009e73", 0.5: "#cc79a7", 1.0: "#737373"}
"""Widths of log-normal radii, with their colours."""

_DENSITY = "half-Cauchy density"
_RADII = "density of log r"
_PENALTY = "divergence of a log-normal radius"


def analyse(setting: Setting) -> Analysis:
    """Draw the density over its scale, log-normal radii beside it, and their divergence."""
    draws = 20_000 if setting.quick else 500_000
    squares = squared_radii(draws)
    r, log_r, means = np.linspace(0, 4, 401), np.linspace(-8, 8, 401), np.linspace(-6, 6, 121)
    curves = [
        curve(_DENSITY, f"γ = {scale:g}", r, stats.halfcauchy(scale=scale).pdf(r))
        for scale in SCALES
    ]
    density = stats.halfcauchy.pdf(np.exp(log_r)) * np.exp(log_r)
    curves.append(curve(_RADII, "half-Cauchy, γ = 1", log_r, density))
    counts, edges = np.histogram(np.log(squares) / 2, np.linspace(-8, 8, 65))
    bars = counts / (draws * np.diff(edges))
    curves.append(curve(_RADII, "√(ab), draws", (edges[1:] + edges[:-1]) / 2, bars))
    for width in WIDTHS:
        curves.append(curve(_RADII, _name(width), log_r, stats.norm(0, width).pdf(log_r)))
        divergences = [divergence(mean, width) for mean in means]
        curves.append(curve(_PENALTY, _name(width), means, divergences))
    return Analysis(curves=curves, figure=_figure(curves), **_texts(squares))


def squared_radii(draws: int, scale: float = 1.0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Draws of a b with a ~ Gamma(1/2, scale^2) and b ~ InverseGamma(1/2, 1)."""
    half = torch.full((2, draws), 0.5, dtype=torch.float64)
    a, inverse_b = torch._standard_gamma(half).numpy()
    return np.asarray(scale**2 * a / inverse_b)


def divergence(mean: float, width: float) -> float:
    """KL in nats of log r ~ N(mean, width^2) to C+(1), by its factors, divided at best.

    log r^2 = log a + log b. Each factor has half of the variance; the mean is divided so that the
    sum of the factors' divergences is smallest.
    """
    spread = torch.tensor(width * math.sqrt(2), dtype=torch.float64)
    mean_a = torch.linspace(min(0, 2 * mean) - 4, max(0, 2 * mean) + 4, 4001, dtype=torch.float64)
    a, b = LogNormal(mean_a, spread), LogNormal(2 * mean - mean_a, spread)
    return float((a.kl_to_gamma(0.5, 1.0) + b.kl_to_inverse_gamma(0.5, 1.0)).min())


def divergence_by_quadrature(loc: float, spread: float, prior: str, scale: float) -> float:
    """KL in nats of a log-normal number to Gamma(1/2, scale) or InverseGamma(1/2, scale)."""
    q = stats.norm(loc, spread)
    p = stats.gamma(0.5, scale=scale) if prior == "gamma" else stats.invgamma(0.5, scale=scale)

    def integrand(y: float) -> float:
        return float(q.pdf(y) * (q.logpdf(y) - p.logpdf(math.exp(y)) - y))

    value, _ = integrate.quad(integrand, loc - 10 * spread, loc + 10 * spread, limit=200)
    return float(value)


def _name(width: float) -> str:
    return f"log-normal, width {width:g}"


def _figure(curves: Sequence[Curve]) -> Figure:
    key = [key_line(_name(width), colour) for width, colour in WIDTHS.items()]
    with sheet_of(__file__, key=key) as (figure, (density, radii, penalty)):
        for scale, colour in SCALES.items():
            line(density, find(curves, _DENSITY, f"γ = {scale:g}"), colour)
        legend(density, loc="upper right")
        density.set(xlabel="r", ylabel="density", ylim=(0, 2.5), xlim=(0, 4))
        bars = find(curves, _RADII, "√(ab), draws")
        radii.bar(bars.x, bars.y, 0.25, color=RADIAL, alpha=0.3, linewidth=0)
        line(radii, find(curves, _RADII, "half-Cauchy, γ = 1"), RADIAL)
        for width, colour in WIDTHS.items():
            line(radii, find(curves, _RADII, _name(width)), colour, linestyle=DASHED)
            line(penalty, find(curves, _PENALTY, _name(width)), colour)
        radii.set(xlabel="log r", ylabel="density", ylim=(0, 1.0), xlim=(-6, 6))
        penalty.set(xlabel="mean of log r", xlim=(-6, 6), ylim=(0, 12))
    return figure


def _texts(squares: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, Any]:
    near = [float(stats.halfcauchy(scale=scale).cdf(0.1)) for scale in SCALES]
    root, square = (
        float(stats.kstest(squares**power, stats.halfcauchy.cdf).statistic) for power in (0.5, 2.0)
    )
    exact = [divergence_by_quadrature(-0.4, 0.7, kind, 2.0) for kind in ("gamma", "inverse gamma")]
    suite = LogNormal(torch.tensor(-0.4).double(), torch.tensor(0.7).double())
    printed = _printed(-0.4, 0.7, 0.5, 2.0)
    lowest, width = min((divergence(0.0, w), w) for w in np.geomspace(0.1, 5, 60))
    numbers = {
        "draws": len(squares),
        "scales": list(SCALES),
        "near": near,
        "root": root,
        "square": square,
        "printed": printed,
        "exact": exact,
        "ours": (float(suite.kl_to_gamma(0.5, 2.0)), float(suite.kl_to_inverse_gamma(0.5, 2.0))),
        "lowest": lowest,
        "width": width,
        "far": divergence(8.0, 0.1) - divergence(7.0, 0.1),
        "certain": divergence(0.0, width / 10) - lowest,
    }
    rules = {
        "mass": near == sorted(near, reverse=True),
        "square": root < 0.02,
        "root": square < 0.02,
        "divergences": abs(printed[0] - exact[0]) + abs(printed[1] - exact[1]) < 1e-3,
    }
    return fill(__file__, numbers, rules)


def _printed(mu: float, sigma: float, shape: float, scale: float) -> tuple[float, float]:
    """Eqs. 51 and 52 to the letter."""
    constant = math.lgamma(shape) - (math.log(2 * sigma**2) + 1) / 2
    return (
        constant + shape * (math.log(scale) - mu) + math.exp(-mu + sigma**2 / 2) / scale,
        constant - shape * (math.log(scale) - mu) + math.exp(mu + sigma**2 / 2) / scale,
    )
