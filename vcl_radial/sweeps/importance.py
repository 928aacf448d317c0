"""The trials of a search as a study for Optuna's plots, and the importance of its keys."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from vcl_radial.runs.track import Direction
from vcl_radial.sweeps.results import SearchResult
from vcl_radial.sweeps.space import Searchable, encoded

if TYPE_CHECKING:
    import optuna

FEWEST = 4
"""Smallest number of trials with a score for which importances are computed."""


def importances(study: optuna.Study) -> dict[str, float]:
    """The importance of each key by Optuna's PED-ANOVA, most important first; they add up to 1.

    It measures how much the best tenth of the trials keeps to certain values (Watanabe, Bansal &
    Hutter, IJCAI 2023). It is empty with too few trials, or if all have the same score.
    """
    from optuna.importance import get_param_importances

    scores = [trial.value for trial in study.trials if trial.value is not None]
    if len(scores) < FEWEST or len(set(scores)) == 1:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna warns that an evaluator is experimental
        return get_param_importances(study)


def study_of(
    search: SearchResult, keys: Mapping[str, Searchable], direction: Direction
) -> optuna.Study:
    """Make a study of all trials that have ended, in order; it has the name of the method."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.RandomSampler()
    study = optuna.create_study(direction=direction, study_name=search.method, sampler=sampler)
    for trial in search.trials:
        study.enqueue_trial(encoded(trial.parameters))
        asked = study.ask()
        for key in trial.parameters:
            keys[key].suggest(asked, key)
        failed = optuna.trial.TrialState.FAIL if trial.score is None else None
        study.tell(asked, trial.score, state=failed)
    return study
