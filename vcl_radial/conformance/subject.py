"""The method under check on a stream, and the trials that several checks share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.conformance.penalty import Penalty
from vcl_radial.conformance.streams import SEVERAL_HEADS, Stream
from vcl_radial.conformance.trial import Trial, trial_of
from vcl_radial.conformance.verdict import Fault, NotApplicable, description
from vcl_radial.errors import UserError
from vcl_radial.methods.registry import find_method
from vcl_radial.tracks.continual.settings import Recipe

SHORT = 2
"""Number of epochs in checks for equality; the second epoch shows what the first has changed."""


@dataclass
class Record:
    """A finished trial over all tasks.

    Attributes:
        trial: the trial.
        states: copies of its tensors before the first task and after every task.
        networks: its network at the same moments.
        predictions: predictions after the last task.
    """

    trial: Trial
    states: list[dict[str, Tensor]]
    networks: list[nn.Module]
    predictions: Tensor


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
            self.fresh()
        except UserError:
            raise
        except (Exception, SystemExit):
            pass

    def trial(self, **settings: Any) -> Trial:
        """A new trial that was evaluated once, like a run, so that it has all heads."""
        trial = self.fresh(**settings)
        trial.evaluate()
        return trial

    def fresh(self, **settings: Any) -> Trial:
        """A new trial."""
        return trial_of(self.recipe, self.stream, **({"epochs": SHORT} | settings))

    @cached_property
    def record(self) -> Record:
        """The record of a trial over all tasks.

        Raises:
            Fault: the trial stopped at an error; the message names the moment.
        """
        moment = "when it is made"
        try:
            trial = self.fresh()
            moment = "in evaluation before training"
            trial.evaluate()
            record = Record(trial, [trial.tensors()], [trial.method.network], torch.empty(0))
            for task in range(1, trial.trainings + 1):
                moment = f"in task {task}"
                trial.train_next()
                record.states.append(trial.tensors())
                record.networks.append(trial.method.network)
            record.predictions = trial.evaluate()
        except (Exception, SystemExit) as error:  # a user's method may fail in any way
            raise Fault(f"{moment}: {description(error, self.method)}") from error
        return record

    @property
    def memoryless(self) -> bool:
        """Whether the class, or the method with this recipe, states that it carries nothing."""
        return bool(self.method.memoryless or self.record.trial.method.memoryless)

    @property
    def closed_form(self) -> bool:
        """Whether steps do nothing, by the class and by the method with this recipe."""
        with_recipe = vars(self.record.trial.method).get("closed_form", True)
        return bool(self.method.closed_form and with_recipe)

    @cached_property
    def penalty(self) -> Penalty:
        """The penalty at the start of task 2."""
        if self.whole_stream:
            raise NotApplicable("trains once on all tasks together: there is no past")
        return Penalty(self.trial())

    @cached_property
    def remembers(self) -> bool:
        """Whether training task 2 after task 1 differs from training it from the same weights."""
        states = self.record.states
        trial = self.trial()
        trial.load_weights(states[1])
        trial.train_second_alone()
        tensors = trial.tensors()
        names = [name for name, _ in trial.method.network.named_parameters()]
        return not all(torch.equal(tensors[name], states[2][name]) for name in names)
