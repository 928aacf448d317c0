"""The method under check on a stream, and the trials that several checks share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.conformance.penalty_view import PenaltyView, view_penalty
from vcl_radial.conformance.streams import SEVERAL_HEADS, Stream
from vcl_radial.conformance.trial import Trial
from vcl_radial.conformance.verdict import NotApplicable
from vcl_radial.errors import Diverged, UserError, VclRadialError
from vcl_radial.methods.registry import find_method
from vcl_radial.tracks.continual.settings import Recipe

SHORT = 2
"""Number of epochs of checks for equality; the second shows what the first one left."""


@dataclass
class Record:
    """A trial over all tasks: the model and its tensors before the first and after each step."""

    trial: Trial | None = None
    states: list[dict[str, Tensor]] = field(default_factory=list)
    models: list[nn.Module] = field(default_factory=list)
    predictions: Tensor | None = None
    error: Exception | None = None

    def look(self) -> None:
        """Store the model and copies of its tensors."""
        assert self.trial is not None
        self.models.append(self.trial.model)
        self.states.append(self.trial.tensors())

    @property
    def moment(self) -> str:
        """The moment that the trial reached."""
        if self.trial is None:
            return "when it is made"
        task = self.trial.finished
        return f"in task {task}" if task else "in evaluation before training"


class Subject:
    """A method, by its recipe, on a stream.

    Raises:
        UserError: the method cannot be found or imported, or does not support the recipe or the
            stream.
    """

    def __init__(self, recipe: Recipe, stream: Stream = SEVERAL_HEADS) -> None:
        self.recipe, self.stream = recipe, stream
        self.method: type[Any] = find_method(recipe.strategy)
        self.whole_stream = self.method.needs_whole_stream
        # A fault of the recipe is the user's; the checks report all other exceptions.
        try:
            stream.trial(recipe, epochs=SHORT)
        except UserError:
            raise
        except Exception:
            pass

    def trial(self, **settings: Any) -> Trial:
        """A new trial that was evaluated once, like a run, so that it has all heads."""
        trial = self.fresh(**settings)
        trial.evaluate()
        return trial

    def fresh(self, **settings: Any) -> Trial:
        """A new trial."""
        return self.stream.trial(self.recipe, **({"epochs": SHORT} | settings))

    @cached_property
    def record(self) -> Record:
        """The record of a trial over all tasks, or of the error that stopped it."""
        record = self._recorded()
        diverged = isinstance(record.error, Diverged)
        if record.error is None or (isinstance(record.error, VclRadialError) and not diverged):
            return record
        # The error may be far from its cause, which the checks of a run can detect earlier.
        checked = self._recorded(upkeep=True)
        closer = isinstance(checked.error, Diverged if diverged else VclRadialError)
        return checked if closer else record

    @property
    def main(self) -> Record:
        """The same record.

        Raises:
            NotApplicable: the trial did not finish.
        """
        if self.record.error is not None:
            cause = "finite numbers" if isinstance(self.record.error, Diverged) else "runs"
            raise NotApplicable(f"not looked at before {cause!r} is fixed")
        return self.record

    @property
    def memoryless(self) -> bool:
        """Whether the class, or the method with this recipe, states that it carries nothing."""
        assert self.main.trial is not None
        return bool(self.method.memoryless or self.main.trial.method.memoryless)

    @property
    def closed_form(self) -> bool:
        """Whether steps do nothing, by the class and by the method with this recipe."""
        assert self.main.trial is not None
        with_recipe = vars(self.main.trial.method).get("closed_form", True)
        return bool(self.method.closed_form and with_recipe)

    @cached_property
    def penalty(self) -> PenaltyView:
        """The penalty at the start of task 2, at and around the consolidated weights."""
        if self.whole_stream:
            raise NotApplicable("trains once on all tasks together: there is no past")
        return view_penalty(self.trial)

    @cached_property
    def remembers(self) -> bool:
        """Whether training task 2 after task 1 differs from training it from the same weights."""
        trial = self.trial()
        trial.load_weights(self.main.states[1])
        trial.finished = 1
        trial.train_next()
        tensors = trial.tensors()
        names = [name for name, _ in trial.model.named_parameters()]
        return not all(torch.equal(tensors[name], self.main.states[2][name]) for name in names)

    def _recorded(self, upkeep: bool = False) -> Record:
        record = Record()
        try:
            record.trial = trial = self.fresh(upkeep=upkeep)
            trial.evaluate()
            record.look()
            for _ in trial.steps:
                trial.train_next()
                record.look()
            record.predictions = trial.evaluate()
        except Exception as error:  # a user's method may fail in any way
            record.error = error
        return record
