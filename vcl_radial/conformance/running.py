"""Checks that a method runs, keeps numbers, shapes and data in order, and learns."""

from __future__ import annotations

import math
from contextlib import suppress

import torch

from vcl_radial.conformance.subject import Record, Subject
from vcl_radial.conformance.verdict import Fault, told
from vcl_radial.errors import Diverged

CHANCE, ENOUGH = 50.0, 75.0
"""Per cent of two classes; 75 % of the 71 test inputs is four standard errors above chance."""


def runs(subject: Subject) -> str:
    """Multi-head and single-head both train and evaluate without raising anything."""
    faults: dict[str, list[str]] = {}
    for heads, record in _both(subject):
        if record.error is not None and not isinstance(record.error, Diverged):
            words = f"{record.where}: {told(record.error, subject.method)}"
            faults.setdefault(words, []).append(f"with {heads}")
    if faults:
        raise Fault("; ".join(f"{' and '.join(where)}, {w}" for w, where in faults.items()))
    return "with a head for each task and with one head for all"


def finite(subject: Subject) -> str:
    """The loss, the predictions and all parameters stay finite numbers."""
    for heads, record in _both(subject):
        if isinstance(record.error, Diverged):
            raise Fault(f"with {heads}: {_cause(subject, record)}")
        for done, state in enumerate(record.states):
            if name := _not_finite(state):
                raise Fault(f"with {heads}: {name} holds nan or inf after task {done}")
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
    original = trial.digits.tensors
    for name in ("x", "y"):
        if not torch.equal(getattr(original, name), getattr(trial.tensors, name)):
            raise Fault(f"tensor_stream.{name} was altered: work on a copy, .clone()")
    if trial.watch.altered:
        raise Fault("an evaluation altered the inputs or labels of its batches: use a copy")
    return "left as they were"


def learns(subject: Subject) -> str:
    """After task 1 its test inputs are told apart well above chance."""
    _ = subject.main
    epochs = subject.recipe.epochs
    trial = subject.trial(epochs=epochs)
    trial.train_next()
    found = trial.accuracy(0)
    words = f"{found:.0f} % of task 1 right after {epochs} epochs, where chance gives {CHANCE:.0f}"
    if found < ENOUGH:
        raise Fault(
            f"{words}: if it only learns slowly, try --set learning_rate=... or epochs=...; if "
            "not, look at what it adds to the loss and does to the gradients"
        )
    return words


def _both(subject: Subject) -> list[tuple[str, Record]]:
    return [
        ("a head for each task", subject.multi),
        ("one head for all tasks", subject.single),
    ]


def _not_finite(state: dict[str, torch.Tensor]) -> str | None:
    return next((name for name, value in state.items() if not value.isfinite().all()), None)


def _cause(subject: Subject, record: Record) -> str:
    """Where the first number that is none came from."""
    done = len(record.states) - 1
    if record.states and (name := _not_finite(record.states[-1])):
        return f"{name} held nan or inf after task {done}: look at consolidate()"
    if done == 1:
        with suppress(Exception):  # the trial that looks at it may fail as this one did
            if not math.isfinite(value := subject.penalty.at_consolidated):
                return f"penalty() is {value} at the start of task 2"
    return f"{record.where}: {record.error}"
