"""Von Mises-Fisher directions over the concentration (RDP Fig. 1).

At D = 2 the density of the angle t from the mean direction is

    p(t) = exp(kappa cos t) / (2 pi I_0(kappa))        (Eq. 4 with D = 2; von Mises)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from matplotlib.figure import Figure
from scipy import stats

from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill
from vcl_radial.posteriors.von_mises_fisher import VonMisesFisher
from vcl_radial.reporting.figures.drawing import Curve, find, key_line, line, sheet
from vcl_radial.reporting.figures.style import colour_map

CONCENTRATIONS = (2, 5, 10, 20, 50, 100)

_ANGLE = "density of the angle"
_SPREAD = "share of the directions within an angle"
_DRAWS = "draws"


def density(angle: npt.ArrayLike, concentration: float) -> npt.NDArray[np.float64]:
    """Density of the suite's own `VonMisesFisher` about (1, 0), at angles in radians."""
    t = torch.as_tensor(np.asarray(angle), dtype=torch.float64)
    points = torch.stack([t.cos(), t.sin()], dim=-1)
    return np.asarray(_about_east(concentration).log_prob(points).exp())


def drawn_angles(concentration: float, draws: int) -> npt.NDArray[np.float64]:
    """Angles in radians, from -pi to pi, of draws of the suite's own `VonMisesFisher`."""
    x = _about_east(concentration).sample(draws)
    return np.asarray(torch.atan2(x[:, 1], x[:, 0]))


def _about_east(concentration: float) -> VonMisesFisher:
    mean = torch.tensor([1.0, 0.0], dtype=torch.float64)
    return VonMisesFisher(mean, torch.tensor(float(concentration), dtype=torch.float64))


def analyse(setting: Setting) -> Analysis:
    """Draw the density over the angle, and how much lies within an angle of the mean."""
    draws = 20_000 if setting.quick else 500_000
    curves = []
    for kappa in CONCENTRATIONS:
        angle = np.linspace(-np.pi, np.pi, 721)
        curves.append(Curve(_ANGLE, _name(kappa), angle.tolist(), density(angle, kappa).tolist()))
        within = np.linspace(0, np.pi, 361)
        inside = 1 - 2 * stats.vonmises(kappa).sf(within)
        curves.append(Curve(_SPREAD, _name(kappa), within.tolist(), inside.tolist()))
        drawn = np.abs(drawn_angles(kappa, draws))
        places = np.radians([5, 15, 30, 60, 90])
        shares = [float((drawn <= place).mean()) for place in places]
        curves.append(Curve(_SPREAD, f"{_name(kappa)}, {_DRAWS}", places.tolist(), shares))
    return Analysis(curves=curves, figure=_figure(curves), **_texts(curves, draws))


def _name(kappa: float) -> str:
    return f"κ = {kappa}"


def _figure(curves: Sequence[Curve]) -> Figure:
    shades = colour_map()(np.linspace(0.1, 1, len(CONCENTRATIONS)))
    looks = {
        kappa: str(shade) for kappa, shade in zip(CONCENTRATIONS, map(_hex, shades), strict=True)
    }
    with sheet(
        "Directions about a mean direction",
        ["von Mises-Fisher on the circle", "dots: draws of the suite's posterior"],
        ["Density over the angle (Fig. 1)", "Share within an angle of the mean"],
        per_line=2,
        width=2.85,
        height=1.9,
        key=[key_line(_name(kappa), shade) for kappa, shade in looks.items()],
    ) as (figure, (left, right)):
        for kappa, shade in looks.items():
            line(left, find(curves, _ANGLE, _name(kappa)), shade)
            line(right, find(curves, _SPREAD, _name(kappa)), shade)
            drawn = find(curves, _SPREAD, f"{_name(kappa)}, {_DRAWS}")
            right.plot(drawn.x, drawn.y, color=shade, marker="o", markersize=3, linestyle="none")
        degrees = np.array([-180, -90, 0, 90, 180])
        left.set(xlabel="angle (degrees)", ylabel="density", ylim=(0, None), xlim=(-np.pi, np.pi))
        left.set_xticks(np.radians(degrees), [f"{d}" for d in degrees])
        right.set(xlabel="angle (degrees)", ylabel="share", ylim=(0, 1.03), xlim=(0, np.pi))
        right.set_xticks(np.radians([0, 45, 90, 135, 180]), ["0", "45", "90", "135", "180"])
    return figure


def _hex(colour: npt.NDArray[np.float64]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour[:3])


def _texts(curves: Sequence[Curve], draws: int) -> dict[str, Any]:
    half = [float(np.degrees(stats.vonmises(kappa).ppf(0.75))) for kappa in CONCENTRATIONS]
    heights = [max(find(curves, _ANGLE, _name(kappa)).y) for kappa in CONCENTRATIONS]
    worst = max(
        abs(share - (1 - 2 * float(stats.vonmises(kappa).sf(place))))
        for kappa in CONCENTRATIONS
        for drawn in [find(curves, _SPREAD, f"{_name(kappa)}, {_DRAWS}")]
        for place, share in zip(np.asarray(drawn.x, float), drawn.y, strict=True)
    )
    numbers = {
        "draws": draws,
        "kappas": CONCENTRATIONS,
        "half": half,
        "height": heights[0],
        "largest": CONCENTRATIONS[-1],
        "worst": worst,
    }
    rules = {
        "low": half[0] > 20,
        "concentrated": all(a > b for a, b in pairwise(half)) and worst < 0.02,
    }
    return fill(__file__, numbers, rules)
