"""Samplers of the values of a trial: from a grid, at random, or by the results of earlier trials.

A value depends on the sweep's seed, the trial's number and, for TPE, the results reported so far. A
sampler keeps no state between calls, so a resumed sweep draws the same values.
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

from vcl_radial.sweeps.plans import Plan
from vcl_radial.sweeps.space import Parameters, encoded, key_of


def sampler(plan: Plan, number: int) -> BaseSampler:
    """The sampler of the trial with this number (from 0)."""
    if plan.grid is not None:
        return Listed(plan.grid)
    if plan.sweep.kind == "random":
        return Keyed(plan.sweep.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)  # `group` is experimental
        return TPESampler(
            seed=_hashed(plan.sweep.seed, number, "tpe"),
            multivariate=True,
            group=True,  # so that keys with a condition are also searched together
            constant_liar=True,  # running trials count as bad, so that the next one differs
        )


class Listed(RandomSampler):
    """Gives trial n the n-th configuration of a list."""

    def __init__(self, configurations: Sequence[Parameters]) -> None:
        super().__init__()
        self.configurations = configurations

    def sample_independent(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """The value of the key in the list."""
        return encoded(self.configurations[trial.number])[key_of(name)]


class Keyed(RandomSampler):
    """Draws a value that depends only on the seed, the trial and the key.

    So all methods are tried with the same configurations, and a new key does not change the values
    of other keys.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def sample_independent(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """A value drawn for this key of this trial."""
        random = RandomSampler(seed=_hashed(self.seed, trial.number, name))
        return random.sample_independent(study, trial, name, distribution)


def _hashed(*parts: int | str) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4])
