"""Accuracy, NLL, KL and gradient noise while sigma grows in training (AISTATS Fig. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.analysis.two_posteriors import (
    FAST_RADIAL,
    MFVI,
    NAMES,
    Histories,
    train_both,
)
from reports.analysis.two_posteriors import RADIAL as RADIAL_RUN
from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill
from vcl_radial.reporting.figures.drawing import (
    DASHED,
    DOTTED,
    GAUSSIAN,
    OTHER,
    RADIAL,
    Curve,
    find,
    key_line,
    line,
    logarithmic,
    sheet,
)

_ACCURACY, _NLL, _KL = "training accuracy", "NLL", "KL to the prior"
_CROSS, _NOISE = "cross-entropy to the prior", "gradient deviation"
_PANELS = {
    _ACCURACY: "accuracy",
    _NLL: "nll",
    _KL: "kl",
    _CROSS: "cross_entropy",
    _NOISE: "gradient_sd",
}
_LOOKS = {MFVI: (GAUSSIAN, "-"), RADIAL_RUN: (RADIAL, "-"), FAST_RADIAL: (OTHER, DASHED)}


def analyse(setting: Setting) -> Analysis:
    """Train both posteriors and follow the terms of the objective."""
    histories = train_both(setting)
    curves = [
        histories.curve(panel, name, field) for panel, field in _PANELS.items() for name in NAMES
    ]
    texts = _texts(curves, histories)
    return Analysis(curves=curves, figure=_figure(curves, histories), **texts)


def _figure(curves: Sequence[Curve], histories: Histories) -> Figure:
    with sheet(
        "Training with a Gaussian and with a radial posterior",
        [histories.images.description, f"{histories.weights:,} weights"],
        [
            "Accuracy on training images",
            "NLL on training images",
            "Prior term: KL, dotted cross-entropy",
            "Deviation of the NLL's gradient",
        ],
        per_line=2,
        width=2.85,
        height=1.7,
        key=[key_line(n, colour, linestyle=dash) for n, (colour, dash) in _LOOKS.items()],
    ) as (figure, panels):
        accuracy, nll, kl, noise = panels
        _draw(accuracy, curves, _ACCURACY)
        accuracy.set_ylabel("%")
        lowest = min(min(find(curves, _ACCURACY, name).y[1:]) for name in NAMES)
        accuracy.set_ylim(max(0.0, lowest - 10), 103)
        _draw(nll, curves, _NLL)
        logarithmic(nll, "y")
        nll.set_ylabel("nats per image")
        _draw(kl, curves, _KL)
        for name in NAMES[:2]:
            line(kl, find(curves, _CROSS, name), _LOOKS[name][0], linestyle=DOTTED)
        logarithmic(kl, "y")
        kl.set_ylabel("nats per image")
        _draw(noise, curves, _NOISE)
        logarithmic(noise, "y")
        noise.set_ylabel("per mean")
        for axes in panels:
            axes.set_xlim(0, histories.recipe.epochs)
            axes.set_xlabel("epoch")
    return figure


def _draw(axes: Axes, curves: Sequence[Curve], panel: str) -> None:
    for name in NAMES:
        colour, dash = _LOOKS[name]
        line(axes, find(curves, panel, name), colour, linestyle=dash)


def _texts(curves: Sequence[Curve], histories: Histories) -> dict[str, Any]:
    accuracy, radial_accuracy = (find(curves, _ACCURACY, name) for name in NAMES[:2])
    nll, cross, kl, noise = (find(curves, panel, MFVI) for panel in (_NLL, _CROSS, _KL, _NOISE))
    radial_noise = find(curves, _NOISE, RADIAL_RUN)
    best = max(range(len(accuracy.y)), key=accuracy.y.__getitem__)
    turn = min(range(len(nll.y)), key=nll.y.__getitem__)
    third = len(noise.y) // 3
    peak = max(range(len(noise.y)), key=noise.y.__getitem__)
    ends = {(panel, name): find(curves, panel, name).y[-1] for panel in _PANELS for name in NAMES}
    loss = {name: ends[_NLL, name] + ends[_KL, name] for name in NAMES}
    sigma = {name: histories.stages[name][-1].sigma for name in NAMES}
    numbers = {
        "accuracy": (accuracy.y[best], accuracy.y[-1]),
        "accuracy_at": accuracy.x[best],
        "radial_accuracy": radial_accuracy.y[-1],
        "nll": (nll.y[turn], nll.y[-1]),
        "nll_at": nll.x[turn],
        "cross": (cross.y[0], cross.y[-1]),
        "kl": (kl.y[0], kl.y[-1]),
        "loss": (nll.y[0] + kl.y[0], nll.y[-1] + kl.y[-1]),
        "noise": (noise.y[third], noise.y[peak], noise.y[-1]),
        "noise_at": (noise.x[third], noise.x[peak]),
        "radial_noise": (max(radial_noise.y), radial_noise.y[-1]),
        "radial_sigma": sigma[RADIAL_RUN],
        "radial_loss": loss[RADIAL_RUN],
        "mfvi_loss": loss[MFVI],
        "fast_sigma": sigma[FAST_RADIAL],
        "fast_loss": loss[FAST_RADIAL],
        "fast_accuracy": ends[_ACCURACY, FAST_RADIAL],
        "fast_noise": ends[_NOISE, FAST_RADIAL],
    }
    alike = {
        "accuracy": accuracy.y[best] - accuracy.y[-1] > 2
        and radial_accuracy.y[-1] > accuracy.y[-1] + 2,
        "nll": nll.y[-1] > 2 * nll.y[turn],
        "cross": cross.y[-1] < cross.y[0] - (nll.y[-1] - nll.y[turn]),
        "noise": noise.y[peak] > 2 * noise.y[third] and max(radial_noise.y) < noise.y[peak] / 3,
    }
    texts = fill(__file__, numbers, {key: histories.rule(holds) for key, holds in alike.items()})
    return texts | {"settings": histories.settings}
