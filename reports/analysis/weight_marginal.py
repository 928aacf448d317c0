"""The density of one weight of a radial group (AISTATS Fig. 9).

With w = sigma u r, where u_1 has the density c (1 - u^2)^((D-3)/2) on a sphere in D dimensions,

    p(w) = c int_0^(pi/2) cos(t)^(D-2) / sin(t) f(w / sin t) dt,   f(r) = sqrt(2/pi) exp(-r^2/2)
    c = Gamma(D/2) / (sqrt(pi) Gamma((D-1)/2)),   sigma = 1

which is Gamma(D/2) / (pi sqrt 2) exp(-w^2/2) U((D-1)/2, 1, w^2/2) with Tricomi's function U. At
D = 1 it is the normal density; above, it has a logarithmic pole at 0. Its variance is 1/D and its
kurtosis 9 D / (D + 2), where a Gaussian has 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from scipy import integrate, stats

from reports.analysis.soap_bubble import in_blocks
from reports.figures import curve, histogram
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from reports.papers.texts import listed
from vcl_radial.posteriors import Radial
from vcl_radial.reporting.figures.drawing import Curve

FIG_9 = 10
SIZES = (1, 2, 10, 100)

_DENSITY = "density, sigma = 1"
_TAILS = "P(|w| > x), sigma = 1"
_OWN_UNITS = "P(|w| > x), x in standard deviations of the weight"
_NORMAL = "Gaussian"
_LARGE = 10_000


def density(w: float, D: int) -> float:
    """Density of one weight of a radial group of D with sigma = 1, at w != 0 for D > 1."""
    return _integral(w, D, lambda r: math.sqrt(2 / math.pi) * math.exp(-(r**2) / 2), True)


def tail(x: float, D: int) -> float:
    """P(|w| > x) of one weight of a radial group of D with sigma = 1."""
    return 2 * _integral(x, D, lambda r: math.erfc(r / math.sqrt(2)), False)


def kurtosis(D: int) -> float:
    """E w^4 / (E w^2)^2 = 9 D / (D + 2), from E u^4 = 3 / (D (D + 2)) and E r^4 = 3."""
    return 9 * D / (D + 2)


def _integral(w: float, D: int, radial: Callable[[float], float], per_radius: bool) -> float:
    """The integral c int cos^(D-2) radial(|w| / sin) (/ sin) dt over a quarter turn."""
    w = abs(w)
    if D == 1:  # u is +1 or -1
        return radial(w) / 2
    log_c = math.lgamma(D / 2) - math.lgamma((D - 1) / 2) - math.log(math.pi) / 2
    # t = exp(-y) resolves the region near t = 0, where the whole integral is if D is large.

    def integrand(y: float) -> float:
        t = math.exp(-y)
        sine, cosine = math.sin(t), math.cos(t)
        measure = t * (cosine ** (D - 2) if D > 2 else 1.0)
        return measure * radial(w / sine) / (sine if per_radius else 1.0)

    start, end = -math.log(math.pi / 2), -math.log(max(w, 1e-12) / 40)
    typical = max(start, min(end, math.log(D) / 2))
    # The tolerance is relative: far out the whole integral is below quad's absolute tolerance.
    value, _ = integrate.quad(
        integrand, start, end, points=(typical,), limit=400, epsabs=0.0, epsrel=1e-9
    )
    return float(math.exp(log_c) * value)


def draws(D: int, n: int) -> npt.NDArray[np.float64]:
    """Draw n times the first weight of a group of the suite's `Radial`, sigma = 1."""
    posterior = Radial(torch.zeros(D), torch.ones(D))
    return in_blocks(lambda count: posterior.sample(count)[:, 0], D, n).numpy()


def analyse(setting: Setting) -> Analysis:
    """Draw the density, and its tails at equal sigma and in standard deviations of the weight."""
    n = 200_000 if setting.quick else 4_000_000
    points = 61 if setting.quick else 241
    samples = draws(FIG_9, n)
    setting.say(f"{n:,} draws of a group of {FIG_9}")
    curves = [*_densities(samples, points), *_tails(points)]
    near, near_normal = 1 - tail(0.1, FIG_9), float(stats.norm.cdf(0.1) - stats.norm.cdf(-0.1))
    beyond = {D: tail(1.0, D) for D in SIZES}
    far, far_normal = tail(2.0, FIG_9), float(2 * stats.norm.sf(2))
    size = np.abs(samples)
    numbers = {
        "n": len(samples),
        "D": FIG_9,
        "sizes": SIZES,
        "near": near,
        "near_drawn": float((size < 0.1).mean()),
        "near_normal": near_normal,
        "beyond": beyond[FIG_9],
        "beyond_drawn": float((size > 1.0).mean()),
        "beyond_normal": float(2 * stats.norm.sf(1)),
        "beyond_all": listed("{1:.2g} (D = {0:,})", beyond),
        "far": far,
        "far_drawn": float((size > 2.0).mean()),
        "far_normal": far_normal,
        "kurtosis": kurtosis(FIG_9),
        "kurtosis_drawn": float((samples**4).mean() / (samples**2).mean() ** 2),
        "tail_large": tail(4 / math.sqrt(_LARGE), _LARGE),
        "tail_normal": float(2 * stats.norm.sf(4)),
    }
    rules = {
        "peak": near > 2 * near_normal,
        "tails": far < far_normal,
        "layer": all(a > b for a, b in pairwise(beyond.values())),
    }
    return analysis(__file__, curves, numbers, rules)


def _densities(samples: npt.NDArray[np.float64], points: int) -> list[Curve]:
    # The grid is fine near the pole, but excludes it.
    half = np.concatenate([np.geomspace(1e-4, 0.05, points // 4), np.linspace(0.055, 3, points)])
    x = np.concatenate([-half[::-1], half])
    return [
        curve(_DENSITY, "radial", x, [density(w, FIG_9) for w in x]),
        curve(_DENSITY, _NORMAL, x, stats.norm.pdf(x)),
        histogram(_DENSITY, "radial, draws", samples, np.linspace(-3, 3, 121)),
    ]


def _tails(points: int) -> list[Curve]:
    """P(|w| > x) over x in units of sigma, and in standard deviations of the weight."""
    x, deviations = np.linspace(0, 4, points).tolist(), np.linspace(0, 6, points).tolist()
    normal = [float(2 * stats.norm.sf(v)) for v in deviations]
    return [
        *(Curve(_TAILS, _name(D), x, [tail(v, D) for v in x]) for D in SIZES),
        Curve(_OWN_UNITS, _NORMAL, deviations, normal),
        *(
            Curve(_OWN_UNITS, _name(D), deviations, [tail(v / math.sqrt(D), D) for v in deviations])
            for D in (2, FIG_9, _LARGE)
        ),
    ]


def _name(D: int) -> str:
    return "D = 1 (Gaussian)" if D == 1 else f"D = {D:,}"
