"""The ratio of Bessel functions by bounds, scipy, the suite and mpmath (RDP Fig. 8).

The paper takes the middle of algebraic bounds; dividing `scipy.special.ive` of two orders fails
where both underflow; the suite's `bessel_ratio` sharpens the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from matplotlib.figure import Figure
from scipy import special

from reports.papers.analysis import Analysis, Setting
from reports.seeds.rdp.bessel_bounds import theorem_2, theorem_3
from reports.seeds.rdp.exact_bessel import Array, exact_ratio
from vcl_radial.metrics.verdicts import of_statement
from vcl_radial.posteriors.bessel import bessel_ratio
from vcl_radial.report.figures.drawing import DASHED, Curve, find, key_line, logarithmic, sheet
from vcl_radial.report.figures.style import INK
from vcl_radial.runs.sections import Claim

ORDERS = (1, 10, 100, 500, 1000)
SCIPY, SUITE, THEOREM_2, THEOREM_3 = "scipy, ive", "the suite", "Thm. 2, middle", "Thm. 3, middle"
LOOKS = {SCIPY: "#e69f00", SUITE: "#0072b2", THEOREM_2: "#cc79a7", THEOREM_3: "#009e73"}
MPMATH = "mpmath"
_LOW = np.linspace(0.5, 100, 40)


def by_scipy(v: float, z: npt.ArrayLike) -> Array:
    """The quotient of `scipy.special.ive`, NaN or infinite where that underflows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(special.ive(v, z) / special.ive(v - 1, z))


def by_suite(v: float, z: npt.ArrayLike) -> Array:
    """The suite's `bessel_ratio`."""
    return bessel_ratio(v, torch.as_tensor(np.asarray(z, float))).numpy()


WAYS: dict[str, Callable[[float, Array], Array]] = {
    SCIPY: by_scipy,
    SUITE: by_suite,
    THEOREM_2: lambda v, z: np.mean(theorem_2(v, z), axis=0),
    THEOREM_3: lambda v, z: np.mean(theorem_3(v, z), axis=0),
}
"""The ratio at order v and arguments z."""


def analyse(setting: Setting) -> Analysis:
    """Draw the ratio over z, and each way's error against mpmath."""
    z = np.geomspace(0.1, 1e4, 40 if setting.quick else 120)
    curves = []
    for v in ORDERS:
        exact = exact_ratio(v, z)
        curves.append(Curve(_ratio(v), MPMATH, z.tolist(), exact.tolist()))
        for name, way in WAYS.items():
            found = way(v, z)
            usable = np.isfinite(found)
            error = abs(found - exact)[usable] / exact[usable]
            curves.append(Curve(_ratio(v), name, z[usable].tolist(), found[usable].tolist()))
            curves.append(Curve(_error(v), name, z[usable].tolist(), error.tolist()))
        setting.say(f"order {v}")
    return Analysis(
        title="The ratio of Bessel functions by several ways",
        source="Oh et al. 2020, Fig. 8, Supplement 2 and 3",
        shown=[
            "Above: I_v(z) / I_(v-1)(z) over z by mpmath at 40 digits (black) and by the others "
            "where they are finite. Below: their relative errors; a line that breaks off has no "
            "finite number there. Errors below 1e-17 are drawn at that.",
        ],
        settings=[
            ("orders", ", ".join(map(str, ORDERS))),
            ("arguments", f"{len(z)} in 0.1 to 1e4"),
        ],
        curves=curves,
        figure=_figure(curves),
        claims=_claims(curves, z),
    )


def _ratio(v: float) -> str:
    return f"ratio, v = {v}"


def _error(v: float) -> str:
    return f"relative error, v = {v}"


