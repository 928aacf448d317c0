"""Accuracy, NLL, KL and gradient noise while sigma grows in training (AISTATS Fig. 7)."""

from __future__ import annotations

import numpy as np

from reports.analysis.two_posteriors import FAST_RADIAL, MFVI, NAMES, RADIAL, train_both
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from vcl_radial.reporting.figures.drawing import find

_ACCURACY, _NLL, _KL = "training accuracy", "NLL", "KL to the prior"
_CROSS, _NOISE = "cross-entropy to the prior", "gradient deviation"
_PANELS = {
    _ACCURACY: "accuracy",
    _NLL: "nll",
    _KL: "kl",
    _CROSS: "cross_entropy",
    _NOISE: "gradient_sd",
}


def analyse(setting: Setting) -> Analysis:
    """Train both posteriors and follow the terms of the objective."""
    histories = train_both(setting)
    curves = [
        histories.curve(panel, name, field) for panel, field in _PANELS.items() for name in NAMES
    ]
    epochs = find(curves, _NLL, MFVI).x
    accuracy, nll, kl, cross, noise = (find(curves, panel, MFVI).y for panel in _PANELS)
    radial_noise = find(curves, _NOISE, RADIAL).y
    best, turn, peak = int(np.argmax(accuracy)), int(np.argmin(nll)), int(np.argmax(noise))
    third = len(noise) // 3
    last = {name: stages[-1] for name, stages in histories.stages.items()}
    mfvi, radial, fast = (last[name] for name in (MFVI, RADIAL, FAST_RADIAL))
    numbers = {
        "accuracy": (accuracy[best], accuracy[-1]),
        "accuracy_at": epochs[best],
        "lowest_shown": max(0.0, min(min(find(curves, _ACCURACY, n).y[1:]) for n in NAMES) - 10),
        "nll": (nll[turn], nll[-1]),
        "nll_at": epochs[turn],
        "cross": (cross[0], cross[-1]),
        "kl": (kl[0], kl[-1]),
        "loss": (nll[0] + kl[0], nll[-1] + kl[-1]),
        "noise": (noise[third], noise[peak], noise[-1]),
        "noise_at": (epochs[third], epochs[peak]),
        "radial_noise": (max(radial_noise), radial_noise[-1]),
        "radial": radial,
        "radial_loss": radial.nll + radial.kl,
        "mfvi_loss": mfvi.nll + mfvi.kl,
        "fast": fast,
        "fast_loss": fast.nll + fast.kl,
        "histories": histories,
    }
    alike = {
        "accuracy": accuracy[best] - accuracy[-1] > 2 and radial.accuracy > accuracy[-1] + 2,
        "nll": nll[-1] > 2 * nll[turn],
        "cross": cross[-1] < cross[0] - (nll[-1] - nll[turn]),
        "noise": noise[peak] > 2 * noise[third] and max(radial_noise) < noise[peak] / 3,
    }
    return analysis(__file__, curves, numbers, histories.rules(alike))
