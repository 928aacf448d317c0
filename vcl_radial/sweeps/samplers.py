"""Where the values of a trial come from: a grid, chance, or what earlier trials found.

Each depends on the sweep's seed, the trial's number and, for TPE, the results told so far: nothing
is carried from one call to the next, so a sweep that goes on draws as if it had never stopped.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial

from vcl_radial.sweeps.space import Parameters, encoded, key_of
from vcl_radial.sweeps.specification import Plan


def sampler(plan: Plan, number: int) -> BaseSampler:
    """The sampler of a plan's trial of this number (from 0)."""
    if plan.grid is not None:
        return Listed(plan.grid)
    if plan.sweep.kind == "random":
        return Keyed(plan.sweep.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)  # `group` is one still
        return TPESampler(
            seed=_hashed(plan.sweep.seed, number, "tpe"),
            multivariate=True,
            group=True,  # so that keys with a condition are searched together too
            constant_liar=True,  # trials under way count as bad: the next one goes elsewhere
        )


class _OneByOne(BaseSampler):
    """Every key by itself."""

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}


class Listed(_OneByOne):
    """Trial n takes the n-th configuration."""

    def __init__(self, configurations: Sequence[Parameters]) -> None:
        self.configurations = configurations

    def sample_independent(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """The value in the list."""
        return encoded(self.configurations[trial.number])[key_of(name)]


class Keyed(_OneByOne):
    """A value depends on the seed, the trial and the key alone.

    So several methods are tried with the same configurations, and a key more changes no other.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def sample_independent(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """A value drawn for this key of this trial."""
        own = RandomSampler(seed=_hashed(self.seed, trial.number, name))
        return own.sample_independent(study, trial, name, distribution)


def _hashed(*what: int | str) -> int:
    return int.from_bytes(hashlib.sha256(repr(what).encode()).digest()[:4])
