"""The penalty of a radial prior: the cone, its tails and its noise (not in the papers).

For a group of D weights with the prior's scales, whose means have moved by m in units of one
weight's noise (||mu - mu_p|| = m sigma for a radial group, m tau sqrt(D) for a Gaussian one):

    Gaussian      KL = D m^2 / 2
    radial        KL = m^2 / 2 + (D - 1) [G(m) + terms that vanish as 1/D]
    Eq. 44             m^2 / 2,   which leaves the Jacobian term out

with G(m) = E log sqrt(m^2 + r^2) - E log |r|: a cone at 0, G'(0) = sqrt(pi/2), and log m far away.
All are computed by the suite's own `kl`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill
from vcl_radial.posteriors import Gaussian, Posterior, Radial, RadialEq44
from vcl_radial.posteriors.log_radius import mills_ratio
from vcl_radial.reporting.figures.drawing import (
    DASHED,
    EQ44,
    GAUSSIAN,
    RADIAL,
    Curve,
    dots,
    find,
    key_line,
    label,
    legend,
    line,
    logarithmic,
    sheet,
)

LAYER = 785 * 200
"""Weights and biases of the first layer of the continual-learning network."""
QUICK_LAYER = 10_000

_SHIFT, _FAR, _SCALE = "penalty on a shift", "penalty on a shift, far", "penalty on the scale"
_VALUE, _GRADIENT = "deviation of one draw's KL", "relative variance of one draw's gradient"
FAMILIES: dict[str, type[Posterior]] = {
    "radial, corrected": Radial,
    "radial, Eq. 44": RadialEq44,
    "Gaussian": Gaussian,
}
_LOOKS = {
    "radial, corrected": (RADIAL, "-"),
    "radial, Eq. 44": (EQ44, DASHED),
    "Gaussian": (GAUSSIAN, "-"),
}
_CORRECTED, _EQ44, _GAUSSIAN = FAMILIES
_CLOSED = "closed form"


def shift_penalty(family: type[Posterior], D: int, m: float) -> float:
    """KL in nats per weight of a group to its prior, with means moved by m of a weight's noise.

    Posterior and prior have one scale; the direction of the shift is (1, ..., 1) / sqrt(D), and
    with one scale no direction differs from another.
    """
    scale = torch.full((D,), family.scale_for_weight_noise(1.0, D), dtype=torch.float64)
    prior = family(torch.zeros(D, dtype=torch.float64), scale)
    posterior = family(torch.full((D,), m, dtype=torch.float64), scale)
    return float(posterior.kl(prior)) / D


def scale_penalty(family: type[Posterior], D: int, s: float) -> float:
    """KL in nats per weight of a group to its prior, with all scales multiplied by s."""
    zero, ones = torch.zeros(D, dtype=torch.float64), torch.ones(D, dtype=torch.float64)
    return float(family(zero, s * ones).kl(family(zero, ones))) / D


def estimate(D: int, m: float, draws: int) -> tuple[Tensor, Tensor]:
    """KL estimates from single draws, and their gradients' squared errors; [draws] each.

    The errors are ||g - E g||^2 / ||E g||^2, where g is the gradient in the means of one draw's
    estimate and E g that of the closed form.
    """
    scale = torch.full((D,), math.sqrt(D), dtype=torch.float64)
    prior = Radial(torch.zeros(D, dtype=torch.float64), scale)
    mean = torch.full((D,), m, dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(Radial(mean, scale).kl(prior), mean)
    values, errors = [], []
    # Draws as a batch of groups: one gradient for each.
    block = max(1, int(1e6 / D))
    for start in range(0, draws, block):
        n = min(block, draws - start)
        means = mean.detach().expand(n, D).clone().requires_grad_()
        kl = Radial(means, scale.expand(n, D)).kl_monte_carlo(prior, 1)
        (gradient,) = torch.autograd.grad(kl.sum(), means)
        values.append(kl.detach())
        errors.append((gradient - exact).square().sum(-1) / exact.square().sum())
    return torch.cat(values), torch.cat(errors)


def gradient_noise(D: int, m: float) -> float:
    """E ||g - E g||^2 / ||E g||^2 of one draw's gradient in the means, to leading order in 1/D.

    With z_p = m n + u r, whose parts are orthogonal, g is z_p + (D - 1) z_p / ||z_p||^2; the
    second part decides, and

        E ||g||^2 = (D - 1)^2 E 1/(m^2 + r^2) = (D - 1)^2 G'(m) / m,   ||E g|| = (D - 1) G'(m) + m

    It diverges as m -> 0.
    """
    slope = float(mills_ratio(torch.tensor(m)))
    total = (D - 1) ** 2 * slope / m + 2 * (D - 1) + m**2 + 1
    return total / ((D - 1) * slope + m) ** 2 - 1


def analyse(setting: Setting) -> Analysis:
    """Draw the penalties over shift and scale, and the noise of their Monte-Carlo estimate."""
    D = QUICK_LAYER if setting.quick else LAYER
    near = np.linspace(0, 4, 81 if setting.quick else 201).tolist()
    far = np.geomspace(0.01, 3000, 61 if setting.quick else 121).tolist()
    scales = np.geomspace(0.25, 4, 61).tolist()
    curves = []
    for name, family in FAMILIES.items():
        curves += [
            Curve(_SHIFT, name, near, [shift_penalty(family, D, m) for m in near]),
            Curve(_FAR, name, far, [shift_penalty(family, D, m) for m in far]),
            Curve(_SCALE, name, scales, [scale_penalty(family, D, s) for s in scales]),
        ]
    setting.say(f"penalties of a group of {D:,} weights: done")
    shifts = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
    sampled, draws = (300, 300) if setting.quick else (1000, 3000)
    curves += _monte_carlo(D, sampled, shifts, draws, setting)
    return Analysis(
        curves=curves, figure=_figure(curves, D, sampled), **_texts(curves, D, sampled, draws)
    )


def _monte_carlo(
    D: int, sampled: int, shifts: Sequence[float], draws: int, setting: Setting
) -> list[Curve]:
    deviations, noises, low, high = [], [], [], []
    for m in shifts:
        values, errors = estimate(sampled, m, draws)
        deviations.append(float(values.std()) / sampled)
        noises.append(float(errors.mean()))
        error = 2 * float(errors.std()) / math.sqrt(draws)
        low.append(max(noises[-1] - error, noises[-1] / 10))
        high.append(noises[-1] + error)
    setting.say(f"{draws:,} single-draw estimates at {len(shifts)} shifts: done")
    grid = np.geomspace(shifts[0], shifts[-1], 100)
    closed = [gradient_noise(sampled, float(m)) for m in grid]
    return [
        Curve(_VALUE, "draws", list(shifts), deviations),
        Curve(_GRADIENT, "draws", list(shifts), noises, low, high),
        Curve(_GRADIENT, _CLOSED, [float(m) for m in grid], closed),
    ]


def _figure(curves: Sequence[Curve], D: int, sampled: int) -> Figure:
    with sheet(
        "What a radial prior holds a posterior to",
        [f"one group, D = {D:,}", "m: shift of the means in units of one weight's noise"],
        [
            "A small shift: cone against parabola",
            "A large shift: logarithmic tails",
            "All scales times s",
            "Noise of a one-draw gradient",
        ],
        per_line=2,
        width=2.85,
        height=1.9,
        key=[key_line(n, colour, linestyle=dash) for n, (colour, dash) in _LOOKS.items()],
    ) as (figure, panels):
        near, far, scale, noise = panels
        for axes, panel in ((near, _SHIFT), (far, _FAR), (scale, _SCALE)):
            for name, (colour, dash) in _LOOKS.items():
                line(axes, find(curves, panel, name), colour, linestyle=dash)
        _draw_band(near, curves)
        near.set(xlim=(0, 4), ylim=(-0.1, 3), xlabel="m", ylabel="KL, nats per weight")
        logarithmic(far, "xy")
        far.set(xlim=(0.01, 3000), ylim=(1e-5, 1e4), xlabel="m", ylabel="KL, nats per weight")
        logarithmic(scale, "x")
        scale.set_xticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
        scale.set(xlabel="s", ylabel="KL, nats per weight", ylim=(-1.5, 2))
        whole = D * find(curves, _SCALE, _CORRECTED).y[-1]
        label(scale, 4, -0.04, f"{whole:.1f} nats in all", RADIAL, ha="right", va="top")
        line(noise, find(curves, _GRADIENT, _CLOSED), RADIAL)
        dots(noise, find(curves, _GRADIENT, "draws"), RADIAL, label=f"draws, D = {sampled:,}")
        logarithmic(noise, "xy")
        noise.set(xlabel="m", ylabel="squared error / squared length")
        legend(noise, loc="upper right")
    return figure


def _draw_band(axes: Axes, curves: Sequence[Curve]) -> None:
    """One standard deviation of a single draw's estimate about the corrected penalty."""
    deviation, penalty = find(curves, _VALUE, "draws"), find(curves, _SHIFT, _CORRECTED)
    at = np.asarray(penalty.x, float)
    width = np.interp(at, np.asarray(deviation.x, float), deviation.y)
    middle = np.asarray(penalty.y)
    axes.fill_between(at, middle - width, middle + width, color=RADIAL, alpha=0.12, linewidth=0)


