"""The method under check, and the trials that several checks look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.conformance.penalty_view import PenaltyView, view_penalty
from vcl_radial.conformance.trial import Trial
from vcl_radial.conformance.verdict import NotApplicable
from vcl_radial.errors import Diverged, UserError, VclRadialError
from vcl_radial.strategies.base import ContinualStrategy
from vcl_radial.strategies.registry import find_strategy
from vcl_radial.tracks.continual.settings import Recipe

SHORT = 2
"""Epochs where only equality counts: one to move the weights, one for what the first left."""


@dataclass
class Record:
    """A trial over all tasks: the model and its tensors before the first and after each step."""

    trial: Trial | None = None
    states: list[dict[str, Tensor]] = field(default_factory=list)
    models: list[nn.Module] = field(default_factory=list)
    predictions: Tensor | None = None
    error: Exception | None = None

    def look(self) -> None:
        """Keep the model and its tensors as they are now."""
        assert self.trial is not None
        self.models.append(self.trial.strategy.model)
        self.states.append(self.trial.tensors_of_model())

    @property
    def where(self) -> str:
        """How far it came."""
        if self.trial is None:
            return "when it is made"
        return f"in task {self.trial.done}" if self.trial.done else "in evaluation before training"


class Subject:
    """A method, by its recipe.

    Raises:
        UserError: the strategy cannot be found or imported, or does not take the recipe.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.method: type[ContinualStrategy] = find_strategy(recipe.strategy)
        self.whole_stream = self.method.needs_whole_stream
        # What a user can mend in the recipe is no finding; all else is for the checks to see.
        try:
            Trial(recipe, epochs=SHORT)
        except UserError:
            raise
        except Exception:
            pass

    def trial(self, heads: str = "multi", **settings: Any) -> Trial:
        """A fresh trial that is evaluated once, as a run begins: now all heads are there."""
        trial = Trial(self.recipe, heads, **({"epochs": SHORT} | settings))
        trial.evaluate()
        return trial

    @cached_property
    def multi(self) -> Record:
        """A trial with a head for each task, or what stopped it."""
        return self._record("multi")

    @cached_property
    def single(self) -> Record:
        """A trial with one head for all tasks, or what stopped it."""
        return self._record("single")

    @property
    def main(self) -> Record:
        """The trial with a head for each task.

        Raises:
            NotApplicable: it did not come to its end.
        """
        if self.multi.error is not None:
            cause = "finite numbers" if isinstance(self.multi.error, Diverged) else "runs"
            raise NotApplicable(f"not looked at before {cause!r} is mended")
        return self.multi

    @cached_property
    def penalty(self) -> PenaltyView:
        """What the penalty is at the start of task 2, at and around the consolidated weights."""
        if self.whole_stream:
            raise NotApplicable("trains once on all tasks together: there is no past")
        return view_penalty(self.trial)

    @cached_property
    def remembers(self) -> bool:
        """Whether task 2 is trained otherwise after task 1 than from the same weights alone."""
        trial = self.trial()
        named = dict(trial.strategy.model.named_parameters())
        with torch.no_grad():
            for name, parameter in named.items():
                parameter.copy_(self.main.states[1][name])
        trial.done = 1
        trial.train_next()
        after = trial.tensors_of_model()
        return not all(torch.equal(after[name], self.main.states[2][name]) for name in named)

    def _record(self, heads: str) -> Record:
        record = self._recorded(heads)
        if record.error is None or isinstance(record.error, VclRadialError):
            return record
        # It may have broken far from its cause, which a run would have seen before.
        looked_at = self._recorded(heads, upkeep=True)
        return looked_at if isinstance(looked_at.error, VclRadialError) else record

    def _recorded(self, heads: str, upkeep: bool = False) -> Record:
        record = Record()
        try:
            record.trial = trial = Trial(self.recipe, heads, epochs=SHORT, upkeep=upkeep)
            trial.evaluate()
            record.look()
            for _ in trial.steps:
                trial.train_next()
                record.look()
            record.predictions = trial.evaluate()
        except Exception as error:  # a user's method may fail in any way
            record.error = error
        return record
