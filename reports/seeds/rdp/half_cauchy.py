"""Half-Cauchy radii, and log-normal ones held against them (RDP Fig. 2).

C+(r | gamma) = 2 / (pi gamma (1 + (r / gamma)^2))                              (Section 3.1)
r^2 = a b,   a ~ Gamma(1/2, scale gamma^2),   b ~ InverseGamma(1/2, scale 1)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import integrate, stats

from reports.figures import curve, histogram
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from reports.papers.texts import Rule
from vcl_radial.posteriors.log_normal_radius import LogNormal
from vcl_radial.posteriors.weibull_radius import EULER, Weibull

SCALES = (0.1, 0.3, 1.0, 3.0)
WIDTHS = (0.1, 0.5, 1.0)
"""Scales gamma of half-Cauchy radii, and widths of log-normal radii."""

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
    edges = np.linspace(-8, 8, 65)
    curves.append(histogram(_RADII, "√(ab), draws", np.log(squares) / 2, edges))
    for width in WIDTHS:
        curves.append(curve(_RADII, _name(width), log_r, stats.norm(0, width).pdf(log_r)))
        divergences = [divergence(mean, width) for mean in means]
        curves.append(curve(_PENALTY, _name(width), means, divergences))
    return analysis(__file__, curves, *_numbers_and_rules(squares))


def squared_radii(draws: int, scale: float = 1.0) -> npt.NDArray[np.float64]:
    """Draws of a b with a ~ Gamma(1/2, scale^2) and b ~ InverseGamma(1/2, 1)."""
    half = torch.full((2, draws), 0.5, dtype=torch.float64)
    a, inverse_b = torch._standard_gamma(half).numpy()
    return np.asarray(scale**2 * a / inverse_b)


def divergence(mean: float, width: float) -> float:
    """KL in nats of log r ~ N(mean, width^2) to C+(1), from the best division into factors.

    log r^2 = log a + log b. Each factor has half of the variance; the mean is divided so that the
    sum of the factors' divergences is minimal.
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


def weibull_divergences() -> tuple[float, float, float]:
    """KL in nats of W(4.5, 1) to W(4.5, 2): Eq. 50 as printed, by quadrature, and the suite's."""
    scale, k_q, k_p = 4.5, 1.0, 2.0
    printed = (
        (math.log(k_q) - k_q * math.log(scale))
        - (math.log(k_p) - k_p * math.log(scale))
        + (k_q - k_p) * math.log(scale - EULER / k_q)
        + math.gamma(k_q / k_p + 1)
        - 1
    )
    q, p = (stats.weibull_min(k, scale=scale) for k in (k_q, k_p))
    exact, _ = integrate.quad(lambda x: q.pdf(x) * (q.logpdf(x) - p.logpdf(x)), 0, 40 * scale)
    loc = torch.full((2, 2), math.log(scale), dtype=torch.float64)
    suite = Weibull(loc, torch.full_like(loc, 1 / k_q)).kl(
        Weibull(loc, torch.full_like(loc, 1 / k_p))
    )
    return printed, float(exact), float(suite[0, 0])


def _name(width: float) -> str:
    return f"log-normal, width {width:g}"


def _numbers_and_rules(
    squares: npt.NDArray[np.float64],
) -> tuple[dict[str, Any], dict[str, Rule]]:
    near = [float(stats.halfcauchy(scale=scale).cdf(0.1)) for scale in SCALES]
    root, square = (
        float(stats.kstest(squares**power, stats.halfcauchy.cdf).statistic) for power in (0.5, 2.0)
    )
    exact = [divergence_by_quadrature(-0.4, 0.7, kind, 2.0) for kind in ("gamma", "inverse gamma")]
    suite = LogNormal(torch.tensor(-0.4).double(), torch.tensor(0.7).double())
    printed = _printed(-0.4, 0.7, 0.5, 2.0)
    weibull = weibull_divergences()
    lowest, width = min((divergence(0.0, w), w) for w in np.geomspace(0.1, 5, 60))
    numbers = {
        "draws": len(squares),
        "scales": SCALES,
        "near": near,
        "root": root,
        "square": square,
        "printed": printed,
        "exact": exact,
        "ours": (float(suite.kl_to_gamma(0.5, 2.0)), float(suite.kl_to_inverse_gamma(0.5, 2.0))),
        "weibull": weibull,
        "lowest": lowest,
        "width": width,
        "far": divergence(8.0, 0.1) - divergence(7.0, 0.1),
        "certain": divergence(0.0, width / 10) - lowest,
    }
    rules: dict[str, Rule] = {
        "mass": near == sorted(near, reverse=True),
        "square": root < 0.02,
        "root": square < 0.02,
        "divergences": abs(printed[0] - exact[0]) + abs(printed[1] - exact[1]) < 1e-3,
        "weibull": abs(weibull[0] - weibull[1]) < 1e-3,
    }
    return numbers, rules


def _printed(mu: float, sigma: float, shape: float, scale: float) -> tuple[float, float]:
    """Eqs. 51 and 52 exactly as they are printed."""
    constant = math.lgamma(shape) - (math.log(2 * sigma**2) + 1) / 2
    return (
        constant + shape * (math.log(scale) - mu) + math.exp(-mu + sigma**2 / 2) / scale,
        constant - shape * (math.log(scale) - mu) + math.exp(mu + sigma**2 / 2) / scale,
    )
