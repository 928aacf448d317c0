"""Accuracy, NLL, KL and gradient noise while sigma grows in training (AISTATS Fig. 7)."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.analysis.two_posteriors import (
    FAST_RADIAL,
    INITIAL_RHO,
    MFVI,
    NAMES,
    Histories,
    train_both,
)
from reports.analysis.two_posteriors import RADIAL as RADIAL_RUN
from reports.papers.analysis import Analysis, Setting
from vcl_radial.report.figures.drawing import (
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
from vcl_radial.runs.sections import Claim

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
    return Analysis(
        title="Training with a Gaussian and with a radial posterior",
        source="AISTATS paper, Fig. 7; arXiv version, Fig. 1; the blog",
        shown=[
            "The same network, start, learning rates and order of images, trained on the negative "
            "evidence lower bound with a unit Gaussian prior and no tweaks. Accuracy and NLL are "
            "those of single draws of the weights on the training images; the gradient's deviation "
            "is that of one mean's NLL gradient for one batch and one draw, root mean square over "
            "all means. KL and cross-entropy are exact.",
            "The dashed run is not in the papers: a radial posterior whose rho learns 100 times as "
            "fast, so that sigma gets where the objective pulls it. A Gaussian's sigma has 1 to go "
            "to, a radial one sqrt(D), and Adam moves rho by about its learning rate in a step.",
        ],
        settings=settings_of(histories),
        curves=curves,
        figure=_figure(curves, histories),
        claims=_claims(curves, histories),
        notes=_notes(curves, histories),
    )


def settings_of(histories: Histories) -> list[tuple[str, str]]:
    """What was trained, in words, for the pages of both figures."""
    recipe = histories.recipe
    return [
        ("data", histories.images.description),
        (
            "network",
            f"VGG of {histories.channels} channels, {histories.weights:,} weights; its first "
            "convolution has a step of 2",
        ),
        ("start", f"He's means, rho = {INITIAL_RHO:g} (sigma = 0.0025)"),
        (
            "training",
            f"Adam, learning rate {recipe.learning_rate:g}, {recipe.epochs} epochs of batches of "
            f"{recipe.batch_size}, draws in a step: {recipe.samples}",
        ),
        (
            "in the paper",
            "down-sampled photographs of EyePACS, a VGG with 5/8 of the channels, learning rate "
            "1e-4, 500 epochs",
        ),
    ]


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


def _claims(curves: Sequence[Curve], histories: Histories) -> list[Claim]:
    accuracy, radial_accuracy = (find(curves, _ACCURACY, name) for name in NAMES[:2])
    nll, cross, kl, noise = (find(curves, panel, MFVI) for panel in (_NLL, _CROSS, _KL, _NOISE))
    radial_noise = find(curves, _NOISE, RADIAL_RUN)
    best = max(range(len(accuracy.y)), key=accuracy.y.__getitem__)
    drop = accuracy.y[best] - accuracy.y[-1]
    turn = min(range(len(nll.y)), key=nll.y.__getitem__)
    third = len(noise.y) // 3
    peak = max(range(len(noise.y)), key=noise.y.__getitem__)
    return [
        histories.claim(
            "Fig. 7, top: the training accuracy of MFVI rises, then falls, while the radial goes on"
            " improving",
            f"MFVI: {accuracy.y[best]:.1f} % after {accuracy.x[best]:.0f} epochs, "
            f"{accuracy.y[-1]:.1f} % at the end; radial: {radial_accuracy.y[-1]:.1f} % at the end",
            drop > 2 and radial_accuracy.y[-1] > accuracy.y[-1] + 2,
        ),
        histories.claim(
            "Fig. 7, middle: the NLL of MFVI rises in training",
            f"from {nll.y[turn]:.3g} after {nll.x[turn]:.0f} epochs to {nll.y[-1]:.3g} nats per "
            "image",
            nll.y[-1] > 2 * nll.y[turn],
        ),
        histories.claim(
            "Fig. 7, middle: the prior cross-entropy of MFVI falls faster, so the loss falls on",
            f"the cross-entropy goes from {cross.y[0]:.1f} to {cross.y[-1]:.1f}, the KL from "
            f"{kl.y[0]:.0f} to {kl.y[-1]:.1f}, NLL + KL from {nll.y[0] + kl.y[0]:.0f} to "
            f"{nll.y[-1] + kl.y[-1]:.1f} nats per image",
            cross.y[-1] < cross.y[0] - (nll.y[-1] - nll.y[turn]),
            "with Eq. 1's names it is the entropy that pays: the cross-entropy, sum of "
            "(sigma^2 + mu^2) / 2, rises with sigma, and -sum of log sigma falls faster. Their "
            "difference, the KL, falls as the paper says of the cross-entropy",
        ),
        histories.claim(
            "Fig. 7, bottom: the deviation of the NLL's gradient grows sharply for MFVI and stays "
            "low for the radial",
            f"deviation of MFVI: {noise.y[third]:.2g} after {noise.x[third]:.0f} epochs, at most "
            f"{noise.y[peak]:.2g}, after {noise.x[peak]:.0f} epochs, and {noise.y[-1]:.2g} at the "
            f"end; radial: at most {max(radial_noise.y):.2g}, {radial_noise.y[-1]:.2g} at the end",
            noise.y[peak] > 2 * noise.y[third] and max(radial_noise.y) < noise.y[peak] / 3,
        ),
    ]


def _notes(curves: Sequence[Curve], histories: Histories) -> list[str]:
    ends = {(panel, name): find(curves, panel, name).y[-1] for panel in _PANELS for name in NAMES}
    loss = {name: ends[_NLL, name] + ends[_KL, name] for name in NAMES}
    sigma = {name: histories.stages[name][-1].sigma for name in NAMES}
    return [
        f"The radial run stays accurate because its sigma ({sigma[RADIAL_RUN]:.2g} at the end) has "
        "hardly set out for sqrt(D), where the objective pulls it: the noise of one weight is "
        f"still tiny. Its objective is the worse one: NLL + KL is {loss[RADIAL_RUN]:.0f} nats per "
        f"image at the end, MFVI's {loss[MFVI]:.1f}. The run whose rho may go faster (dashed) "
        f"reaches sigma = {sigma[FAST_RADIAL]:.0f} and {loss[FAST_RADIAL]:.0f} nats per image, and "
        f"pays for it as MFVI does: {ends[_ACCURACY, FAST_RADIAL]:.1f} % accuracy, gradient "
        f"deviation {ends[_NOISE, FAST_RADIAL]:.2g}.",
        "So the contrast of Fig. 7 is one of how far sigma gets in the epochs that there are: a "
        "posterior whose step holds it back keeps its accuracy, and the same posterior without "
        "that brake does not.",
    ]
