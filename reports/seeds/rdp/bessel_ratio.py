"""The ratio of Bessel functions by bounds, scipy, the suite and mpmath (RDP Fig. 8).

The paper takes the middle of algebraic bounds; dividing `scipy.special.ive` of two orders fails
where both underflow; the suite's `bessel_ratio` sharpens the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
import torch
from scipy import special

from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill, listed
from reports.seeds.rdp.bessel_bounds import theorem_2, theorem_3
from reports.seeds.rdp.comparison import SCIPY, SUITE, Comparison, arguments
from reports.seeds.rdp.exact_bessel import Array, exact_ratio
from vcl_radial.posteriors.bessel import bessel_ratio
from vcl_radial.reporting.figures.drawing import Curve

THEOREM_2, THEOREM_3 = "Thm. 2, middle", "Thm. 3, middle"
_LOW = np.linspace(0.5, 100, 40)


def by_scipy(v: float, z: npt.ArrayLike) -> Array:
    """The quotient of `scipy.special.ive`; NaN or infinite where `ive` underflows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(special.ive(v, z) / special.ive(v - 1, z))


def by_suite(v: float, z: npt.ArrayLike) -> Array:
    """The suite's `bessel_ratio`."""
    return bessel_ratio(v, torch.as_tensor(np.asarray(z, float))).numpy()


RATIO = Comparison(
    exact_ratio,
    {
        SCIPY: by_scipy,
        SUITE: by_suite,
        THEOREM_2: lambda v, z: np.mean(theorem_2(v, z), axis=0),
        THEOREM_3: lambda v, z: np.mean(theorem_3(v, z), axis=0),
    },
    {SCIPY: "#e69f00", SUITE: "#0072b2", THEOREM_2: "#cc79a7", THEOREM_3: "#009e73"},
    dashed=THEOREM_2,
    orders=(1, 10, 100, 500, 1000),
    value="ratio",
    least=1e-17,
    relative=True,
)


def analyse(setting: Setting) -> Analysis:
    """Draw the ratio over z, and each function's error against mpmath."""
    curves, drawn = RATIO.curves(setting), (1, 100, 500, 1000)
    figure = RATIO.draw(
        curves, "Iᵥ(z) / Iᵥ₋₁(z)", drawn, "Fig. 8", 3, lambda axes: axes.set_ylim(0, 1.05)
    )
    return Analysis(curves=curves, figure=figure, **_texts(curves, arguments(setting)))


def _texts(curves: Sequence[Curve], z: Array) -> dict[str, Any]:
    gaps = {
        v: max(float((upper - lower).max()) for lower, upper in (theorem_2(v, z), theorem_3(v, z)))
        for v in RATIO.orders
    }
    large = (500, 1000)
    finite_from = RATIO.finite_from(curves, SCIPY)
    finite = {v: len(RATIO.errors(curves, SCIPY)[v].x) for v in large}
    low, suite = by_scipy(100, _LOW), RATIO.worst(curves, SUITE)
    usable = np.isfinite(low)
    exact = exact_ratio(100, _LOW[usable])
    lost, error = int((~usable).sum()), float((abs(low[usable] - exact) / exact).max())
    numbers = {
        "orders": RATIO.orders,
        "arguments": len(z),
        "gaps": listed("{1:.2g} (v = {0})", gaps),
        "theorem_3": listed("{1:.1g} (v = {0})", RATIO.worst(curves, THEOREM_3)),
        "finite_from": listed("{1:,.0f} (v = {0})", ((v, finite_from[v]) for v in large)),
        "lost": listed("{1} (v = {0})", ((v, len(z) - count) for v, count in finite.items())),
        "scipy": scipy.__version__,
        "low": (_LOW[0], _LOW[-1]),
        "low_arguments": len(low),
        "low_lost": lost,
        "low_error": error,
        "suite": listed("{1:.1g} (v = {0})", suite),
    }
    rules = {
        "gap": max(gaps.values()) < 1e-3,
        "scipy": not finite[500],
        "unstable": lost > 0 or error > 1e-6,
        "suite": max(suite.values()) < 2e-8,
    }
    return fill(__file__, numbers, rules)
