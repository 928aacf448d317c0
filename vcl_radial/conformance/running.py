"""Checks that a method runs, leaves its data unchanged, and learns."""

from __future__ import annotations

from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.trial import TASKS
from vcl_radial.conformance.verdict import Fault


def runs(subject: Subject) -> str:
    """Check that the method trains and evaluates as in a run.

    All parameters and buffers must keep their names and shapes, and stay finite.
    """
    states = subject.record.states
    shapes = {name: tuple(value.shape) for name, value in states[0].items()}
    for task, state in enumerate(states):
        for name, shape in shapes.items():
            if name not in state or tuple(state[name].shape) != shape:
                raise Fault(
                    f"{name} had shape {shape}, and is missing or has another one after "
                    f"task {task}: write into parameters with copy_()"
                )
            if not state[name].isfinite().all():
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
    message = f"{score:.0f} {trial.SCORE} after {epochs} epochs, where {trial.CHANCE}"
    if score < trial.ENOUGH:
        raise Fault(
            f"{message}: if it only learns slowly, try another learning_rate or more epochs; if "
            "not, look at what it adds to the loss and does to the gradients"
        )
    return message
