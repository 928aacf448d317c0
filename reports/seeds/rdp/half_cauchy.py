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

from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill
from vcl_radial.posteriors.log_normal_radius import LogNormal
from vcl_radial.reporting.figures.drawing import (
    DASHED,
    RADIAL,
    Curve,
    find,
    key_line,
    legend,
    line,
    sheet,
)

SCALES = (0.1, 0.3, 1.0, 3.0)
_SHADES = ("#d55e00", "#e69f00", RADIAL, "#56b4e9")

_DENSITY = "half-Cauchy density"
_RADII = "density of log r"
_PENALTY = "divergence of a log-normal radius"
_SPREADS = (0.1, 0.5, 1.0)


def analyse(setting: Setting) -> Analysis:
    """Draw the density over its scale, log-normal radii beside it, and what they cost."""
    draws = 20_000 if setting.quick else 500_000
    factors = squared_radii(draws)
    log_r = np.linspace(-8, 8, 401)
    r = np.linspace(0, 4, 401)
    curves = [
        Curve(_DENSITY, _name(scale), r.tolist(), stats.halfcauchy(scale=scale).pdf(r).tolist())
        for scale in SCALES
    ]
    curves.append(
        Curve(
            _RADII,
            "half-Cauchy, γ = 1",
            log_r.tolist(),
            (stats.halfcauchy.pdf(np.exp(log_r)) * np.exp(log_r)).tolist(),
        )
    )
    edges = np.linspace(-8, 8, 65)
    share, _ = np.histogram(np.log(factors) / 2, edges)
    share = share / (draws * np.diff(edges))
    middle = (edges[1:] + edges[:-1]) / 2
    curves.append(Curve(_RADII, "√(ab), draws", middle.tolist(), share.tolist()))
    for spread in _SPREADS:
        curves.append(
            Curve(_RADII, _width(spread), log_r.tolist(), stats.norm(0, spread).pdf(log_r).tolist())
        )
        places = np.linspace(-6, 6, 121)
        cost = [divergence(place, spread) for place in places]
        curves.append(Curve(_PENALTY, _width(spread), places.tolist(), cost))
    return Analysis(curves=curves, figure=_figure(curves), **_texts(factors))


def squared_radii(draws: int, scale: float = 1.0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Draws of a b with a ~ Gamma(1/2, scale^2) and b ~ InverseGamma(1/2, 1)."""
    half = torch.full((2, draws), 0.5, dtype=torch.float64)
    a, inverse_b = torch._standard_gamma(half).numpy()
    return np.asarray(scale**2 * a / inverse_b)


def divergence(place: float, spread: float) -> float:
    """KL in nats of log r ~ N(place, spread^2) to C+(1), by its factors, divided at best.

    log r^2 = log a + log b. Each factor has half of the variance; the mean is divided so that the
    sum of the factors' divergences is smallest.
    """
    width = torch.tensor(spread * math.sqrt(2), dtype=torch.float64)
    mean_a = torch.linspace(min(0, 2 * place) - 4, max(0, 2 * place) + 4, 4001, dtype=torch.float64)
    a, b = LogNormal(mean_a, width), LogNormal(2 * place - mean_a, width)
    return float((a.kl_to_gamma(0.5, 1.0) + b.kl_to_inverse_gamma(0.5, 1.0)).min())


def divergence_by_quadrature(loc: float, spread: float, prior: str, scale: float) -> float:
    """KL in nats of a log-normal number to Gamma(1/2, scale) or InverseGamma(1/2, scale)."""
    q = stats.norm(loc, spread)
    p = stats.gamma(0.5, scale=scale) if prior == "gamma" else stats.invgamma(0.5, scale=scale)

    def integrand(y: float) -> float:
        return float(q.pdf(y) * (q.logpdf(y) - p.logpdf(math.exp(y)) - y))

    value, _ = integrate.quad(integrand, loc - 10 * spread, loc + 10 * spread, limit=200)
    return float(value)


def _name(scale: float) -> str:
    return f"γ = {scale:g}"


def _width(spread: float) -> str:
    return f"log-normal, width {spread:g}"


def _figure(curves: Sequence[Curve]) -> Figure:
    looks = dict(zip(_SPREADS, ("#009e73", "#cc79a7", "#737373"), strict=True))
    with sheet(
        "Half-Cauchy radii",
        ["lines: closed form", "bars: draws of the two factors"],
        ["Density over γ (Fig. 2)", "Density of log r, γ = 1", "KL of log-normal radii (nats)"],
        per_line=3,
        width=2.0,
        height=1.8,
        key=[key_line(_width(spread), colour) for spread, colour in looks.items()],
    ) as (figure, (density, radii, penalty)):
        for scale, shade in zip(SCALES, _SHADES, strict=True):
            line(density, find(curves, _DENSITY, _name(scale)), shade)
        legend(density, loc="upper right")
        density.set(xlabel="r", ylabel="density", ylim=(0, 2.5), xlim=(0, 4))
        bars = find(curves, _RADII, "√(ab), draws")
        radii.bar(bars.x, bars.y, 0.25, color=RADIAL, alpha=0.3, linewidth=0)
        line(radii, find(curves, _RADII, "half-Cauchy, γ = 1"), RADIAL)
        for spread, colour in looks.items():
            line(radii, find(curves, _RADII, _width(spread)), colour, linestyle=DASHED)
            line(penalty, find(curves, _PENALTY, _width(spread)), colour)
        radii.set(xlabel="log r", ylabel="density", ylim=(0, 1.0), xlim=(-6, 6))
        penalty.set(xlabel="mean of log r", xlim=(-6, 6), ylim=(0, 12))
    return figure


def _texts(factors: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, Any]:
    near = [float(stats.halfcauchy(scale=scale).cdf(0.1)) for scale in SCALES]
    root, square = (
        float(stats.kstest(factors**power, stats.halfcauchy.cdf).statistic) for power in (0.5, 2.0)
    )
    exact = [divergence_by_quadrature(-0.4, 0.7, kind, 2.0) for kind in ("gamma", "inverse gamma")]
    suite = LogNormal(torch.tensor(-0.4).double(), torch.tensor(0.7).double())
    printed = _printed(-0.4, 0.7, 0.5, 2.0)
    lowest, width = min((divergence(0.0, spread), spread) for spread in np.geomspace(0.1, 5, 60))
    numbers = {
        "draws": len(factors),
        "scales": SCALES,
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
