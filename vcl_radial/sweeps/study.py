"""A search as Optuna's study: which trials there are, and what came of them.

The study is made in memory at each start: trials are asked for and ended in the same order as
before, with results that are read from the run folders. There is nothing else to keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from vcl_radial.errors import UserError
from vcl_radial.runs.attempt import PruningThreshold
from vcl_radial.runs.spec import RunSpec
from vcl_radial.sweeps.samplers import sampler
from vcl_radial.sweeps.space import Parameters
from vcl_radial.sweeps.specification import Plan

if TYPE_CHECKING:
    import optuna

Outcome = Literal["finished", "pruned", "diverged", "failed"]

MOST_REPEATS = 50
"""After so many trials in a row that were there before, a search without a number of them ends."""


@dataclass(frozen=True)
class Result:
    """What came of a trial.

    Attributes:
        outcome: how it ended.
        score: the mean of the objective over the seeds, if it finished.
        standard_error: of that mean; None for one seed.
        words: why it did not finish.
        scores_so_far: of the first seed, in a sweep that prunes: its score after each step.
    """

    outcome: Outcome
    score: float | None = None
    standard_error: float | None = None
    words: str | None = None
    scores_so_far: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """A configuration to be tried."""

    plan: Plan
    number: int
    parameters: Parameters
    thresholds: tuple[PruningThreshold, ...]

    @property
    def runs(self) -> list[RunSpec]:
        """One for each seed."""
        return [self.plan.run(self.parameters, seed) for seed in self.plan.seeds]


class Study:
    """The trials of a plan, each asked for, then ended.

    Where a trial depends on others (TPE, pruning), it knows the results of all but the
    `at_once - 1` before it, in the order of their numbers: what it is depends on the sweep alone,
    not on the number of jobs or on which of them was quicker.

    Args:
        plan: what is searched.
        storage: a database that shows the trials to others; None to keep them in memory alone.
        owner: the sweep's folder, by a name of its own. A database may hold other folders' studies.

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
        self._to_optuna: set[int] = set()
        self._study = _new_study(plan, storage, owner)

    def may_ask(self) -> bool:
        """Whether there is a trial to be had now."""
        number = len(self.trials)
        if self.plan.trials is not None and number >= self.plan.trials:
            return False
        if self.plan.trials is None and self._only_repeats():
            return False
        return not self.plan.sweep.ordered or all(k in self.results for k in self._known_to(number))

    def ask(self) -> Trial:
        """The next trial."""
        number = len(self.trials)
        if self.plan.sweep.ordered:
            for known in self._known_to(number):
                self._pass_on(known)
        self._study.sampler = sampler(self.plan, number)
        asked = self._study.ask()
        if asked.number != number:
            raise UserError(f"{self.plan.label}: somebody else writes to this study too")
        self._asked.append(asked)
        parameters = self.plan.space.draw(asked)
        self.trials.append(Trial(self.plan, number, parameters, self._thresholds(number)))
        return self.trials[number]

    def end(self, number: int, result: Result) -> None:
        """Take the result of a trial."""
        self.results[number] = result
        if not self.plan.sweep.ordered:
            self._pass_on(number)

    def close(self) -> None:
        """Nothing more will be asked for: Optuna gets the results that it does not have yet."""
        for number in sorted(self.results):
            self._pass_on(number)

    def best(self) -> int | None:
        """The number of the best finished trial; of equals the first."""
        sign = 1 if self.plan.direction == "maximize" else -1
        scores = {n: sign * r.score for n, r in self.results.items() if r.score is not None}
        return max(sorted(scores), key=lambda n: scores[n]) if scores else None

    def _only_repeats(self) -> bool:
        """Whether the last trials were all there before: nothing new is left to be tried."""
        last = len(self.trials) - MOST_REPEATS
        if last <= 0:
            return False
        before = [trial.parameters for trial in self.trials[:last]]
        return all(trial.parameters in before for trial in self.trials[last:])

    def _known_to(self, number: int) -> range:
        return range(max(0, number - self.plan.sweep.at_once + 1))

    def _thresholds(self, number: int) -> tuple[PruningThreshold, ...]:
        """Below which score a trial is given up after each step."""
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
        """Give Optuna a result, once."""
        if number in self._to_optuna:
            return
        from optuna.trial import TrialState

        result, trial = self.results[number], self._asked[number]
        trial.set_user_attr("outcome", result.outcome)
        if result.outcome == "finished":
            self._study.tell(trial, result.score)
        else:
            # Of a pruned trial without a value TPE knows that it was worse than all others.
            failed = result.outcome == "failed"
            self._study.tell(trial, state=TrialState.FAIL if failed else TrialState.PRUNED)
        self._to_optuna.add(number)


def _new_study(plan: Plan, storage: optuna.storages.BaseStorage | None, owner: str) -> optuna.Study:
    """An empty study; in a database it takes the place of the one that the folder had before.

    Raises:
        UserError: the one in the database is another folder's.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    name = f"{plan.name}/{plan.label}"
    if storage is not None and name in optuna.get_all_study_names(storage):
        before = optuna.load_study(study_name=name, storage=storage)
        if before.user_attrs.get("owner") != owner:
            raise UserError(
                f"the study {name!r} in this database belongs to another folder; go on there, or "
                "rename the sweep's file"
            )
        optuna.delete_study(study_name=name, storage=storage)
    study = optuna.create_study(storage=storage, study_name=name, direction=plan.direction)
    study.set_user_attr("owner", owner)
    return study
