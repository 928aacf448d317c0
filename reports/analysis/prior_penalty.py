"""The penalty of a radial prior: the cone, its tails and its noise (not in the papers).

For a group of D weights with the prior's scales, whose means have moved by m in units of one
weight's noise (||mu - mu_p|| = m sigma for a radial group, m tau sqrt(D) for a Gaussian one):

    Gaussian      KL = D m^2 / 2
    radial        KL = m^2 / 2 + (D - 1) [G(m) + terms that vanish as 1/D]
    Eq. 44             m^2 / 2,   which leaves the Jacobian term out

with G(m) = E log sqrt(m^2 + r^2) - E log |r|: a cone at 0, G'(0) = sqrt(pi/2), and log m far away.
The suite's `kl` computes all of them.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from reports.figures import curve_with_errors
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from vcl_radial.posteriors import Gaussian, Posterior, Radial, RadialEq44
from vcl_radial.posteriors.log_radius import mills_ratio
from vcl_radial.reporting.figures.drawing import Curve, find

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
_CORRECTED, _EQ44, _GAUSSIAN = FAMILIES
_SHIFTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Shifts at which the Monte-Carlo estimate is drawn."""


def shift_penalty(family: type[Posterior], D: int, m: float) -> float:
    """KL in nats per weight of a group to its prior, with means moved by m of a weight's noise.

    Posterior and prior have one scale, so that the direction of the shift does not matter; it is
    (1, ..., 1) / sqrt(D).
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

    The errors are ||g - E g||^2 / ||E g||^2, where g is the gradient of one draw's estimate in the
    means, and E g the gradient of the closed form.
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

    With z_p = m n + u r, whose parts are orthogonal, g is z_p + (D - 1) z_p / ||z_p||^2; the second
    part dominates, and

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
    sampled, draws = (300, 300) if setting.quick else (1000, 3000)
    estimates = _monte_carlo(sampled, draws)
    setting.say(f"{draws:,} single-draw estimates at {len(_SHIFTS)} shifts: done")
    curves = [_with_deviation(curves[0], estimates[0]), *curves[1:], *estimates]

    eq44, corrected, gaussian = (
        find(curves, _SCALE, name) for name in (_EQ44, _CORRECTED, _GAUSSIAN)
    )
    near_radial, far_radial = find(curves, _SHIFT, _CORRECTED), find(curves, _FAR, _CORRECTED)
    far_gaussian = find(curves, _FAR, _GAUSSIAN)
    lowest, best = (min(zip(curve.y, curve.x, strict=True)) for curve in (eq44, corrected))
    share = shift_penalty(RadialEq44, D, 1.0) / shift_penalty(Radial, D, 1.0)
    deviation = find(curves, _VALUE, "draws").y[0]
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
        "deviation": deviation,
        "deviation_at": _SHIFTS[0],
        "deviation_of_all": deviation * D,
        "slope": near_radial.y[1] / float(near_radial.x[1]),
        "slope_at_0": math.sqrt(math.pi / 2),
        # The shift beyond which the radial penalty is below the Gaussian's.
        "crossing": next(
            m
            for m, a, b in zip(far, far_radial.y, far_gaussian.y, strict=True)
            if m > 0.1 and a < b
        ),
        "furthest": far[-1],
        "far": far_radial.y[-1],
        "far_gaussian": far_gaussian.y[-1],
        "scaled": D * corrected.y[-1],
        "scaled_gaussian": D * gaussian.y[-1],
    }
    rules = {"jacobian": share > 0.9 and lowest[0] >= 0, "noise": deviation < 0.1}
    return analysis(__file__, curves, numbers, rules)


def _monte_carlo(sampled: int, draws: int) -> list[Curve]:
    """Deviation of one draw's KL, and variance of its gradient, by draws and in closed form."""
    deviations, noises = [], []
    for m in _SHIFTS:
        values, squares = estimate(sampled, m, draws)
        deviations.append(float(values.std()) / sampled)
        noises.append((float(squares.mean()), float(squares.std()) / math.sqrt(draws)))
    grid = np.geomspace(_SHIFTS[0], _SHIFTS[-1], 100).tolist()
    return [
        Curve(_VALUE, "draws", _SHIFTS, deviations),
        curve_with_errors(_GRADIENT, "draws", _SHIFTS, noises),
        Curve(_GRADIENT, "closed form", grid, [gradient_noise(sampled, m) for m in grid]),
    ]


def _with_deviation(penalty: Curve, deviation: Curve) -> Curve:
    """A penalty with a band of one standard deviation of a single draw's estimate."""
    at, known = np.asarray(penalty.x, dtype=float), np.asarray(deviation.x, dtype=float)
    width = np.interp(at, known, deviation.y)
    low, high = np.asarray(penalty.y) - width, np.asarray(penalty.y) + width
    return replace(penalty, low=low.tolist(), high=high.tolist())
