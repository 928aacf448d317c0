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

from reports.figures import curve
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from reports.papers.texts import Rule, listed
from reports.seeds.rdp.exact_bessel import Array, exact_ratio
from vcl_radial.reporting.figures.drawing import Curve, find

ORDERS = (1, 5, 25, 50, 100, 500, 1000)

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
    return analysis(__file__, curves, *_numbers_and_rules(curves))


def _gap(bounds: tuple[Array, Array]) -> Array:
    lower, upper = bounds
    return upper - lower


def _numbers_and_rules(curves: Sequence[Curve]) -> tuple[dict[str, Any], dict[str, Rule]]:
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
    rules: dict[str, Rule] = {
        "between": all(_holds(bounds, v) for bounds in BOUNDS.values() for v in ORDERS),
        "tight": all(a > b for a, b in pairwise(gaps.values())),
        "largest": gaps[ORDERS[0]] < 2 * _LIMIT,
    }
    return numbers, rules


def _holds(bounds: Callable[[float, Array], tuple[Array, Array]], v: float) -> bool:
    """Whether the ratio lies between its bounds."""
    z = v * np.geomspace(0.1, 30, 9)
    (lower, upper), exact = bounds(v, z), exact_ratio(v, z)
    return bool(((lower < exact) & (exact < upper)).all())