def _crossing(curves: Sequence[Curve]) -> float:
    """The shift beyond which the radial penalty is below the Gaussian's."""
    radial, gaussian = (find(curves, _FAR, name) for name in (_CORRECTED, _GAUSSIAN))
    return next(
        float(m)
        for m, a, b in zip(radial.x, radial.y, gaussian.y, strict=True)
        if float(m) > 0.1 and a < b
    )


def _texts(curves: Sequence[Curve], D: int, sampled: int, draws: int) -> dict[str, Any]:
    eq44, corrected, gaussian = (
        find(curves, _SCALE, name) for name in (_EQ44, _CORRECTED, _GAUSSIAN)
    )
    near, far = find(curves, _SHIFT, _CORRECTED), find(curves, _FAR, _CORRECTED)
    lowest, best = (min(zip(curve.y, curve.x, strict=True)) for curve in (eq44, corrected))
    share = shift_penalty(RadialEq44, D, 1.0) / shift_penalty(Radial, D, 1.0)
    deviation = find(curves, _VALUE, "draws")
    numbers = {
        "D": D,
        "root": math.sqrt(D),
        "sampled": sampled,
        "draws": draws,
        "share": share,
        "lowest": D * lowest[0],
        "lowest_at": float(lowest[1]),
        "best": D * best[0],
        "best_at": float(best[1]),
        "deviation": deviation.y[0],
        "deviation_at": float(deviation.x[0]),
        "deviation_of_all": deviation.y[0] * D,
        "slope": near.y[1] / float(near.x[1]),
        "slope_at_0": math.sqrt(math.pi / 2),
        "crossing": _crossing(curves),
        "furthest": float(far.x[-1]),
        "far": far.y[-1],
        "far_gaussian": find(curves, _FAR, _GAUSSIAN).y[-1],
        "scaled": D * corrected.y[-1],
        "scaled_gaussian": D * gaussian.y[-1],
    }
    rules = {"jacobian": share > 0.9 and lowest[0] >= 0, "noise": deviation.y[0] < 0.1}
    return fill(__file__, numbers, rules)