def _figure(curves: Sequence[Curve]) -> Figure:
    shown = (1, 100, 500, 1000)
    with sheet(
        "Iᵥ(z) / Iᵥ₋₁(z)",
        ["above: the ratio", "below: relative error against mpmath"],
        [f"v = {v} (Fig. 8)" for v in shown] + [f"error, v = {v}" for v in shown],
        per_line=len(shown),
        width=1.5,
        height=1.4,
        key=[
            key_line(MPMATH, INK, linewidth=2.4, alpha=0.35),
            *(key_line(name, LOOKS[name], linestyle=_style(name)) for name in LOOKS),
        ],
    ) as (figure, axes):
        for place, v in enumerate(shown):
            above, below = axes[place], axes[place + len(shown)]
            exact = find(curves, _ratio(v), MPMATH)
            above.plot(exact.x, exact.y, color=INK, linewidth=2.4, alpha=0.35)
            for name, shade in LOOKS.items():
                own, error = find(curves, _ratio(v), name), find(curves, _error(v), name)
                look: dict[str, Any] = {"color": shade, "linewidth": 1.1, "linestyle": _style(name)}
                above.plot(own.x, own.y, **look)
                below.plot(error.x, np.maximum(error.y, 1e-17), **look)
            above.set(ylim=(0, 1.05), xlim=(0.1, 1e4))
            logarithmic(above, "x", ticks=4)
            below.set(xlabel="z", ylim=(1e-17, 3), xlim=(0.1, 1e4))
            logarithmic(below, "xy", ticks=4)
        axes[0].set_ylabel("ratio")
        axes[len(shown)].set_ylabel("relative error")
    return figure


def _style(name: str) -> Any:
    return DASHED if name == THEOREM_2 else "-"


def _claims(curves: Sequence[Curve], z: Array) -> list[Claim]:
    worst = {
        (name, v): max(find(curves, _error(v), name).y, default=float("nan"))
        for name in WAYS
        for v in ORDERS
    }
    gap = {
        v: max(float((above - below).max()) for below, above in (theorem_2(v, z), theorem_3(v, z)))
        for v in ORDERS
    }
    lost = {v: len(z) - len(find(curves, _ratio(v), SCIPY).x) for v in ORDERS}
    finite_from = {v: min(find(curves, _ratio(v), SCIPY).x, default=np.inf) for v in ORDERS}
    low = by_scipy(100, _LOW)
    return [
        Claim(
            "Fig. 8: with Theorems 2 and 3 the gap between the bounds is negligible, uniformly in "
            "z and v",
            "largest gap: " + ", ".join(f"{gap[v]:.2g} (v = {v})" for v in ORDERS),
            of_statement(max(gap.values()) < 1e-3),
            "at v = 1 it is not; from v = 100 it is below 1e-3, and the middle of Theorem 3 is off "
            + ", ".join(f"{worst[THEOREM_3, v]:.1g} (v = {v})" for v in ORDERS),
        ),
        Claim(
            "Fig. 8: for v >= 500 scipy.special.ive cannot give a finite number",
            "finite from z = "
            + ", ".join(f"{float(finite_from[v]):,.0f} (v = {v})" for v in (500, 1000))
            + f" on, in scipy {_scipy_version()}; for smaller z both functions underflow: "
            + ", ".join(f"{lost[v]} (v = {v})" for v in (500, 1000))
            + f" of the {len(z)} arguments are lost",
            of_statement(bool(np.isinf(finite_from[500]))),
            "for small z it does fail as they say, for large z today's scipy gives the ratio",
        ),
        Claim(
            "Fig. 8: at v = 100 scipy.special.ive is unstable for z < 100",
            f"{int((~np.isfinite(low)).sum())} of {len(low)} arguments from {_LOW[0]:g} to "
            f"{_LOW[-1]:g} give no finite number; the others are off by {_scipy_error(low):.1g} at "
            "most",
            of_statement(not np.isfinite(low).all() or _scipy_error(low) > 1e-6),
            f"scipy {_scipy_version()} is as exact there as float64 allows",
        ),
        Claim(
            "Beside the paper: the suite's ratio is exact to 1e-8 at every order",
            "largest relative error: "
            + ", ".join(f"{worst[SUITE, v]:.1g} (v = {v})" for v in ORDERS),
            of_statement(max(worst[SUITE, v] for v in ORDERS) < 2e-8),
        ),
    ]


def _scipy_version() -> str:
    from scipy import __version__

    return str(__version__)


def _scipy_error(found: Array) -> float:
    usable = np.flatnonzero(np.isfinite(found))
    exact = exact_ratio(100, _LOW[usable])
    return float((abs(found[usable] - exact) / exact).max())
