"""Log I_v by approximations, scipy, the suite and mpmath (RDP Fig. 9).

log I_v = log I_(v - floor v) + sum_n log( I_(v-n) / I_(v-1-n) )                    (Eq. 45)
log I_v ~ v log z + eta z - (eta + v) log 2 - log Gamma(v + 1),  z < v              (Eq. 44)
        ~ z - log(z) / 2 - log(2 pi) / 2,                        z >= v
eta = (v + 1/2) / (2 (v + 1))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy import special

from reports.papers.analysis import Analysis, Setting
from reports.seeds.rdp.bessel_bounds import theorem_3
from reports.seeds.rdp.exact_bessel import Array, exact_log
from vcl_radial.metrics.verdicts import of_statement
from vcl_radial.posteriors.bessel import log_bessel
from vcl_radial.report.figures.drawing import DASHED, Curve, find, key_line, logarithmic, sheet
from vcl_radial.report.figures.style import INK
from vcl_radial.runs.sections import Claim

ORDERS = (10, 100, 500, 1000)
SCIPY, SUITE, SERIES, PIECES = "scipy, ive", "the suite", "Eq. 45 with Thm. 3", "Eq. 44"
LOOKS = {SCIPY: "#e69f00", SUITE: "#0072b2", SERIES: "#009e73", PIECES: "#cc79a7"}
MPMATH = "mpmath"


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


WAYS: dict[str, Callable[[float, Array], Array]] = {
    SCIPY: by_scipy,
    SUITE: by_suite,
    SERIES: by_series,
    PIECES: in_pieces,
}
"""log I_v at order v and arguments z."""


def analyse(setting: Setting) -> Analysis:
    """Draw the logarithm over z, and each way's error in nats against mpmath."""
    z = np.geomspace(0.1, 1e4, 40 if setting.quick else 120)
    curves = []
    for v in ORDERS:
        exact = exact_log(v, z)
        curves.append(Curve(_log(v), MPMATH, z.tolist(), exact.tolist()))
        for name, way in WAYS.items():
            found = way(v, z)
            usable = np.isfinite(found)
            error = abs(found - exact)[usable]
            curves.append(Curve(_log(v), name, z[usable].tolist(), found[usable].tolist()))
            curves.append(Curve(_error(v), name, z[usable].tolist(), error.tolist()))
        setting.say(f"order {v}")
    return Analysis(
        title="The logarithm of a Bessel function by several ways",
        source="Oh et al. 2020, Fig. 9, Supplement 5",
        shown=[
            "Above: log I_v(z) over z by mpmath at 40 digits (black) and by the others where they "
            "are finite. Below: their errors in nats; a line that breaks off has no finite number "
            "there. Errors below 1e-14 are drawn at that.",
        ],
        settings=[
            ("orders", ", ".join(map(str, ORDERS))),
            ("arguments", f"{len(z)} in 0.1 to 1e4"),
        ],
        curves=curves,
        figure=_figure(curves),
        claims=_claims(curves),
        notes=_notes(z),
    )


def _log(v: float) -> str:
    return f"log I_v, v = {v}"


def _error(v: float) -> str:
    return f"error (nats), v = {v}"


