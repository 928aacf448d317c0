"""The method under check on a stream, and the trials that several checks look at."""

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
        self.models.append(self.trial.model)
        self.states.append(self.trial.tensors())

    @property
    def where(self) -> str:
        """How far it came."""
        if self.trial is None:
            return "when it is made"
        return f"in task {self.trial.done}" if self.trial.done else "in evaluation before training"


class Subject:
    """A method, by its recipe, on a stream.

    Raises:
        UserError: the method cannot be found or imported, does not take the recipe, or does not
            serve the stream.
    """

    def __init__(self, recipe: Recipe, stream: Stream = SEVERAL_HEADS) -> None:
        self.recipe, self.stream = recipe, stream
        self.method: type[Any] = find_method(recipe.strategy)
        self.whole_stream = self.method.needs_whole_stream
        # What a user can mend in the recipe is no finding; all else is for the checks to see.
        try:
            stream.trial(recipe, epochs=SHORT)
        except UserError:
            raise
        except Exception:
            pass

    def trial(self, **settings: Any) -> Trial:
        """A fresh trial that is evaluated once, as a run begins: now all heads are there."""
        trial = self.fresh(**settings)
        trial.evaluate()
        return trial

    def fresh(self, **settings: Any) -> Trial:
        """A fresh trial."""
        return self.stream.trial(self.recipe, **({"epochs": SHORT} | settings))

    @cached_property
    def record(self) -> Record:
        """A trial over all tasks, or what stopped it."""
        record = self._recorded()
        diverged = isinstance(record.error, Diverged)
        if record.error is None or (isinstance(record.error, VclRadialError) and not diverged):
            return record
        # It may have broken far from its cause, which a run would have seen before.
        looked_at = self._recorded(upkeep=True)
        closer = isinstance(looked_at.error, Diverged if diverged else VclRadialError)
        return looked_at if closer else record

    @property
    def main(self) -> Record:
        """The same trial.

        Raises:
            NotApplicable: it did not come to its end.
        """
        if self.record.error is not None:
            cause = "finite numbers" if isinstance(self.record.error, Diverged) else "runs"
            raise NotApplicable(f"not looked at before {cause!r} is mended")
        return self.record

    @property
    def memoryless(self) -> bool:
        """Whether the class, or the method as this recipe has it, says that it carries nothing."""
        assert self.main.trial is not None
        return bool(self.method.memoryless or self.main.trial.method.memoryless)

    @property
    def closed_form(self) -> bool:
        """Whether steps do nothing, as the class says and the method as this recipe has it."""
        assert self.main.trial is not None
        of_recipe = vars(self.main.trial.method).get("closed_form", True)
        return bool(self.method.closed_form and of_recipe)

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
        trial.take_over(self.main.states[1])
        trial.done = 1
        trial.train_next()
        after = trial.tensors()
        trained = [name for name, _ in trial.model.named_parameters()]
        return not all(torch.equal(after[name], self.main.states[2][name]) for name in trained)

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
