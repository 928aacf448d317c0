"""Tightness of the bounds on the ratio of Bessel functions (RDP Fig. 5).

B_2(v, z) < I_v(z) / I_(v-1)(z) < B_0(v, z)       (Oh et al. 2020, Eq. 13: Theorem 1 and 3)
z / (v - 1/2 + sqrt((v + 1/2)^2 + z^2)) < the same < z / (v - 1 + sqrt((v + 1)^2 + z^2))  (28)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from reports.figures import curve, sheet_of
from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill, listed
from reports.seeds.rdp.exact_bessel import Array, exact_ratio
from vcl_radial.reporting.figures.drawing import (
    DASHED,
    DOTTED,
    Curve,
    find,
    key_line,
    label,
    legend,
    line,
    logarithmic,
)
from vcl_radial.reporting.figures.style import INK

ORDERS = (1, 5, 25, 50, 100, 500, 1000)
SHADES = ("#d55e00", "#e69f00", "#cc79a7", "#009e73", "#56b4e9", "#0072b2", "#003a5c")

_GAP = "upper minus lower bound"
_LARGEST = "largest gap over the order"
_MIDDLE = "largest relative error of the middle"
_LIMIT = math.exp(-10)
"""The paper's largest difference, approximately."""


def bound(alpha: float, v: float, z: npt.ArrayLike) -> Array:
    """B_alpha(v, z) of Eq. 13: below the ratio at alpha = 2, above it at alpha = 0."""
    z = np.asarray(z, float)
    lam = v + (alpha - 1) / 2
    delta = v - 0.5 + lam / (2 * np.hypot(lam, z))
    return np.asarray(z / (delta + np.hypot(delta, z)))


def theorem_3(v: float, z: npt.ArrayLike) -> tuple[Array, Array]:
    """The bounds of Eq. 13 (and 29), lower and upper."""
    return bound(2, v, z), bound(0, v, z)


def theorem_2(v: float, z: npt.ArrayLike) -> tuple[Array, Array]:
    """The bounds of Eq. 28, lower and upper."""
    z = np.asarray(z, float)
    lower = z / (v - 0.5 + np.hypot(v + 0.5, z))
    return np.asarray(lower), np.asarray(z / (v - 1 + np.hypot(v + 1, z)))


BOUNDS = {"Eq. 13": theorem_3, "Eq. 28": theorem_2}


def analyse(setting: Setting) -> Analysis:
    """Draw the gap over z for several orders, and its largest value over the order."""
    curves = []
    for v in ORDERS:
        z = v * np.geomspace(1e-2, 1e3, 401)
        for name, bounds in BOUNDS.items():
            curves.append(curve(_GAP, f"{name}, v = {v}", z, _gap(bounds(v, z))))
    orders = np.geomspace(1, 1000, 31 if setting.quick else 121)
    for name, bounds in BOUNDS.items():
        gaps = [_gap(bounds(v, v * np.geomspace(1e-3, 1e3, 601))).max() for v in orders]
        curves.append(curve(_LARGEST, name, orders, gaps))
    for name, bounds in BOUNDS.items():
        errors = []
        for v in ORDERS:
            z = v * np.geomspace(0.1, 30, 21)
            exact = exact_ratio(v, z)
            errors.append((abs(np.mean(bounds(v, z), axis=0) - exact) / exact).max())
        curves.append(curve(_MIDDLE, name, ORDERS, errors))
    setting.say(f"{len(ORDERS)} orders")
    return Analysis(curves=curves, figure=_figure(curves), **_texts(curves))


def _gap(bounds: tuple[Array, Array]) -> Array:
    lower, upper = bounds
    return upper - lower


def _figure(curves: Sequence[Curve]) -> Figure:
    styles = dict(zip(BOUNDS, ("-", DASHED), strict=True))
    shades = dict(zip(ORDERS, SHADES, strict=True))
    key = [key_line(f"v = {v}", shade) for v, shade in shades.items()]
    with sheet_of(__file__, key=key) as (figure, (left, right)):
        for name, style in styles.items():
            for v, shade in shades.items():
                line(left, find(curves, _GAP, f"{name}, v = {v}"), shade, linestyle=style)
            gap, error = find(curves, _LARGEST, name), find(curves, _MIDDLE, name)
            line(right, gap, INK, linestyle=style, label=f"largest gap, {name}")
            look: dict[str, Any] = {"linestyle": style, "linewidth": 0.8, "marker": "o"}
            line(
                right, error, "#d55e00", label=f"error of the middle, {name}", markersize=3, **look
            )
        for axes in (left, right):
            axes.axhline(_LIMIT, color=INK, linewidth=0.7, linestyle=DOTTED)
        left.set(xlabel="z", ylabel="gap", xlim=(0.1, 1e5), ylim=(1e-12, 0.3))
        logarithmic(left, "xy")
        right.set(xlabel="order v", xlim=(1, 1000), ylim=(1e-10, 1))
        logarithmic(right, "xy")
        label(right, 1.1, 1.6 * _LIMIT, "e⁻¹⁰", INK)
        legend(right, loc="lower left")
    return figure


def _texts(curves: Sequence[Curve]) -> dict[str, Any]:
    largest = find(curves, _LARGEST, "Eq. 13")
    low = next(float(v) for v, gap in zip(largest.x, largest.y, strict=True) if gap < _LIMIT)
    gaps = {v: max(find(curves, _GAP, f"Eq. 13, v = {v}").y) for v in ORDERS}
    numbers = {
        "orders": ORDERS,
        "count": len(ORDERS),
        "last": ORDERS[-1],
        "gaps": listed("{1:.2g} (v = {0})", gaps),
        "limit": _LIMIT,
        "low": low,
        "weights": 2 * low,
        "times": gaps[ORDERS[0]] / _LIMIT,
    }
    rules = {
        "between": all(_holds(bounds, v) for bounds in BOUNDS.values() for v in ORDERS),
        "tight": all(a > b for a, b in pairwise(gaps.values())),
        "largest": gaps[ORDERS[0]] < 2 * _LIMIT,
    }
    return fill(__file__, numbers, rules)


def _holds(bounds: Callable[[float, Array], tuple[Array, Array]], v: float) -> bool:
    """Whether the ratio lies between its bounds."""
    z = v * np.geomspace(0.1, 30, 9)
    (lower, upper), exact = bounds(v, z), exact_ratio(v, z)
    return bool(((lower < exact) & (exact < upper)).all())
