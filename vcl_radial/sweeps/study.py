"""A search in a database: which trials there are, and what came of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vcl_radial.errors import UserError
from vcl_radial.runs.attempt import Floor
from vcl_radial.runs.spec import RunSpec
from vcl_radial.sweeps.samplers import sampler
from vcl_radial.sweeps.space import Parameters, encoded
from vcl_radial.sweeps.specification import Plan
from vcl_radial.sweeps.storage import in_words

if TYPE_CHECKING:
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial

Outcome = Literal["finished", "pruned", "diverged", "failed"]

MOST_REPEATS = 50
"""After so many trials in a row that were there before, a search without a number of them ends."""

_SO_FAR = "accuracies"
"""What `Result.so_far` is called in databases, which outlive our names."""


@dataclass(frozen=True)
class Result:
    """What came of a trial.

    Attributes:
        outcome: how it ended.
        score: the mean of the objective over the seeds, if it finished.
        standard_error: of that mean; None for one seed.
        words: why it did not finish.
        so_far: of the first seed: its score after each step that it came to.
    """

    outcome: Outcome
    score: float | None = None
    standard_error: float | None = None
    words: str | None = None
    so_far: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """A configuration to be tried."""

    plan: Plan
    number: int
    parameters: Parameters
    floors: tuple[Floor, ...]

    @property
    def runs(self) -> list[RunSpec]:
        """One for each seed."""
        return [self.plan.run(self.parameters, seed) for seed in range(self.plan.sweep.seeds)]


class Study:
    """The trials of a plan, each asked for, then ended.

    Where a trial depends on others (TPE, pruning), it knows the results of all but the
    `at_once - 1` before it, told in the order of their numbers: what it is depends on the sweep
    alone, not on the number of jobs or on which of them was quicker.

    Args:
        plan: what is searched.
        storage: where it is kept.
        owner: the sweep's folder, by a name of its own.
        shared: whether the database may hold studies of other folders too.

    Raises:
        UserError: the database cannot be used, or the study in it is another folder's.
    """

    def __init__(self, plan: Plan, storage: RDBStorage, owner: str, shared: bool) -> None:
        self.plan, self._storage, self._owner, self._shared = plan, storage, owner, shared
        self.trials: list[Trial] = []
        self.results: dict[int, Result] = {}
        self._told: set[int] = set()
        self._ids: list[int] = []
        with in_words():
            self._open()
            fault = self._load()
            if fault is not None:
                print(f"{plan.label}: {fault}; finished runs are kept", flush=True)
                self._empty()

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
        with in_words():
            if self.plan.sweep.ordered:
                for known in self._known_to(number):
                    self._tell(known)
            self._study.sampler = sampler(self.plan, number)
            asked = self._study.ask()
            if asked.number != number:
                raise UserError(f"{self.plan.label}: somebody else writes to this study too")
            parameters = self.plan.space.draw(asked)
            asked.set_user_attr("asked", _sum(number, encoded(parameters)))
        self._ids.append(asked._trial_id)
        self.trials.append(Trial(self.plan, number, parameters, self._floors(number)))
        return self.trials[number]

    def end(self, number: int, result: Result) -> None:
        """Take the result of a trial."""
        self.results[number] = result
        if not self.plan.sweep.ordered:
            with in_words():
                self._tell(number)

    def close(self) -> None:
        """Nothing more will be asked for: store what is left to be stored."""
        with in_words():
            for number in range(len(self.trials)):
                if number not in self.results:
                    break
                self._tell(number)

    @property
    def seconds_spent(self) -> float:
        """How long the sweep has been at work, all sittings together."""
        return self._seconds

    def spend(self, seconds: float) -> None:
        """Count time towards the budget."""
        self._seconds += seconds
        with in_words():
            self._study.set_user_attr("seconds", self._seconds)

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

    def _floors(self, number: int) -> tuple[Floor, ...]:
        """Below which score a trial is given up after each step."""
        rule = self.plan.sweep.pruning
        if rule is None:
            return ()
        earlier: dict[int, list[float]] = {}
        for known in self._known_to(number):
            for step, score in self.results[known].so_far.items():
                earlier.setdefault(step, []).append(score)
        return tuple(
            Floor(
                step,
                floor := float(np.quantile(values, rule.quantile)),
                f"below {floor:.2f} %, the {rule.quantile:g} quantile of {len(values)} trials",
            )
            for step, values in sorted(earlier.items())
            if len(values) >= rule.after
        )

    def _tell(self, number: int) -> None:
        if number in self._told:
            return
        from optuna.trial import TrialState

        result = self.results[number]
        told = _jsonable(result)
        parameters = encoded(self.trials[number].parameters)
        check = _sum(number, parameters, json.dumps(told, sort_keys=True))
        self._storage.set_trial_user_attr(self._ids[number], "told", told)
        self._storage.set_trial_user_attr(self._ids[number], "sum", check)
        if result.outcome == "finished":
            self._study.tell(number, result.score)
        else:
            # Of a pruned trial without a value TPE knows that it was worse than all others.
            failed = result.outcome == "failed"
            self._study.tell(number, state=TrialState.FAIL if failed else TrialState.PRUNED)
        self._told.add(number)

    def _open(self) -> None:
        import optuna

        name = f"{self.plan.name}/{self.plan.label}"
        self._study = optuna.create_study(
            storage=self._storage,
            study_name=name,
            direction=self.plan.direction,
            load_if_exists=True,
        )
        owner = self._study.user_attrs.get("owner")
        if owner is None:
            self._study.set_user_attr("owner", self._owner)
        self._seconds = float(self._study.user_attrs.get("seconds", 0.0))
        if self._shared and owner not in (None, self._owner):
            raise UserError(
                f"the study {name!r} in this database belongs to another folder; go on there, or "
                "rename the sweep's file"
            )

    def _empty(self) -> None:
        import optuna

        seconds = self._seconds
        optuna.delete_study(study_name=self._study.study_name, storage=self._storage)
        self.trials, self.results, self._told, self._ids = [], {}, set(), []
        self._open()
        self.spend(seconds)

    def _load(self) -> str | None:
        """Take over the trials that the database holds; the reason if they cannot stay."""
        from optuna.trial import TrialState

        if self._study.user_attrs.get("owner") != self._owner:
            return "what the database holds may be another sweep's"
        for number, frozen in enumerate(self._study.get_trials(deepcopy=False)):
            told = frozen.user_attrs.get("told")
            ended = frozen.state.is_finished()
            if ended and frozen.state == TrialState.FAIL:
                return "trials that failed are tried again"
            sums = [_sum(number, frozen.params)]
            if ended:
                sums.append(_sum(number, frozen.params, json.dumps(told, sort_keys=True)))
            stored = [frozen.user_attrs.get(name) for name in ("asked", "sum")][: len(sums)]
            if frozen.number != number or stored != sums or not self._fits(frozen):
                return f"what the database holds of trial {number} is damaged or incomplete"
            parameters = self.plan.space.decoded(frozen.params)
            if ended:
                self.results[number] = _result(told or {})
                self._told.add(number)
            self._ids.append(frozen._trial_id)
            self.trials.append(Trial(self.plan, number, parameters, ()))
        for number, trial in enumerate(self.trials):
            if number in self.results:
                continue
            if self.plan.sweep.ordered and any(
                k not in self.results for k in self._known_to(number)
            ):
                return f"what the database holds before trial {number} is incomplete"
            self.trials[number] = Trial(self.plan, number, trial.parameters, self._floors(number))
        return None

    def _fits(self, frozen: FrozenTrial) -> bool:
        told = frozen.user_attrs.get("told") or {}
        return frozen.params.keys() <= self.plan.space.keys.keys() and (
            not frozen.state.is_finished() or frozen.value == told.get("score")
        )


def _jsonable(result: Result) -> dict[str, Any]:
    told = asdict(result)
    return told | {_SO_FAR: {str(step): score for step, score in told.pop("so_far").items()}}


def _result(told: dict[str, Any]) -> Result:
    so_far = {int(step): score for step, score in told[_SO_FAR].items()}
    return Result(**{k: v for k, v in told.items() if k != _SO_FAR}, so_far=so_far)


def _sum(*what: Any) -> str:
    """A checksum of numbers, strings and flat tables."""
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
