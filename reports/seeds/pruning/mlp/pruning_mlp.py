"""An MLP pruned by the signal-to-noise ratio of its weights (BAdam Fig. 2)."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from matplotlib.figure import Figure

from reports.papers.analysis import Analysis, Setting
from reports.seeds.pruning.mlp.pruning import SHARES
from reports.seeds.pruning.mlp.spec import MLPSpec
from reports.seeds.pruning.track import Result, description_of, minutes, results_of
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.metrics.verdicts import Verdict, verdict_of_parts, verdicts_of_family
from vcl_radial.reporting.figures.drawing import (
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

RATIO, MAGNITUDE = "signal-to-noise", "magnitude"
RUN_METHODS = {
    "badam": "BAdam",
    "vadam": "VADAM",
    "bbb": "BBB",
    "mc-dropout": "MC dropout",
    "radial": "radial (ours)",
}
"""Methods of the runs, as named by `--method` and the page."""
_COLOURS = dict(
    zip(RUN_METHODS, ("#d55e00", "#009e73", "#e69f00", "#cc79a7", "#0072b2"), strict=True)
)
_TABLE_SHARES = (0, 50, 80, 90, 95, 98)
"""Shares in the table."""
_CLAIMED_SHARES = (80, 90, 95)
_PLACES = "80, 90 and 95"


def _notebook() -> dict[str, dict[float, float]]:
    text = Path(__file__).with_name("published.csv").read_text(encoding="utf-8")
    accuracies: dict[str, dict[float, float]] = {}
    for row in csv.DictReader(text.splitlines()):
        accuracies.setdefault(row["order"], {})[float(row["share"])] = float(row["accuracy"])
    return accuracies


NOTEBOOK: Mapping[str, Mapping[float, float]] = _notebook()
"""BAdam in the authors' published notebook (github.com/skezle/BADAM, badam_weight_pruning.ipynb):
one run with sigmoid units, 200 epochs, beta_2 = 0.999, dropout 0.2, no L2 penalty. The paper has
Fig. 2 and no numbers."""


def analyse(setting: Setting) -> Analysis:
    """Train and prune what is not finished, and hold BAdam against the others."""
    results = results_of("pruning-mlp", list(RUN_METHODS), setting)
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
        curves=[*curves, *curves_of_seeds(results)],
        figure=draw(curves, len(seeds)),
        claims=make_claims(results),
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
            (RUN_METHODS[name], description_of(name))
            for name in RUN_METHODS
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
        for method in RUN_METHODS:
            runs = [
                result.numbers[criterion]
                for result in results
                if result.run.method == method and criterion in result.numbers
            ]
            if runs:
                curves.append(_curve(criterion, method, runs))
    return curves


def curves_of_seeds(results: Sequence[MLPResult]) -> list[Curve]:
    """The accuracies of every run, which no picture shows."""
    return [
        Curve(
            f"{criterion}, seed {result.run.seed}",
            result.run.method,
            SHARES,
            result.numbers[criterion],
        )
        for result in results
        for criterion in NOTEBOOK
        if criterion in result.numbers
    ]


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
    methods = [m for m in RUN_METHODS if any(curve.name == m for curve in curves)]
    with sheet(
        "An MLP pruned by signal-to-noise ratio",
        ["test accuracy without retraining", _spread(seeds)],
        ["By |mean| / sigma", "By |mean| alone"],
        per_line=2,
        width=2.75,
        height=2.2,
        key=[
            key_line(RUN_METHODS[m], _COLOURS[m], linestyle=DASHED if m == "radial" else "-")
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


def make_claims(results: Sequence[MLPResult]) -> list[Claim]:
    """What section 4 of the paper says of Fig. 2, as far as its methods were trained."""
    accuracies: dict[tuple[str, str], dict[int, Sequence[float]]] = {}
    for result in results:
        for criterion, values in result.numbers.items():
            if criterion in NOTEBOOK:
                by_seed = accuracies.setdefault((criterion, result.run.method), {})
                by_seed[result.run.seed] = [values[SHARES.index(s)] for s in _CLAIMED_SHARES]
    if (RATIO, "badam") not in accuracies:
        return []
    ours, plain = accuracies[RATIO, "badam"], accuracies[MAGNITUDE, "badam"]
    rivals = {
        method: accuracies[criterion, method]
        for criterion, method in ((RATIO, "vadam"), (RATIO, "bbb"), (MAGNITUDE, "mc-dropout"))
        if (criterion, method) in accuracies
    }
    better, *over_rivals = _above(ours, [plain, *rivals.values()])
    claims = [
        Claim(
            "BAdam's signal-to-noise ratio is a better order than Sigma = 1",
            f"at {_PLACES} % pruned, accuracy in per cent: {_means(ours)} against {_means(plain)}",
            better,
            f"the exact test of {len(ours)} seeds does not fall below 0.05 after the correction "
            "for all comparisons of this page",
        )
    ]
    if rivals:
        listed = "; ".join(
            f"{RUN_METHODS[method]} {_means(values)}"
            for method, values in [("badam", ours), *rivals.items()]
        )
        ahead = [
            RUN_METHODS[method]
            for method, values in rivals.items()
            if any(a < b for a, b in zip(_at_shares(ours), _at_shares(values), strict=True))
        ]
        claims.append(
            Claim(
                "Pruning by BAdam's ratio is more robust than all other baselines",
                f"at {_PLACES} % pruned, accuracy in per cent: {listed}",
                verdict_of_parts(over_rivals),
                "the paper states no settings for the other methods, and ours were not searched "
                "for"
                + (f"; the mean of {' and '.join(ahead)} is higher somewhere" if ahead else ""),
            )
        )
    return claims


def _means(by_seed: Mapping[int, Sequence[float]]) -> str:
    return ", ".join(f"{mean:.1f}" for mean in _at_shares(by_seed))


def _at_shares(by_seed: Mapping[int, Sequence[float]]) -> list[float]:
    """The mean over seeds at every claimed share."""
    return [mean_and_standard_error(values)[0] for values in zip(*by_seed.values(), strict=True)]


def _above(
    first: Mapping[int, Sequence[float]], others: Sequence[Mapping[int, Sequence[float]]]
) -> list[Verdict]:
    """Whether the first is above each other at every claimed share, in pairs of seeds."""
    places = range(len(_CLAIMED_SHARES))
    parts = verdicts_of_family(
        [
            [first[seed][k] - other[seed][k] for seed in sorted(first.keys() & other.keys())]
            for other in others
            for k in places
        ]
    )
    return [verdict_of_parts(parts[i * len(places) :][: len(places)]) for i in range(len(others))]


def _table(curves: Sequence[Curve], seeds: int) -> Table:
    columns = [Column("method", is_text=True), Column("order", is_text=True)]
    columns += [Column(f"{share} %") for share in _TABLE_SHARES]
    rows = [
        [RUN_METHODS[curve.name], curve.panel, *(_cell(curve, s) for s in _TABLE_SHARES)]
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
