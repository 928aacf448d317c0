"""The ratio of Bessel functions by bounds, scipy, the suite and mpmath (RDP Fig. 8).

The paper takes the middle of algebraic bounds; dividing `scipy.special.ive` of two orders fails
where both underflow; the suite's `bessel_ratio` sharpens the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
import torch
from matplotlib.figure import Figure
from scipy import special

from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill, listed
from reports.seeds.rdp.bessel_bounds import theorem_2, theorem_3
from reports.seeds.rdp.exact_bessel import Array, exact_ratio
from reports.seeds.rdp.ways import Ways
from vcl_radial.posteriors.bessel import bessel_ratio
from vcl_radial.reporting.figures.drawing import Curve, logarithmic

ORDERS = (1, 10, 100, 500, 1000)
SCIPY, SUITE, THEOREM_2, THEOREM_3 = "scipy, ive", "the suite", "Thm. 2, middle", "Thm. 3, middle"
_LOW = np.linspace(0.5, 100, 40)


def by_scipy(v: float, z: npt.ArrayLike) -> Array:
    """The quotient of `scipy.special.ive`, NaN or infinite where that underflows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(special.ive(v, z) / special.ive(v - 1, z))


def by_suite(v: float, z: npt.ArrayLike) -> Array:
    """The suite's `bessel_ratio`."""
    return bessel_ratio(v, torch.as_tensor(np.asarray(z, float))).numpy()


WAYS = Ways(
    {
        SCIPY: by_scipy,
        SUITE: by_suite,
        THEOREM_2: lambda v, z: np.mean(theorem_2(v, z), axis=0),
        THEOREM_3: lambda v, z: np.mean(theorem_3(v, z), axis=0),
    },
    {SCIPY: "#e69f00", SUITE: "#0072b2", THEOREM_2: "#cc79a7", THEOREM_3: "#009e73"},
    dashed=THEOREM_2,
    value="ratio",
    error="relative error",
    least=1e-17,
    relative=True,
)
"""The ratio at order v and arguments z."""


def analyse(setting: Setting) -> Analysis:
    """Draw the ratio over z, and each way's error against mpmath."""
    z = np.geomspace(0.1, 1e4, 40 if setting.quick else 120)
    curves: list[Curve] = []
    for v in ORDERS:
        curves += WAYS.curves(v, z, exact_ratio(v, z))
        setting.say(f"order {v}")
    return Analysis(curves=curves, figure=_figure(curves), **_texts(curves, z))


def _figure(curves: Sequence[Curve]) -> Figure:
    shown = (1, 100, 500, 1000)
    notes = ["above: the ratio", "below: relative error against mpmath"]
    with WAYS.sheet("Iᵥ(z) / Iᵥ₋₁(z)", notes, shown, "Fig. 8") as (figure, axes):
        for above, below, v in zip(axes, axes[len(shown) :], shown, strict=False):
            WAYS.draw(above, below, curves, v, most=3)
            above.set(ylim=(0, 1.05))
            logarithmic(above, "x", ticks=4)
        axes[0].set_ylabel("ratio")
        axes[len(shown)].set_ylabel("relative error")
    return figure


def _texts(curves: Sequence[Curve], z: Array) -> dict[str, Any]:
    worst = WAYS.worst(curves, ORDERS)
    gap = {
        v: max(float((above - below).max()) for below, above in (theorem_2(v, z), theorem_3(v, z)))
        for v in ORDERS
    }
    finite = {v: WAYS.finite(curves, SCIPY, v) for v in (500, 1000)}
    low = by_scipy(100, _LOW)
    from_z = {v: min(x, default=math.inf) for v, x in finite.items()}
    lost, error = int((~np.isfinite(low)).sum()), _scipy_error(low)
    numbers = {
        "orders": ORDERS,
        "arguments": len(z),
        "gaps": listed("{1:.2g} (v = {0})", gap),
        "theorem_3": listed("{1:.1g} (v = {0})", worst[THEOREM_3]),
        "finite_from": listed("{1:,.0f} (v = {0})", from_z),
        "lost": listed("{1} (v = {0})", ((v, len(z) - len(x)) for v, x in finite.items())),
        "scipy": scipy.__version__,
        "low": (_LOW[0], _LOW[-1]),
        "low_arguments": len(low),
        "low_lost": lost,
        "low_error": error,
        "suite": listed("{1:.1g} (v = {0})", worst[SUITE]),
    }
    rules = {
        "gap": max(gap.values()) < 1e-3,
        "scipy": not finite[500],
        "unstable": lost > 0 or error > 1e-6,
        "suite": max(worst[SUITE].values()) < 2e-8,
    }
    return fill(__file__, numbers, rules)


def _scipy_error(computed: Array) -> float:
    usable = np.flatnonzero(np.isfinite(computed))
    exact = exact_ratio(100, _LOW[usable])
    return float((abs(computed[usable] - exact) / exact).max())
