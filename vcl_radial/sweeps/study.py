"""A search as an Optuna study: its trials and their results.

The study is made in memory at each start: trials are requested and ended in the same order as
before, with results from the run folders. No other state is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from vcl_radial.errors import UserError
from vcl_radial.runs.attempt import PruningThreshold
from vcl_radial.runs.spec import RunSpec
from vcl_radial.sweeps.plans import Plan
from vcl_radial.sweeps.samplers import sampler
from vcl_radial.sweeps.space import Parameters

if TYPE_CHECKING:
    import optuna

Outcome = Literal["finished", "pruned", "diverged", "failed"]

MOST_REPEATS = 50
"""Number of consecutive duplicate trials that end a search without a number of trials."""


@dataclass(frozen=True)
class Result:
    """The result of a trial.

    Attributes:
        outcome: outcome of the trial.
        score: mean objective over the seeds, if the trial finished.
        standard_error: standard error of the mean; None for one seed.
        words: why the trial did not finish (the column of this name).
        scores_so_far: scores of the first seed after each step, in a sweep with pruning.
    """

    outcome: Outcome
    score: float | None = None
    standard_error: float | None = None
    words: str | None = None
    scores_so_far: Mapping[int, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The score with its standard error; empty without a score."""
        spread = "" if self.standard_error is None else f" ± {self.standard_error:.2g}"
        return "" if self.score is None else f"{self.score:.4g}{spread}"


@dataclass(frozen=True)
class Trial:
    """A configuration to be tried."""

    plan: Plan
    number: int
    parameters: Parameters
    thresholds: tuple[PruningThreshold, ...]

    @cached_property
    def runs(self) -> list[RunSpec]:
        """The runs of the trial, one per seed."""
        return [self.plan.run(self.parameters, seed) for seed in self.plan.seeds]


class Study:
    """The trials of a plan; `ask` makes a trial, and `end` stores its result.

    If a trial depends on others (TPE, pruning), it uses the results of all earlier trials except
    the last `at_once - 1`, in order of their numbers. So it depends only on the sweep, not on the
    number or the speed of jobs.

    Args:
        plan: the plan of the search.
        storage: a shared database of trials; None to keep them in memory only.
        owner: id of the sweep's folder, as a database may hold studies of several folders.

    Raises:
        UserError: the study in the database is another folder's.
    """

    def __init__(
        self, plan: Plan, storage: optuna.storages.BaseStorage | None = None, owner: str = ""
    ) -> None:
        self.plan = plan
        self.trials: list[Trial] = []
        self.results: dict[int, Result] = {}
        self._asked: list[optuna.Trial] = []
        self._study = _new_study(plan, storage, owner)

    def may_ask(self) -> bool:
        """Whether another trial can be requested now."""
        number = len(self.trials)
        if self.plan.trials is not None and number >= self.plan.trials:
            return False
        if self.plan.trials is None and self._only_repeats():
            return False
        return not self.plan.sweep.ordered or all(k in self.results for k in self._known_to(number))

    def ask(self) -> Trial:
        """Make the next trial."""
        number = len(self.trials)
        if self.plan.sweep.ordered:
            for known in self._known_to(number):
                self._pass_on(known)
        self._study.sampler = sampler(self.plan, number)
        asked = self._study.ask()
        if asked.number != number:
            raise UserError(
                "another process writes to this study too; stop it, or choose another database",
                self.plan.label,
            )
        self._asked.append(asked)
        parameters = self.plan.space.draw(asked)
        self.trials.append(Trial(self.plan, number, parameters, self._thresholds(number)))
        return self.trials[number]

    def end(self, number: int, result: Result) -> None:
        """Store the result of a trial."""
        self.results[number] = result
        self._asked[number].set_user_attr("outcome", result.outcome)
        if not self.plan.sweep.ordered:
            self._pass_on(number)

    def close(self) -> None:
        """Report the remaining results to Optuna after the last trial."""
        for number in sorted(self.results):
            self._pass_on(number)

    def best(self) -> int | None:
        """The number of the best finished trial; the first one of equal trials."""
        sign = 1 if self.plan.direction == "maximize" else -1
        scores = {n: sign * r.score for n, r in self.results.items() if r.score is not None}
        return max(sorted(scores), key=lambda n: scores[n]) if scores else None

    def _only_repeats(self) -> bool:
        """Whether the last trials all repeat earlier ones, so that no new trial is left."""
        last = len(self.trials) - MOST_REPEATS
        if last <= 0:
            return False
        before = [trial.parameters for trial in self.trials[:last]]
        return all(trial.parameters in before for trial in self.trials[last:])

    def _known_to(self, number: int) -> range:
        return range(max(0, number - self.plan.sweep.at_once + 1))

    def _thresholds(self, number: int) -> tuple[PruningThreshold, ...]:
        """The pruning thresholds of a trial, one per step."""
        rule = self.plan.sweep.pruning
        if rule is None:
            return ()
        earlier: dict[int, list[float]] = {}
        for known in self._known_to(number):
            for step, score in self.results[known].scores_so_far.items():
                earlier.setdefault(step, []).append(score)
        return tuple(
            PruningThreshold(
                step,
                threshold := float(np.quantile(values, rule.quantile)),
                f"below {threshold:.2f} %, the {rule.quantile:g} quantile of {len(values)} trials",
            )
            for step, values in sorted(earlier.items())
            if len(values) >= rule.after
        )

    def _pass_on(self, number: int) -> None:
        """Report a result to Optuna, once."""
        from optuna.trial import TrialState

        result, trial = self.results[number], self._asked[number]
        # TPE treats a pruned trial without a value as worse than all others.
        states = {"finished": TrialState.COMPLETE, "failed": TrialState.FAIL}
        state = states.get(result.outcome, TrialState.PRUNED)
        self._study.tell(trial, result.score, state=state, skip_if_finished=True)


def _new_study(plan: Plan, storage: optuna.storages.BaseStorage | None, owner: str) -> optuna.Study:
    """Make an empty study; in a database it replaces the folder's earlier study.

    Raises:
        UserError: the study in the database belongs to another folder.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    name = f"{plan.name}/{plan.label}"
    if storage is not None and name in optuna.get_all_study_names(storage):
        before = optuna.load_study(study_name=name, storage=storage)
        if before.user_attrs.get("owner") != owner:
            raise UserError(
                f"the study {name!r} in this database belongs to another folder; resume it there, "
                "or rename the sweep's file"
            )
        optuna.delete_study(study_name=name, storage=storage)
    study = optuna.create_study(storage=storage, study_name=name, direction=plan.direction)
    study.set_user_attr("owner", owner)
    return study
