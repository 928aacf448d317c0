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
from matplotlib.figure import Figure
from scipy import special

from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill, listed
from reports.seeds.rdp.bessel_bounds import theorem_3
from reports.seeds.rdp.exact_bessel import Array, exact_log
from reports.seeds.rdp.ways import Ways
from vcl_radial.posteriors.bessel import log_bessel
from vcl_radial.reporting.figures.drawing import Curve, find, logarithmic

ORDERS = (10, 100, 500, 1000)
SCIPY, SUITE, SERIES, PIECES = "scipy, ive", "the suite", "Eq. 45 with Thm. 3", "Eq. 44"


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


WAYS = Ways(
    {SCIPY: by_scipy, SUITE: by_suite, SERIES: by_series, PIECES: in_pieces},
    {SCIPY: "#e69f00", SUITE: "#0072b2", SERIES: "#009e73", PIECES: "#cc79a7"},
    dashed=PIECES,
    value="log I_v",
    error="error (nats)",
    least=1e-14,
    relative=False,
)
"""log I_v at order v and arguments z."""


def analyse(setting: Setting) -> Analysis:
    """Draw the logarithm over z, and each way's error in nats against mpmath."""
    z = np.geomspace(0.1, 1e4, 40 if setting.quick else 120)
    curves: list[Curve] = []
    for v in ORDERS:
        curves += WAYS.curves(v, z, exact_log(v, z))
        setting.say(f"order {v}")
    return Analysis(curves=curves, figure=_figure(curves), **_texts(curves, z))


def _figure(curves: Sequence[Curve]) -> Figure:
    notes = ["above: the logarithm", "below: error in nats against mpmath"]
    with WAYS.sheet("log Iᵥ(z)", notes, ORDERS, "Fig. 9") as (figure, axes):
        for above, below, v in zip(axes, axes[len(ORDERS) :], ORDERS, strict=False):
            WAYS.draw(above, below, curves, v, most=1e4)
            above.set_yscale("symlog", linthresh=100)
            above.set_ylim(-2e4, 2e4)
            above.set_yticks([-1e4, -1e3, 0, 1e3, 1e4], ["−10⁴", "−10³", "0", "10³", "10⁴"])
            logarithmic(above, "x", ticks=4)
        axes[0].set_ylabel("nats")
        axes[len(ORDERS)].set_ylabel("error (nats)")
    return figure


def _texts(curves: Sequence[Curve], z: Array) -> dict[str, Any]:
    worst = WAYS.worst(curves, ORDERS)
    errors = {name: listed("{1:.2g} (v = {0})", way_errors) for name, way_errors in worst.items()}
    pieces = [find(curves, f"{WAYS.error}, v = {v}", PIECES) for v in ORDERS]
    from_z = {v: min(WAYS.finite(curves, SCIPY, v), default=math.inf) for v in (500, 1000)}
    many = np.resize(z, 20_000)
    seconds = {name: _seconds(name, many) for name in (SCIPY, SUITE, SERIES)}
    numbers = {
        "orders": ORDERS,
        "arguments": len(z),
        "series": errors[SERIES],
        "finite_from": listed("{1:,.0f} (v = {0})", from_z),
        "pieces": errors[PIECES],
        "pieces_at": [float(error.x[int(np.argmax(error.y))]) for error in pieces],
        "suite": errors[SUITE],
        "many": len(many),
        "series_cost": seconds[SERIES] / seconds[SCIPY],
        "suite_cost": seconds[SUITE] / seconds[SCIPY],
    }
    rules = {
        "series": max(worst[SERIES].values()) < 0.1,
        "scipy": min(from_z.values()) >= 100,
        "pieces": max(worst[PIECES].values()) < 1,
        "suite": max(worst[SUITE].values()) < 1e-4,
    }
    return fill(__file__, numbers, rules)


def _seconds(name: str, z: Array) -> float:
    """The processor time of a way at the second order, the least of three."""
    times = []
    for _ in range(3):
        started = process_time()
        WAYS.ways[name](ORDERS[1], z)
        times.append(process_time() - started)
    return min(times)
