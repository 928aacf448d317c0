"""An MLP pruned by the signal-to-noise ratio of its weights (BAdam Fig. 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from matplotlib.figure import Figure

from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.papers.analysis import Analysis, Setting
from vcl_radial.papers.pruning.mlp import MLPSpec
from vcl_radial.papers.pruning.mlp_pruning import SHARES
from vcl_radial.papers.pruning.track import Result, description_of, minutes, results_of
from vcl_radial.report.figures.drawing import (
    DASHED,
    Curve,
    find,
    key_line,
    line,
    near_100,
    sheet,
)
from vcl_radial.runs.sections import Claim, Column, Table

MLPResult: TypeAlias = Result[MLPSpec]

TAKES_SETTINGS = True
RATIO, MAGNITUDE = "signal-to-noise", "magnitude"
TITLES = {
    "badam": "BAdam",
    "vadam": "VADAM",
    "bbb": "BBB",
    "mc-dropout": "MC dropout",
    "radial": "radial (ours)",
}
_COLOURS = dict(zip(TITLES, ("#d55e00", "#009e73", "#e69f00", "#cc79a7", "#0072b2"), strict=True))
_TABLE_SHARES = (0, 50, 80, 90, 95, 98)
"""Shares in the table."""

NOTEBOOK: Mapping[str, Mapping[float, float]] = {
    RATIO: {0: 98.18, 50: 98.22, 80: 97.51, 90: 93.98, 95: 72.19, 98: 16.53},
    MAGNITUDE: {0: 98.18, 50: 98.07, 80: 94.46, 90: 55.14, 95: 23.15, 98: 16.04},
}
"""BAdam in the authors' published notebook (github.com/skezle/BADAM, badam_weight_pruning.ipynb):
one run with sigmoid units, 200 epochs, beta_2 = 0.999, dropout 0.2, no L2 penalty. The paper has
Fig. 2 and no numbers."""


def analyse(setting: Setting) -> Analysis:
    """Train and prune what is not finished, and hold BAdam against the others."""
    results = results_of("pruning-mlp", list(TITLES), setting)
    curves = make_curves(results)
    seeds = sorted({result.run.seed for result in results})
    return Analysis(
        title="An MLP pruned by signal-to-noise ratio",
        source="Kessler et al. 2020 (BAdam), Fig. 2, section 4 and Appendix D.2",
        shown=[
            "The weights with the lowest |mean| / sigma are set to zero, and the test images are "
            "classified with what is left, at the posterior's means and without retraining.",
            "The published numbers are those of the authors' notebook (github.com/skezle/BADAM): "
            "one run with sigmoid units, 200 epochs and beta_2 = 0.999. The paper itself prints "
            "none.",
        ],
        settings=_settings(results, seeds),
        curves=curves,
        figure=draw(curves, len(seeds)),
        claims=make_claims(curves),
        tables=[_table(curves, len(seeds))],
    )


def _settings(results: Sequence[MLPResult], seeds: Sequence[int]) -> list[tuple[str, str]]:
    run = results[0].run
    return [
        ("data", f"{run.data.dataset}, pixels from 0 to 1; test images"),
        (
            "network",
            f"two hidden layers of {run.recipe.hidden[0]} ReLU units, He's start; "
            f"{run.recipe.epochs} epochs of Adam in batches of {run.recipe.batch_size} images, "
            f"learning rate 1e-3 unless another is named; {minutes(results)}",
        ),
        *(
            (TITLES[name], description_of(name))
            for name in TITLES
            if any(result.run.method == name for result in results)
        ),
        ("seeds", ", ".join(map(str, seeds))),
    ]


def make_curves(results: Sequence[MLPResult]) -> list[Curve]:
    """Accuracy over the pruned share: mean and standard error over seeds, by criterion and method.

    The mean alone where there is one seed.
    """
    curves = []
    for criterion in (RATIO, MAGNITUDE):
        for method in TITLES:
            runs = [
                result.numbers[criterion]
                for result in results
                if result.run.method == method and criterion in result.numbers
            ]
            if runs:
                curves.append(_curve(criterion, method, runs))
    return curves


def _curve(criterion: str, method: str, runs: Sequence[Sequence[float]]) -> Curve:
    pairs = [mean_and_standard_error(values) for values in zip(*runs, strict=True)]
    means = [mean for mean, _ in pairs]
    if math.isnan(pairs[0][1]):
        return Curve(criterion, method, SHARES, means)
    low = [mean - error for mean, error in pairs]
    high = [mean + error for mean, error in pairs]
    return Curve(criterion, method, SHARES, means, low, high)


def _spread(seeds: int) -> str:
    return f"mean and standard error over {seeds} seeds" if seeds > 1 else "one seed"


def draw(curves: Sequence[Curve], seeds: int) -> Figure:
    """Both criteria, with the last tenth of the shares spread out."""
    methods = [m for m in TITLES if any(curve.name == m for curve in curves)]
    with sheet(
        "An MLP pruned by signal-to-noise ratio",
        ["test accuracy without retraining", _spread(seeds)],
        ["By |mean| / sigma", "By |mean| alone"],
        per_line=2,
        width=2.75,
        height=2.2,
        key=[
            key_line(TITLES[m], _COLOURS[m], linestyle=DASHED if m == "radial" else "-")
            for m in methods
        ],
    ) as (figure, panels):
        for axes, criterion in zip(panels, (RATIO, MAGNITUDE), strict=True):
            for curve in curves:
                if curve.panel == criterion:
                    look = DASHED if curve.name == "radial" else "-"
                    line(axes, curve, _COLOURS[curve.name], linestyle=look)
            near_100(axes, "x")
            axes.set_xlim(0, 99.9)
            axes.set_xticks([0, 50, 80, 90, 95, 98, 99, 99.9])
            axes.set_xticklabels(["0", "50", "80", "90", "95", "98", "99", "99.9"])
            axes.set_ylim(0, 101)
            axes.set_xlabel("pruned (%)")
            axes.set_ylabel("test accuracy (%)")
    return figure


def make_claims(curves: Sequence[Curve]) -> list[Claim]:
    """What section 4 of the paper says of Fig. 2, as far as its methods were trained."""
    by_name = {(curve.panel, curve.name): curve for curve in curves}
    claims: list[Claim] = []
    if (RATIO, "badam") not in by_name:
        return claims
    ours = by_name[RATIO, "badam"]
    plain = by_name[MAGNITUDE, "badam"]
    pairs = ", ".join(f"{ours.at(s):.1f} against {plain.at(s):.1f} % at {s}" for s in (80, 90, 95))
    claims.append(
        Claim(
            "BAdam's signal-to-noise ratio is a better order than Sigma = 1",
            f"{pairs} % pruned",
            all(ours.at(s) > plain.at(s) for s in (80, 90, 95)),
        )
    )
    rivals = {
        "vadam": by_name.get((RATIO, "vadam")),
        "bbb": by_name.get((RATIO, "bbb")),
        "mc-dropout": by_name.get((MAGNITUDE, "mc-dropout")),
    }
    known = {name: curve for name, curve in rivals.items() if curve is not None}
    if known:
        better = [m for m, c in known.items() if any(c.at(s) > ours.at(s) for s in (80, 90, 95))]
        told = "; ".join(
            f"{TITLES[name]} {', '.join(f'{curve.at(s):.1f}' for s in (80, 90, 95))}"
            for name, curve in [("badam", ours), *known.items()]
        )
        claims.append(
            Claim(
                "Pruning by BAdam's ratio is more robust than all other baselines",
                f"at 80, 90 and 95 % pruned, accuracy in per cent: {told}",
                not better,
                "the paper states no settings for the other methods, and ours were not searched "
                "for; ahead of BAdam somewhere: " + ", ".join(TITLES[name] for name in better),
            )
        )
        highest = max(curve.at(0) for curve in known.values())
        claims.append(
            Claim(
                "BAdam has a high accuracy before pruning",
                f"{ours.at(0):.2f} %; the best of the others {highest:.2f} %",
                ours.at(0) > highest - 0.5,
            )
        )
    return claims


def _table(curves: Sequence[Curve], seeds: int) -> Table:
    columns = [Column("method", words=True), Column("order", words=True)]
    columns += [Column(f"{share} %") for share in _TABLE_SHARES]
    rows = [
        [TITLES[curve.name], curve.panel, *(_cell(curve, s) for s in _TABLE_SHARES)]
        for curve in curves
    ]
    rows += [
        ["BAdam, published notebook", criterion, *(f"{v:.1f}" for v in numbers.values())]
        for criterion, numbers in NOTEBOOK.items()
    ]
    return Table(columns, rows, f"Accuracy in per cent over the pruned share, {_spread(seeds)}:")


def _cell(curve: Curve, share: float) -> str:
    at = find([curve], curve.panel, curve.name).at(share)
    if curve.low is None:
        return f"{at:.1f}"
    return f"{at:.1f} ± {at - curve.low[list(curve.x).index(share)]:.1f}"
