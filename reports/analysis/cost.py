"""Parameters, epoch time, cost of a prediction and support (the blog's table).

The blog's table, measured. All methods share one network; its layers are the suite's own for the
posteriors, plain ones elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from time import process_time
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
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
from reports.papers.texts import Rule, Undecided, fill, listed
from vcl_radial.metrics.verdicts import Verdict
from vcl_radial.reporting.figures.drawing import Curve, find, key_line, sheet
from vcl_radial.reporting.figures.style import FAINT, INK, SMALL_SIZE

_SUPPORT_DRAWS = 100
_PARAMETERS, _EPOCH = "numbers stored per weight", "epoch over radial's"
_PREDICTION, _SUPPORT = "forward passes per prediction", "values of one weight"
_EPOCH_REASON = (
    "a compiled pass of the posteriors against plain dropout and plain members, on a CPU, where "
    "theirs ran on a GPU"
)


def analyse(setting: Setting) -> Analysis:
    """Measure every method on both networks, interleaved."""
    batches, repeats = (1, 3) if setting.quick else (6, 7)
    x, y = torch.randn(batches * BATCH, 1, 28, 28), torch.randint(10, (batches * BATCH,))
    curves: list[Curve] = []
    for name, architecture in ARCHITECTURES.items():
        members = {method: make(method, architecture, x, y) for method in METHODS}
        curves += _measure(name, members, architecture, x, repeats)
        setting.say(f"{name}: done, {members[RADIAL].weights:,} weights")
    return Analysis(curves=curves, figure=_figure(curves), **_texts(curves, batches, repeats))


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
    stored = {m: [member.stored] for m, member in members.items()}
    support = {
        m: [float(values_of_a_weight(m, member, _SUPPORT_DRAWS))] for m, member in members.items()
    }
    return [
        _bars(_PARAMETERS, name, stored),
        _bars(_EPOCH, name, {RADIAL: [1.0]} | ratios(epochs, RADIAL)),
        _bars(_PREDICTION, name, passes),
        _bars(_SUPPORT, name, support),
    ]


def _bars(panel: str, name: str, values: Mapping[str, list[float]]) -> Curve:
    middle, low, high, _ = zip(*(spread(values[method]) for method in METHODS), strict=True)
    return Curve(panel, name, METHODS, middle, low, high)


_COLOURS = {"MLP": "#0072b2", "convolutions": "#56b4e9"}


def _figure(curves: Sequence[Curve]) -> Figure:
    panels = {
        _PARAMETERS: "Numbers stored per weight",
        _EPOCH: "Epoch time over radial's",
        _PREDICTION: "Forward passes a prediction",
        _SUPPORT: f"Values of a weight, {_SUPPORT_DRAWS:,} draws",
    }
    with sheet(
        "What Bayesian methods cost",
        [f"K = {K} draws, members or samples", "lines: lowest and highest round"],
        list(panels.values()),
        per_line=2,
        width=2.55,
        height=1.75,
        key=[key_line(n, c, linewidth=6) for n, c in _COLOURS.items()],
    ) as (figure, axes):
        for panel_axes, panel in zip(axes, panels, strict=True):
            for k, (name, colour) in enumerate(_COLOURS.items()):
                _draw_bars(panel_axes, find(curves, panel, name), colour, 0.38 * (k - 0.5))
            panel_axes.set_ylim(len(METHODS) - 0.5, -0.5)
            panel_axes.set_yticks(range(len(METHODS)), METHODS)
            panel_axes.tick_params(axis="y", length=0)
            panel_axes.grid(visible=False, axis="y")
            panel_axes.grid(color=FAINT, linewidth=0.4, axis="x")
            panel_axes.set_xlim(0, 1.15 * panel_axes.get_xlim()[1])
    return figure


def _draw_bars(axes: Axes, curve: Curve, colour: str, offset: float) -> None:
    assert curve.low is not None
    assert curve.high is not None
    places = [i + offset for i in range(len(METHODS))]
    axes.barh(places, curve.y, 0.36, color=colour)
    for y, value, low, high in zip(places, curve.y, curve.low, curve.high, strict=True):
        axes.plot([low, high], [y, y], color=INK, linewidth=0.8)
        words = f"{value:,.0f}" if value >= 20 or value == int(value) else f"{value:.2g}"
        axes.annotate(
            words,
            (high, y),
            (3, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL_SIZE - 1,
        )


def _texts(curves: Sequence[Curve], batches: int, repeats: int) -> dict[str, Any]:
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
    rules: dict[str, Rule] = {
        "parameters": all(abs(s - expected[m]) < 0.01 for m in METHODS for s in stored[m]),
        "mfvi": all(0.8 < value < 1.25 for value in mfvi),
        "dropout": Undecided(
            Verdict.NOT_COMPARABLE, _EPOCH_REASON, all(value < 0.5 for value in dropout)
        ),
        "ensemble": Undecided(
            Verdict.NOT_COMPARABLE,
            _EPOCH_REASON,
            all(abs(value - K / 3) < 0.35 * K / 3 for value in ensemble),
        ),
        "passes": Undecided(
            Verdict.NOT_COMPARABLE,
            "they count passes, here it is processor time on a CPU",
            all(abs(value - K) < 0.5 * K for value in passes),
        ),
        "support": all((values[m] == _SUPPORT_DRAWS) == (m in (RADIAL, MFVI)) for m in METHODS),
    }
    return fill(__file__, numbers, rules)
