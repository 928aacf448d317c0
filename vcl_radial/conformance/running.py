"""Checks that a method runs, leaves its data unchanged, and learns."""

from __future__ import annotations

from vcl_radial.conformance.streams import TASKS
from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.verdict import Fault


def runs(subject: Subject) -> str:
    """Check that the method trains and evaluates as in a run, and that all numbers stay finite.

    The trainer checks names and shapes, and numbers at the end of a task.
    """
    for task, state in enumerate(subject.record.states):
        for name, value in state.items():
            if not value.isfinite().all():
                raise Fault(f"{name} holds nan or inf after task {task}")
    return f"learns {TASKS} tasks and predicts after each"


def data(subject: Subject) -> str:
    """Check that neither training nor evaluation writes to the data."""
    if altered := subject.record.trial.altered():
        raise Fault(altered)
    return "training and evaluation do not change the data"


def learns(subject: Subject) -> str:
    """Check that the predictions of task 1's test targets are well above chance after it."""
    epochs = subject.recipe.epochs
    trial = subject.trial(epochs=epochs)
    trial.train_next()
    score = trial.score(0)
    message = f"{score:.0f} {trial.stream.SCORE} after {epochs} epochs, where {trial.stream.CHANCE}"
    if score < trial.stream.ENOUGH:
        raise Fault(
            f"{message}: if it only learns slowly, try another learning_rate or more epochs; if "
            "not, look at what it adds to the loss and does to the gradients"
        )
    return message
