"""Checks that a method runs, keeps numbers finite and shapes and data unchanged, and learns."""

from __future__ import annotations

import torch

from vcl_radial.conformance.subject import Record, Subject
from vcl_radial.conformance.trial import TASKS
from vcl_radial.conformance.verdict import Fault, description
from vcl_radial.errors import Diverged


def runs(subject: Subject) -> str:
    """Check that the method trains and evaluates without an exception."""
    record = subject.record
    if record.error is not None and not isinstance(record.error, Diverged):
        raise Fault(f"{record.moment}: {description(record.error, subject.method)}")
    return f"learns {TASKS} tasks and predicts after each"


def finite(subject: Subject) -> str:
    """Check that the loss, the predictions and all parameters are finite."""
    record = subject.record
    if isinstance(record.error, Diverged):
        raise Fault(_cause(record))
    for task, state in enumerate(record.states):
        if name := _not_finite(state):
            raise Fault(f"{name} holds nan or inf after task {task}")
    _ = subject.main
    return "the loss, the predictions and all parameters"


def shapes(subject: Subject) -> str:
    """Check that training and consolidating keep names and shapes of parameters and buffers."""
    states = subject.main.states
    expected = {name: tuple(value.shape) for name, value in states[0].items()}
    for task, state in enumerate(states[1:], start=1):
        actual = {name: tuple(value.shape) for name, value in state.items()}
        for name, shape in expected.items():
            if name not in actual:
                raise Fault(f"{name} is gone after task {task}: keep what the network was made of")
            if actual[name] != shape:
                raise Fault(
                    f"{name} had shape {shape} and has {actual[name]} after task {task}: write "
                    "into parameters with copy_() and leave their shapes as they are"
                )
    return f"{len(expected)} parameters and buffers keep theirs"


def data(subject: Subject) -> str:
    """Check that neither training nor evaluation writes to the data."""
    trial = subject.main.trial
    assert trial is not None
    if altered := trial.altered():
        raise Fault(altered)
    return "left as they were"


def learns(subject: Subject) -> str:
    """Check that the predictions of task 1's test targets are well above chance after it."""
    _ = subject.main
    epochs = subject.recipe.epochs
    trial = subject.trial(epochs=epochs)
    trial.train_next()
    score = trial.score(0)
    message = f"{score:.0f} {trial.SCORE} after {epochs} epochs, where {trial.CHANCE}"
    if score < trial.ENOUGH:
        raise Fault(
            f"{message}: if it only learns slowly, try --set learning_rate=... or epochs=...; if "
            "not, look at what it adds to the loss and does to the gradients"
        )
    return message


def _not_finite(state: dict[str, torch.Tensor]) -> str | None:
    return next((name for name, value in state.items() if not value.isfinite().all()), None)


def _cause(record: Record) -> str:
    """The origin of the first number that is not finite."""
    if record.states and (name := _not_finite(record.states[-1])):
        return f"{name} held nan or inf after task {len(record.states) - 1}: look at consolidate()"
    message = str(record.error)
    named = record.moment.removeprefix("in ") in message
    return message if named else f"{record.moment}: {message}"