def _figure(curves: Sequence[Curve]) -> Figure:
    with sheet(
        "log Iᵥ(z)",
        ["above: the logarithm", "below: error in nats against mpmath"],
        [f"v = {v} (Fig. 9)" for v in ORDERS] + [f"error, v = {v}" for v in ORDERS],
        per_line=len(ORDERS),
        width=1.5,
        height=1.4,
        key=[
            key_line(MPMATH, INK, linewidth=2.4, alpha=0.35),
            *(key_line(name, LOOKS[name], linestyle=_style(name)) for name in LOOKS),
        ],
    ) as (figure, axes):
        for place, v in enumerate(ORDERS):
            above, below = axes[place], axes[place + len(ORDERS)]
            exact = find(curves, _log(v), MPMATH)
            above.plot(exact.x, exact.y, color=INK, linewidth=2.4, alpha=0.35)
            for name, shade in LOOKS.items():
                own, error = find(curves, _log(v), name), find(curves, _error(v), name)
                look: dict[str, Any] = {"color": shade, "linewidth": 1.1, "linestyle": _style(name)}
                above.plot(own.x, own.y, **look)
                below.plot(error.x, np.maximum(error.y, 1e-14), **look)
            above.set(xlim=(0.1, 1e4))
            above.set_yscale("symlog", linthresh=100)
            above.set_ylim(-2e4, 2e4)
            above.set_yticks([-1e4, -1e3, 0, 1e3, 1e4], ["−10⁴", "−10³", "0", "10³", "10⁴"])
            logarithmic(above, "x", ticks=4)
            below.set(xlabel="z", ylim=(1e-14, 1e4), xlim=(0.1, 1e4))
            logarithmic(below, "xy", ticks=4)
        axes[0].set_ylabel("nats")
        axes[len(ORDERS)].set_ylabel("error (nats)")
    return figure


def _style(name: str) -> Any:
    return DASHED if name == PIECES else "-"


def _claims(curves: Sequence[Curve]) -> list[Claim]:
    worst = {
        (name, v): max(find(curves, _error(v), name).y, default=math.inf)
        for name in WAYS
        for v in ORDERS
    }
    finite_from = {v: min(find(curves, _log(v), SCIPY).x, default=math.inf) for v in ORDERS}

    def listed(name: str) -> str:
        return ", ".join(f"{worst[name, v]:.2g} (v = {v})" for v in ORDERS)

    return [
        Claim(
            "Fig. 9: the series of Eq. 45 with Theorem 3 is tight and stable, uniformly in z and v",
            "finite everywhere, and its error is that of the ratios of low order, the same at "
            f"every v; largest error in nats: {listed(SERIES)}",
            of_statement(max(worst[SERIES, v] for v in ORDERS) < 0.1),
        ),
        Claim(
            "Fig. 9: for v >= 500 scipy.special.ive cannot give a finite number when z < 100",
            "finite from z = "
            + ", ".join(f"{float(finite_from[v]):,.0f} (v = {v})" for v in (500, 1000))
            + " on",
            of_statement(min(float(finite_from[v]) for v in (500, 1000)) >= 100),
        ),
        Claim(
            "Eq. 44: works well for small z, z < v, and asymptotically above",
            f"largest error in nats: {listed(PIECES)}; it is at z = "
            + ", ".join(f"{_place_of_worst(curves, v):,.0f}" for v in ORDERS),
            of_statement(max(worst[PIECES, v] for v in ORDERS) < 1),
            "the asymptotic form wants z far above v^2, not above v; the error grows with v",
        ),
        Claim(
            "Beside the paper: the suite's log I_v, an integral of the ratio",
            f"largest error in nats: {listed(SUITE)}",
            of_statement(max(worst[SUITE, v] for v in ORDERS) < 1e-4),
        ),
    ]


def _place_of_worst(curves: Sequence[Curve], v: float) -> float:
    error = find(curves, _error(v), PIECES)
    return float(error.x[int(np.argmax(error.y))])


def _notes(z: Array) -> list[str]:
    many = np.resize(z, 20_000)
    seconds = {}
    for name in (SCIPY, SUITE, SERIES):
        times = []
        for _ in range(3):
            started = process_time()
            WAYS[name](ORDERS[1], many)
            times.append(process_time() - started)
        seconds[name] = min(times)
    return [
        f"Cost of {len(many):,} values at v = {ORDERS[1]}, in scipy's time: the series "
        f"{seconds[SERIES] / seconds[SCIPY]:.1f} (the paper: twice), the suite "
        f"{seconds[SUITE] / seconds[SCIPY]:.1f}, whatever the order is; the series grows with it.",
    ]
