"""How much each searched key matters for the score, and its picture."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from vcl_radial.report.figures.layout import text_width
from vcl_radial.report.figures.style import FAINT, INK, SMALL_SIZE, house_style, method_styles
from vcl_radial.runs.track import Direction
from vcl_radial.sweeps.draw import sheet
from vcl_radial.sweeps.results import Searched
from vcl_radial.sweeps.space import Choices, Range, encoded

FEWEST = 4
"""Trials with a score, below which nothing is said."""


def importances(
    searched: Sequence[Searched], keys: Mapping[str, Choices | Range], direction: Direction
) -> pd.DataFrame:
    """The importance of every key, by Optuna's evaluators; the shares of a method add up to 1.

    `fanova`: the share of the variance of the score that a random forest's fit owes to the key by
    itself (Hutter, Hoos & Leyton-Brown, ICML 2014), for keys that all trials have. `ped_anova`:
    how much the best tenth of the trials keeps to certain values (Watanabe, Bansal & Hutter,
    IJCAI 2023), for all keys.

    Args:
        searched: the methods on one benchmark.
        keys: what was searched.
        direction: "maximize" or "minimize".

    Returns:
        `method, key, fanova, ped_anova`, most important first; nan where it is not defined. No
        rows for a method with too few trials, or with one score only.
    """
    import optuna
    from optuna.importance import FanovaImportanceEvaluator, PedAnovaImportanceEvaluator

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rows = []
    for one in searched:
        finished = [trial for trial in one.trials if trial.score is not None]
        if len(finished) < FEWEST or len({trial.score for trial in finished}) == 1:
            continue
        study = optuna.create_study(direction=direction)
        for trial in finished:
            study.add_trial(
                optuna.trial.create_trial(
                    value=trial.score,
                    params=encoded(trial.parameters),
                    distributions={k: keys[k].distribution() for k in trial.parameters},
                )
            )
        by = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that an evaluator is experimental
            for name, evaluator in (
                ("fanova", FanovaImportanceEvaluator(seed=0)),
                ("ped_anova", PedAnovaImportanceEvaluator()),
            ):
                by[name] = optuna.importance.get_param_importances(study, evaluator=evaluator)
        rows += [
            {"method": one.method, "key": key} | {name: by[name].get(key) for name in by}
            for key in keys
            if any(key in trial.parameters for trial in finished)
        ]
    table = pd.DataFrame(rows, columns=["method", "key", "fanova", "ped_anova"])
    table[["fanova", "ped_anova"]] = table[["fanova", "ped_anova"]].astype(float)
    order = table.groupby("key")["fanova"].transform("mean").fillna(-1.0)
    return table.iloc[order.sort_values(ascending=False, kind="stable").index].reset_index(
        drop=True
    )


def draw_importances(table: pd.DataFrame, name: str) -> Figure:
    """Bars for fANOVA, one for each method, and a mark for PED-ANOVA.

    Args:
        table: what `importances` returned, with at least a row.
        name: the title.

    Returns:
        The figure.
    """
    methods = list(dict.fromkeys(table["method"]))
    keys = list(dict.fromkeys(table["key"]))
    styles = method_styles(methods)
    thickness = 0.8 / len(methods)
    left = max(text_width(key, SMALL_SIZE) for key in keys) + 0.25
    notes = ["bars: fANOVA, share of the variance", "marks: PED-ANOVA, for the best tenth"]
    with house_style():
        size = 0.2 + len(keys) * max(0.22, 0.13 * len(methods))
        figure, grid = sheet(1, 3.6, size, name, notes, left=left)
        axes = grid.axes(figure, 0)
        for number, method in enumerate(methods):
            own = table[table["method"] == method].set_index("key")
            places = [keys.index(key) - 0.4 + (number + 0.5) * thickness for key in own.index]
            axes.barh(
                places,
                100 * own["fanova"].fillna(0.0),
                height=0.9 * thickness,
                color=styles[method].colour,
                label=method,
            )
            axes.plot(
                100 * own["ped_anova"],
                places,
                linestyle="none",
                marker="d",
                markersize=3.5,
                markerfacecolor="white",
                markeredgecolor=INK,
                markeredgewidth=0.8,
                clip_on=False,
                zorder=4,
            )
        axes.set_yticks(range(len(keys)), keys)
        axes.set_ylim(len(keys) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(left=0.0)
        axes.set_xlabel("importance (%)")
        axes.grid(axis="x", color=FAINT, linewidth=0.4)
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(0.0, -0.4 / size),
            ncols=2,
            frameon=False,
            fontsize=SMALL_SIZE,
            borderaxespad=0.0,
        )
    return figure
