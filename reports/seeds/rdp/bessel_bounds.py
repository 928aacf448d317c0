"""Tightness of the bounds on the ratio of Bessel functions (RDP Fig. 5).

B_2(v, z) < I_v(z) / I_(v-1)(z) < B_0(v, z)       (Oh et al. 2020, Eq. 13: Theorem 1 and 3)
z / (v - 1/2 + sqrt((v + 1/2)^2 + z^2)) < the same < z / (v - 1 + sqrt((v + 1)^2 + z^2))  (28)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

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
    sheet,
)
from vcl_radial.reporting.figures.style import INK

ORDERS = (1, 5, 25, 50, 100, 500, 1000)
SHADES = ("#d55e00", "#e69f00", "#cc79a7", "#009e73", "#56b4e9", "#0072b2", "#003a5c")

_GAP = "upper minus lower bound"
_LARGEST = "largest gap over the order"
_MIDDLE = "largest relative error of the middle"
_EQ_13, _EQ_28 = "Eq. 13", "Eq. 28"
_EXPONENT = -10
"""The paper's largest difference is approximately exp(-10)."""


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


def analyse(setting: Setting) -> Analysis:
    """Draw the gap over z for several orders, and its largest value over the order."""
    per_order = 31 if setting.quick else 121
    curves = []
    for v in ORDERS:
        z = v * np.geomspace(1e-2, 1e3, 401)
        for name, bounds in ((_EQ_13, theorem_3), (_EQ_28, theorem_2)):
            lower, upper = bounds(v, z)
            curves.append(Curve(_GAP, f"{name}, v = {v}", z.tolist(), (upper - lower).tolist()))
    curves += _over_orders(per_order)
    setting.say(f"{len(ORDERS)} orders")
    return Analysis(curves=curves, figure=_figure(curves), **_texts(curves))


def _over_orders(points: int) -> list[Curve]:
    gaps, errors = [], []
    v = np.geomspace(1, 1000, points)
    for name, bounds in ((_EQ_13, theorem_3), (_EQ_28, theorem_2)):
        largest = []
        for order in v:
            lower, upper = bounds(order, order * np.geomspace(1e-3, 1e3, 601))
            largest.append(float((upper - lower).max()))
        gaps.append(Curve(_LARGEST, name, v.tolist(), largest))
    for name, bounds in ((_EQ_13, theorem_3), (_EQ_28, theorem_2)):
        worst = []
        for order in ORDERS:
            z = order * np.geomspace(0.1, 30, 21)
            lower, upper = bounds(order, z)
            exact = exact_ratio(order, z)
            worst.append(float((abs((lower + upper) / 2 - exact) / exact).max()))
        errors.append(Curve(_MIDDLE, name, list(ORDERS), worst))
    return [*gaps, *errors]


def _figure(curves: Sequence[Curve]) -> Figure:
    looks = dict(zip(ORDERS, SHADES, strict=True))
    with sheet(
        "Bounds on Iᵥ(z) / Iᵥ₋₁(z)",
        ["solid: Eq. 13", "dashed: Eq. 28"],
        ["Upper − lower bound (Fig. 5)", "Over the order"],
        per_line=2,
        width=2.85,
        height=1.9,
        key=[key_line(f"v = {v}", shade) for v, shade in looks.items()],
    ) as (figure, (left, right)):
        for v, shade in looks.items():
            line(left, find(curves, _GAP, f"{_EQ_13}, v = {v}"), shade)
            line(left, find(curves, _GAP, f"{_EQ_28}, v = {v}"), shade, linestyle=DASHED)
        for name, style in ((_EQ_13, "-"), (_EQ_28, DASHED)):
            gap, error = find(curves, _LARGEST, name), find(curves, _MIDDLE, name)
            line(right, gap, INK, linestyle=style, label=f"largest gap, {name}")
            right.plot(
                error.x,
                error.y,
                color="#d55e00",
                linestyle=style,
                linewidth=0.8,
                marker="o",
                markersize=3,
                label=f"error of the middle, {name}",
            )
        for axes in (left, right):
            axes.axhline(math.exp(_EXPONENT), color=INK, linewidth=0.7, linestyle=DOTTED)
        left.set(xlabel="z", ylabel="gap", xlim=(0.1, 1e5), ylim=(1e-12, 0.3))
        logarithmic(left, "xy")
        right.set(xlabel="order v", xlim=(1, 1000), ylim=(1e-10, 1))
        logarithmic(right, "xy")
        label(right, 1.1, 1.6 * math.exp(_EXPONENT), "e⁻¹⁰", INK)
        legend(right, loc="lower left")
    return figure


def _texts(curves: Sequence[Curve]) -> dict[str, Any]:
    largest, limit = find(curves, _LARGEST, _EQ_13), math.exp(_EXPONENT)
    low = next(float(v) for v, gap in zip(largest.x, largest.y, strict=True) if gap < limit)
    gaps = {v: max(find(curves, _GAP, f"{_EQ_13}, v = {v}").y) for v in ORDERS}
    holds = all(
        (below < exact).all() and (exact < above).all()
        for bounds in (theorem_2, theorem_3)
        for v in ORDERS
        for z in [v * np.geomspace(0.1, 30, 9)]
        for (below, above), exact in [(bounds(v, z), exact_ratio(v, z))]
    )
    numbers = {
        "orders": ORDERS,
        "count": len(ORDERS),
        "last": ORDERS[-1],
        "gaps": listed("{1:.2g} (v = {0})", gaps),
        "limit": limit,
        "low": low,
        "weights": 2 * low,
        "times": gaps[ORDERS[0]] / limit,
    }
    rules = {
        "between": bool(holds),
        "tight": all(a > b for a, b in pairwise(gaps.values())),
        "largest": gaps[ORDERS[0]] < 2 * limit,
    }
    return fill(__file__, numbers, rules)
