"""The importance of each searched key for the score."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from vcl_radial.runs.track import Direction
from vcl_radial.sweeps.results import SearchResult
from vcl_radial.sweeps.space import Searchable, encoded

if TYPE_CHECKING:
    import optuna

FEWEST = 4
"""Smallest number of trials with a score for which importances are computed."""


def importances(
    searched: Sequence[SearchResult], keys: Mapping[str, Searchable], direction: Direction
) -> pd.DataFrame:
    """Compute the importance of every key by Optuna's evaluators; a method's shares add up to 1.

    `fanova`: the share of the variance of the score that a random forest's fit owes to the key by
    itself (Hutter, Hoos & Leyton-Brown, ICML 2014), for keys that all trials have. `ped_anova`:
    how much the best tenth of the trials keeps to certain values (Watanabe, Bansal & Hutter,
    IJCAI 2023), for all keys.

    Args:
        searched: results of the methods on one benchmark.
        keys: the searched keys.
        direction: "maximize" or "minimize".

    Returns:
        A table `method, key, fanova, ped_anova`, most important first; nan where a value is not
        defined. A method with too few trials, or with one score only, has no rows.
    """
    from optuna.importance import (
        FanovaImportanceEvaluator,
        PedAnovaImportanceEvaluator,
        get_param_importances,
    )

    rows = []
    for search in searched:
        study = study_of(search, keys, direction)
        if len(study.trials) < FEWEST or len({trial.value for trial in study.trials}) == 1:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna warns that an evaluator is experimental
            fanova = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
            ped_anova = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
        rows += [
            (search.method, key, fanova.get(key), ped_anova.get(key))
            for key in keys
            if any(key in trial.params for trial in study.trials)
        ]
    table = pd.DataFrame(rows, columns=["method", "key", "fanova", "ped_anova"])
    table[["fanova", "ped_anova"]] = table[["fanova", "ped_anova"]].astype(float)
    order = table.groupby("key")["fanova"].transform("mean").fillna(-1.0)
    best_first = order.sort_values(ascending=False, kind="stable").index
    return table.iloc[best_first].reset_index(drop=True)


def study_of(
    search: SearchResult, keys: Mapping[str, Searchable], direction: Direction
) -> optuna.Study:
    """Make an Optuna study of the trials with a score, for Optuna's evaluators and plots."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction=direction)
    for trial in search.trials:
        if trial.score is not None:
            study.add_trial(
                optuna.trial.create_trial(
                    value=trial.score,
                    params=encoded(trial.parameters),
                    distributions={k: keys[k].distribution() for k in trial.parameters},
                )
            )
    return study
