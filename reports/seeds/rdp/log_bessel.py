"""Log I_v by approximations, scipy, the suite and mpmath (RDP Fig. 9).

log I_v = log I_(v - floor v) + sum_n log( I_(v-n) / I_(v-1-n) )                    (Eq. 45)
log I_v ~ v log z + eta z - (eta + v) log 2 - log Gamma(v + 1),  z < v              (Eq. 44)
        ~ z - log(z) / 2 - log(2 pi) / 2,                        z >= v
eta = (v + 1/2) / (2 (v + 1))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from scipy import special

from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill, listed
from reports.seeds.rdp.bessel_bounds import theorem_3
from reports.seeds.rdp.comparison import SCIPY, SUITE, Comparison, arguments
from reports.seeds.rdp.exact_bessel import Array, exact_log
from vcl_radial.posteriors.bessel import log_bessel
from vcl_radial.reporting.figures.drawing import Curve

ORDERS = (10, 100, 500, 1000)
SERIES, PIECES = "Eq. 45 with Thm. 3", "Eq. 44"


def by_scipy(v: float, z: Array) -> Array:
    """log(ive) + z, minus infinity where `scipy.special.ive` underflows."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(special.ive(v, z)) + z)


def by_suite(v: float, z: Array) -> Array:
    """The suite's `log_bessel`."""
    return log_bessel(v, torch.as_tensor(z)).numpy()


def by_series(v: float, z: Array) -> Array:
    """Eq. 45 up from scipy's value at the order's fraction, with the middle of Theorem 3."""
    whole = math.floor(v)
    log = np.log(special.ive(v - whole, z)) + z
    for n in range(whole):
        log = log + np.log(np.mean(theorem_3(v - n, z), axis=0))
    return np.asarray(log)


def in_pieces(v: float, z: Array) -> Array:
    """Eq. 44."""
    eta = (v + 0.5) / (2 * (v + 1))
    below = v * np.log(z) + eta * z - (eta + v) * math.log(2) - math.lgamma(v + 1)
    return np.where(z < v, below, z - np.log(z) / 2 - math.log(2 * math.pi) / 2)


LOG = Comparison(
    exact_log,
    {SCIPY: by_scipy, SUITE: by_suite, SERIES: by_series, PIECES: in_pieces},
    {SCIPY: "#e69f00", SUITE: "#0072b2", SERIES: "#009e73", PIECES: "#cc79a7"},
    dashed=PIECES,
    orders=ORDERS,
    value="log I_v",
    least=1e-14,
    relative=False,
)


def analyse(setting: Setting) -> Analysis:
    """Draw the logarithm over z, and each function's error in nats against mpmath."""
    curves = LOG.curves(setting)
    figure = LOG.draw(curves, "log Iᵥ(z)", ORDERS, "Fig. 9", 1e4, _scale)
    return Analysis(curves=curves, figure=figure, **_texts(curves, arguments(setting)))


def _scale(axes: Axes) -> None:
    axes.set_yscale("symlog", linthresh=100)
    axes.set_ylim(-2e4, 2e4)
    axes.set_yticks([-1e4, -1e3, 0, 1e3, 1e4], ["−10⁴", "−10³", "0", "10³", "10⁴"])


def _texts(curves: Sequence[Curve], z: Array) -> dict[str, Any]:
    worst = {name: LOG.worst(curves, name) for name in LOG.functions}
    pieces = LOG.errors(curves, PIECES).values()
    finite_from = LOG.finite_from(curves, SCIPY)
    large = {v: finite_from[v] for v in (500, 1000)}
    many = np.resize(z, 20_000)
    seconds = {name: _seconds(name, many) for name in (SCIPY, SUITE, SERIES)}
    form = "{1:.2g} (v = {0})"
    numbers = {
        "orders": ORDERS,
        "arguments": len(z),
        "series": listed(form, worst[SERIES]),
        "finite_from": listed("{1:,.0f} (v = {0})", large),
        "pieces": listed(form, worst[PIECES]),
        "pieces_at": [float(error.x[int(np.argmax(error.y))]) for error in pieces],
        "suite": listed(form, worst[SUITE]),
        "many": len(many),
        "series_cost": seconds[SERIES] / seconds[SCIPY],
        "suite_cost": seconds[SUITE] / seconds[SCIPY],
    }
    rules = {
        "series": max(worst[SERIES].values()) < 0.1,
        "scipy": min(large.values()) >= 100,
        "pieces": max(worst[PIECES].values()) < 1,
        "suite": max(worst[SUITE].values()) < 1e-4,
    }
    return fill(__file__, numbers, rules)


def _seconds(name: str, z: Array) -> float:
    """The processor time of a function at the second order, the shortest of three calls."""
    times = []
    for _ in range(3):
        started = process_time()
        LOG.functions[name](ORDERS[1], z)
        times.append(process_time() - started)
    return min(times)
