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
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy import stats

from reports.figures import curve, sheet_of
from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill
from vcl_radial.posteriors.von_mises_fisher import VonMisesFisher
from vcl_radial.reporting.figures.drawing import Curve, dots, find, key_line, line
from vcl_radial.reporting.figures.style import colour_map

CONCENTRATIONS = (2, 5, 10, 20, 50, 100)

_ANGLE = "density of the angle"
_SHARE = "share of the directions within an angle"


def density(angle: npt.ArrayLike, concentration: float) -> npt.NDArray[np.float64]:
    """Density of the suite's `VonMisesFisher` about (1, 0), at angles in radians."""
    t = torch.as_tensor(np.asarray(angle), dtype=torch.float64)
    points = torch.stack([t.cos(), t.sin()], dim=-1)
    return np.asarray(_about_east(concentration).log_prob(points).exp())


def drawn_angles(concentration: float, draws: int) -> npt.NDArray[np.float64]:
    """Angles in radians, from -pi to pi, of draws of the suite's `VonMisesFisher`."""
    x = _about_east(concentration).sample(draws)
    return np.asarray(torch.atan2(x[:, 1], x[:, 0]))


def _about_east(concentration: float) -> VonMisesFisher:
    mean = torch.tensor([1.0, 0.0], dtype=torch.float64)
    return VonMisesFisher(mean, torch.tensor(float(concentration), dtype=torch.float64))


def analyse(setting: Setting) -> Analysis:
    """Draw the density over the angle, and the share of directions within an angle of the mean."""
    draws = 20_000 if setting.quick else 500_000
    angle, within = np.linspace(-np.pi, np.pi, 721), np.linspace(0, np.pi, 361)
    limits = np.radians([5, 15, 30, 60, 90])
    curves = []
    for kappa in CONCENTRATIONS:
        name, drawn = f"κ = {kappa}", np.abs(drawn_angles(kappa, draws))
        curves += [
            curve(_ANGLE, name, angle, density(angle, kappa)),
            curve(_SHARE, name, within, share_within(within, kappa)),
            curve(_SHARE, f"{name}, draws", limits, [(drawn <= limit).mean() for limit in limits]),
        ]
    return Analysis(curves=curves, figure=_figure(curves), **_texts(curves, draws))


def share_within(angle: npt.ArrayLike, concentration: float) -> npt.NDArray[np.float64]:
    """Share of the directions within an angle of the mean, by scipy's von Mises distribution."""
    return np.asarray(1 - 2 * stats.vonmises(concentration).sf(angle))


def _figure(curves: Sequence[Curve]) -> Figure:
    shades = colour_map()(np.linspace(0.1, 1, len(CONCENTRATIONS)))
    colours = {f"κ = {k}": to_hex(c) for k, c in zip(CONCENTRATIONS, shades, strict=True)}
    key = [key_line(name, colour) for name, colour in colours.items()]
    with sheet_of(__file__, key=key) as (figure, (left, right)):
        for name, colour in colours.items():
            line(left, find(curves, _ANGLE, name), colour)
            line(right, find(curves, _SHARE, name), colour)
            dots(right, find(curves, _SHARE, f"{name}, draws"), colour, markersize=3)
        left.set(xlabel="angle (degrees)", ylabel="density", ylim=(0, None), xlim=(-np.pi, np.pi))
        right.set(xlabel="angle (degrees)", ylabel="share", ylim=(0, 1.03), xlim=(0, np.pi))
        for axes, degrees in ((left, (-180, -90, 0, 90, 180)), (right, (0, 45, 90, 135, 180))):
            axes.set_xticks(np.radians(degrees), map(str, degrees))
    return figure


def _texts(curves: Sequence[Curve], draws: int) -> dict[str, Any]:
    half = [float(np.degrees(stats.vonmises(kappa).ppf(0.75))) for kappa in CONCENTRATIONS]
    distances = []
    for kappa in CONCENTRATIONS:
        drawn = find(curves, _SHARE, f"κ = {kappa}, draws")
        distances.append(abs(share_within(np.asarray(drawn.x, float), kappa) - drawn.y).max())
    numbers = {
        "draws": draws,
        "kappas": CONCENTRATIONS,
        "half": half,
        "height": max(find(curves, _ANGLE, f"κ = {CONCENTRATIONS[0]}").y),
        "largest": CONCENTRATIONS[-1],
        "worst": max(distances),
    }
    rules = {
        "low": half[0] > 20,
        "concentrated": all(a > b for a, b in pairwise(half)) and max(distances) < 0.02,
    }
    return fill(__file__, numbers, rules)
