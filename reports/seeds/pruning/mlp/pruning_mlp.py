"""An MLP pruned by the signal-to-noise ratio of its weights (BAdam Fig. 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from reports.figures import curve_of_means
from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import Rule, fill
from reports.seeds.pruning.mlp.pruning import SHARES
from reports.seeds.pruning.track import Result, description_of, minutes, results_of
from vcl_radial.metrics.verdicts import verdict_of_parts, verdicts_of_family
from vcl_radial.reporting.figures.drawing import DASHED, Curve, key_line, line, near_100, sheet

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
_RIVALS = {"vadam": RATIO, "bbb": RATIO, "mc-dropout": MAGNITUDE}
"""Methods that the paper compares with BAdam, and the order of their pruning."""
_CLAIMED_SHARES = [80, 90, 95]


def analyse(setting: Setting) -> Analysis:
    """Train and prune the unfinished runs, and compare BAdam with the other methods."""
    results = results_of("pruning-mlp", list(RUN_METHODS), setting)
    accuracies = accuracies_of(results)
    run, seeds = results[0].run, sorted({result.run.seed for result in results})
    compared, rules = compare(accuracies)
    origin = {"data": run.data, "recipe": run.recipe, "minutes": minutes(results), "seeds": seeds}
    texts = fill(__file__, compared | origin, rules)
    described = [(label, description_of(name)) for name, label in _named(accuracies).items()]
    texts["settings"][-1:-1] = described  # before the seeds
    curves = mean_curves(accuracies)
    figure = draw(curves, _named(accuracies), len(seeds))
    return Analysis(curves=[*curves, *_seed_curves(accuracies)], figure=figure, **texts)


def accuracies_of(results: Sequence[Result]) -> pd.DataFrame:
    """The accuracies of all runs: columns `order, method, seed, share, accuracy`, in per cent."""
    tables = [
        pd.DataFrame({"share": SHARES, "accuracy": values}).assign(
            order=order, method=result.run.method, seed=result.run.seed
        )
        for order in (RATIO, MAGNITUDE)
        for method in RUN_METHODS
        for result in results
        if result.run.method == method and (values := result.numbers.get(order))
    ]
    return pd.concat(tables)


def _groups(table: pd.DataFrame, *columns: str) -> Any:
    """Tuples of values of columns with their rows, in the order of the table."""
    return table.groupby(list(columns), sort=False)


def _named(accuracies: pd.DataFrame) -> dict[str, str]:
    """Methods with results, and their labels."""
    present = set(accuracies["method"])
    return {name: label for name, label in RUN_METHODS.items() if name in present}


def mean_curves(accuracies: pd.DataFrame) -> list[Curve]:
    """Mean accuracy over the pruned share; the band is the standard error of several seeds."""
    return [
        curve_of_means(order, method, SHARES, (values for _, values in by_share["accuracy"]))
        for (order, method), group in _groups(accuracies, "order", "method")
        for by_share in [group.groupby("share", sort=False)]
    ]


def _seed_curves(accuracies: pd.DataFrame) -> list[Curve]:
    """The accuracies of every run, which are in the CSV file and not in the picture."""
    return [
        Curve(f"{order}, seed {seed}", method, SHARES, group["accuracy"].tolist())
        for (method, seed, order), group in _groups(accuracies, "method", "seed", "order")
    ]


def draw(curves: Sequence[Curve], labels: Mapping[str, str], seeds: int) -> Figure:
    """Accuracy in both orders, with the last tenth of the shares spread out."""
    looks = {m: DASHED if m == "radial" else "-" for m in RUN_METHODS}
    spread = f"mean and standard error over {seeds} seeds" if seeds > 1 else "one seed"
    key = [key_line(text, _COLOURS[m], linestyle=looks[m]) for m, text in labels.items()]
    with sheet(
        "An MLP pruned by signal-to-noise ratio",
        ["test accuracy without retraining", spread],
        ["By |mean| / sigma", "By |mean| alone"],
        per_line=2,
        width=2.75,
        height=2.2,
        key=key,
    ) as (figure, panels):
        axes_of = dict(zip((RATIO, MAGNITUDE), panels, strict=True))
        for curve in curves:
            line(axes_of[curve.panel], curve, _COLOURS[curve.name], linestyle=looks[curve.name])
        for axes in panels:
            near_100(axes, "x")
            ticks = [0, 50, 80, 90, 95, 98, 99, 99.9]
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set(xlim=(0, 99.9), ylim=(0, 101))
            axes.set(xlabel="pruned (%)", ylabel="test accuracy (%)")
    return figure


def compare(accuracies: pd.DataFrame) -> tuple[dict[str, Any], dict[str, Rule]]:
    """Numbers and verdicts of the claims of section 4 on Fig. 2, in pairs of seeds.

    Methods without results are left out; without BAdam there is no evidence.
    """
    claimed = accuracies[accuracies["share"].isin(_CLAIMED_SHARES)]
    tables = {
        key: group.pivot(index="seed", columns="share", values="accuracy")
        for key, group in _groups(claimed, "method", "order")
    }
    others = [key for key in (("badam", MAGNITUDE), *_RIVALS.items()) if key in tables]
    badam = tables.get(("badam", RATIO))
    differences = {} if badam is None else {key: (badam - tables[key]).dropna() for key in others}
    verdicts = iter(
        verdicts_of_family([d[share].tolist() for d in differences.values() for share in d])
    )
    parts = {key: [next(verdicts) for _ in _CLAIMED_SHARES] for key in differences}
    order = verdict_of_parts(parts.pop(("badam", MAGNITUDE), []))
    ahead = [RUN_METHODS[key[0]] for key in parts if (differences[key].mean() < 0).any()]
    means = {
        key: ", ".join(f"{mean:.1f}" for mean in table.mean()) for key, table in tables.items()
    }
    rivals = [key for key in (("badam", RATIO), *_RIVALS.items()) if key in tables]
    numbers = {
        "shares": _CLAIMED_SHARES,
        "ratio": means.get(("badam", RATIO), "none"),
        "magnitude": means.get(("badam", MAGNITUDE), "none"),
        "pairs": 0 if badam is None else len(badam),
        "methods": "; ".join(
            f"{RUN_METHODS[method]} {means[method, order]}" for method, order in rivals
        ),
        "ahead": f"; the mean of {' and '.join(ahead)} is higher somewhere" if ahead else "",
    }
    return numbers, {"order": order, "robust": verdict_of_parts(chain(*parts.values()))}
