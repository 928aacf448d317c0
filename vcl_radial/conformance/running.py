"""Checks that a method runs, keeps numbers, shapes and data in order, and learns."""

from __future__ import annotations

import torch

from vcl_radial.conformance.subject import Record, Subject
from vcl_radial.conformance.trial import TASKS
from vcl_radial.conformance.verdict import Fault, description
from vcl_radial.errors import Diverged


def runs(subject: Subject) -> str:
    """It trains and evaluates without raising anything."""
    record = subject.record
    if record.error is not None and not isinstance(record.error, Diverged):
        raise Fault(f"{record.where}: {description(record.error, subject.method)}")
    return f"learns {TASKS} tasks and predicts after each"


def finite(subject: Subject) -> str:
    """The loss, the predictions and all parameters stay finite numbers."""
    record = subject.record
    if isinstance(record.error, Diverged):
        raise Fault(_cause(record))
    for done, state in enumerate(record.states):
        if name := _not_finite(state):
            raise Fault(f"{name} holds nan or inf after task {done}")
    _ = subject.main
    return "the loss, the predictions and all parameters"


def shapes(subject: Subject) -> str:
    """Training and consolidating keep the names and shapes of parameters and buffers."""
    states = subject.main.states
    before = {name: tuple(value.shape) for name, value in states[0].items()}
    for done, state in enumerate(states[1:], start=1):
        after = {name: tuple(value.shape) for name, value in state.items()}
        for name, shape in before.items():
            if name not in after:
                raise Fault(f"{name} is gone after task {done}: keep what the network was made of")
            if after[name] != shape:
                raise Fault(
                    f"{name} had shape {shape} and has {after[name]} after task {done}: write "
                    "into parameters with copy_() and leave their shapes as they are"
                )
    return f"{len(before)} parameters and buffers keep theirs"


def data(subject: Subject) -> str:
    """Neither training nor evaluation writes to the data."""
    trial = subject.main.trial
    assert trial is not None
    if altered := trial.altered():
        raise Fault(altered)
    return "left as they were"


def learns(subject: Subject) -> str:
    """After task 1 its test targets are predicted well above chance."""
    _ = subject.main
    epochs = subject.recipe.epochs
    trial = subject.trial(epochs=epochs)
    trial.train_next()
    found = trial.score(0)
    words = f"{found:.0f} {trial.SCORE} after {epochs} epochs, where {trial.CHANCE}"
    if found < trial.ENOUGH:
        raise Fault(
            f"{words}: if it only learns slowly, try --set learning_rate=... or epochs=...; if "
            "not, look at what it adds to the loss and does to the gradients"
        )
    return words


def _not_finite(state: dict[str, torch.Tensor]) -> str | None:
    return next((name for name, value in state.items() if not value.isfinite().all()), None)


def _cause(record: Record) -> str:
    """Where the first number that is none came from."""
    if record.states and (name := _not_finite(record.states[-1])):
        return f"{name} held nan or inf after task {len(record.states) - 1}: look at consolidate()"
    words = str(record.error)
    return words if record.where.removeprefix("in ") in words else f"{record.where}: {words}"
