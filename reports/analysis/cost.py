"""Parameters, epoch time, cost of a prediction and support (the blog's table).

This measures the blog's table. All methods share one network; its layers are the suite's layers for
the posteriors, and plain layers for the other methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from time import process_time

import torch
from torch import Tensor

from benchmarks.speed.timing import interleaved, ratios, spread
from reports.analysis.cost_methods import (
    ARCHITECTURES,
    BATCH,
    ENSEMBLE,
    MC_DROPOUT,
    METHODS,
    MFVI,
    RADIAL,
    Architecture,
    K,
    Member,
    make,
    predict,
    values_of_a_weight,
)
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from reports.papers.texts import listed
from vcl_radial.reporting.figures.drawing import Curve, find

_SUPPORT_DRAWS = 100
_PARAMETERS, _EPOCH = "numbers stored per weight", "epoch over radial's"
_PREDICTION, _SUPPORT = "forward passes per prediction", "values of one weight"


def analyse(setting: Setting) -> Analysis:
    """Measure every method on both networks, interleaved."""
    batches, repeats = (1, 3) if setting.quick else (6, 7)
    x, y = torch.randn(batches * BATCH, 1, 28, 28), torch.randint(10, (batches * BATCH,))
    curves: list[Curve] = []
    for name, architecture in ARCHITECTURES.items():
        members = {method: make(method, architecture, x, y) for method in METHODS}
        curves += _measure(name, members, architecture, x, repeats)
        setting.say(f"{name}: done, {members[RADIAL].weights:,} weights")

    def of(panel: str, method: str) -> list[float]:
        return [find(curves, panel, name).at(method) for name in ARCHITECTURES]

    stored = {method: of(_PARAMETERS, method) for method in METHODS}
    expected = dict(zip(METHODS, (2, 2, 1, K, K), strict=True))
    passes = [value for method in METHODS for value in of(_PREDICTION, method)]
    values = {method: of(_SUPPORT, method)[0] for method in METHODS}
    mfvi, dropout, ensemble = (of(_EPOCH, method) for method in (MFVI, MC_DROPOUT, ENSEMBLE))
    numbers = {
        "K": K,
        "K3": K / 3,
        "draws": _SUPPORT_DRAWS,
        "batches": batches,
        "batch": BATCH,
        "repeats": repeats,
        "stored": listed("{1:g} ({0})", ((m, stored[m][0]) for m in METHODS)),
        "mfvi": mfvi,
        "dropout": dropout,
        "ensemble": ensemble,
        "passes": (min(passes), max(passes), median(passes)),
        "values": listed("{1:,.0f} ({0})", values),
    }
    rules = {
        "parameters": all(abs(s - expected[m]) < 0.01 for m in METHODS for s in stored[m]),
        "mfvi": all(0.8 < value < 1.25 for value in mfvi),
        "dropout": all(value < 0.5 for value in dropout),
        "ensemble": all(abs(value - K / 3) < 0.35 * K / 3 for value in ensemble),
        "passes": all(abs(value - K) < 0.5 * K for value in passes),
        "support": all((values[m] == _SUPPORT_DRAWS) == (m in (RADIAL, MFVI)) for m in METHODS),
    }
    return analysis(__file__, curves, numbers, rules)


def _measure(
    name: str, members: Mapping[str, Member], architecture: Architecture, x: Tensor, repeats: int
) -> list[Curve]:
    epochs = interleaved({m: member.train for m, member in members.items()}, repeats, process_time)
    work: dict[str, Callable[[], object]] = {
        m: partial(predict, member, x) for m, member in members.items()
    }
    work["plain"] = partial(architecture(None, 0.0), x)
    with torch.no_grad():
        passes = ratios(interleaved(work, repeats, process_time), "plain")
    panels = {
        _PARAMETERS: {m: [member.stored] for m, member in members.items()},
        _EPOCH: {RADIAL: [1.0]} | ratios(epochs, RADIAL),
        _PREDICTION: passes,
        _SUPPORT: {
            m: [float(values_of_a_weight(m, member, _SUPPORT_DRAWS))]
            for m, member in members.items()
        },
    }
    curves = []
    for panel, values in panels.items():
        middle, low, high, _ = zip(*(spread(values[method]) for method in METHODS), strict=True)
        curves.append(Curve(panel, name, METHODS, middle, low, high))
    return curves
