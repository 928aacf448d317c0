"""Checks that numbers repeat: with the same seed, with evaluations, and after a checkpoint."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.trial import Trial
from vcl_radial.conformance.verdict import Fault

State = dict[str, Tensor]


def seeds(subject: Subject) -> str:
    """Check that the same seed gives the same numbers, and another seed other numbers.

    A method that learns in closed form states so with the class attribute `closed_form = True`.
    """
    states = subject.record.states
    repeated = subject.trial()
    for task in range(1, min(repeated.trainings, 2) + 1):
        repeated.train_next()
        if name := _difference(states[task], repeated.tensors()):
            raise Fault(
                f"the same seed gave another {name} after task {task}: draw from PyTorch's, "
                "NumPy's or Python's global generator, which are seeded before each task, and "
                "do not iterate over sets"
            )
    if subject.closed_form:
        return "the same seed gives the same numbers; a closed form draws none, as the class says"
    reseeded = subject.trial(training_seed=1)
    reseeded.train_next()
    if _difference(states[1], reseeded.tensors()) is None:
        raise Fault(
            "another seed gave the same numbers: something sets its own seed in training, or "
            "nothing is trained"
        )
    return "the same seed gives the same numbers, another one others"


def evaluating(subject: Subject) -> str:
    """Check that evaluating after each epoch and each task does not change training."""
    states = subject.record.states
    trial = subject.trial()
    trial.method.network.train()
    _evaluate_and_compare(trial)
    trial.after_epoch = trial.evaluate
    for task in range(1, min(trial.trainings, 2) + 1):
        trial.train_next()
        _evaluate_and_compare(trial)
        if name := _difference(states[task], trial.tensors()):
            raise Fault(
                f"with an evaluation after each epoch task {task} ended with another {name}: keep "
                "evaluation from writing to what training reads (look at is_training)"
            )
    return "training is the same with and without evaluation"


def ending(subject: Subject) -> str:
    """Check that the end of a task does not change the averages of batch norms."""
    trial = subject.trial()
    network = trial.method.network
    trained: State = {}
    ended: State = {}

    def watched(end: Callable[[Any], object], task: Any) -> None:
        trained.update(_averages(network))
        end(task)
        ended.update(_averages(network))

    trial.wrap_hook(watched)
    trial.train_next()
    if name := _difference(trained, ended):
        raise Fault(
            f"consolidate() altered {name}: it begins with the network in evaluation mode, in "
            "which a forward pass changes no average; keep this mode"
        )
    return "the end of a task does not change the averages"


def checkpoint(subject: Subject) -> str:
    """Check that resuming in a new instance after every task ends with the same bits."""
    record, trial = subject.record, subject.trial()
    for task in range(1, trial.trainings + 1):
        trial.train_next()
        for path, kind in _foreign(trial.learner.state_dict(), "state_dict()"):
            raise Fault(
                f"{path} is a {kind}: a checkpoint holds plain tensors, numbers and text, in "
                "dicts and lists, and is never unpickled"
            )
        state = _stored_and_loaded(trial.trainer.state_dict())
        trial = subject.fresh()
        trial.trainer.load_state_dict(state)
        if name := _difference(record.states[task], trial.tensors()):
            raise Fault(
                f"a run that resumes from checkpoints has another {name} after task {task} than "
                "a run that was never stopped: state_dict() and load_state_dict() must carry all "
                "that consolidate() and training leave for the next task"
            )
    if not torch.equal(trial.evaluate(), record.predictions):
        raise Fault(
            "a run that resumes from checkpoints has other predictions than a run that was never "
            "stopped: state_dict() lacks something that a prediction needs"
        )
    return "stopped after every task, it resumes to the same bits"


def _stored_and_loaded(state: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


def _foreign(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield path and type of all values in a state that are no plain tensor, number or text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _foreign(inner, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _foreign(inner, f"{path}[{index}]")
    elif not (value is None or type(value) in (Tensor, torch.nn.Parameter, bool, int, float, str)):
        yield path, f"{type(value).__module__}.{type(value).__name__}"


def _evaluate_and_compare(trial: Trial) -> None:
    network = trial.method.network
    tensors, modes = trial.tensors(), {n: m.training for n, m in network.named_modules()}
    generators = _random_states()
    trial.evaluate()
    if name := _difference(tensors, trial.tensors()):
        raise Fault(f"evaluating altered {name}: put it back, or work on a copy")
    for name, module in trial.method.network.named_modules():
        if modes.get(name, module.training) != module.training:
            module_name = name or "the network"
            raise Fault(f"evaluating altered the training mode of {module_name}: put it back")
    for name, state in _random_states().items():
        if state != generators[name]:
            raise Fault(
                f"evaluating altered the state of {name}'s random numbers, which training "
                "continues: draw inside `with vcl_radial.likelihoods.predict.seeded_rng(seed, "
                "device):`, or from a generator of your own"
            )


def _random_states() -> Mapping[str, Any]:
    """The states of the generators that a method may draw from, to be compared by `==`."""
    numpy: dict[str, Any] = np.random.get_state(legacy=False)
    words = {name: np.asarray(value).tolist() for name, value in numpy["state"].items()}
    return {
        "PyTorch": torch.get_rng_state().tolist(),
        "NumPy": {**numpy, "state": words},
        "Python": random.getstate(),
    }


def _averages(model: nn.Module) -> State:
    """Copies of the averages of batch norms, by name."""
    return {
        f"{name}.{buffer_name}": buffer.clone()
        for name, module in model.named_modules()
        if getattr(module, "running_mean", None) is not None
        for buffer_name, buffer in module.named_buffers(recurse=False)
    }


def _difference(expected: State, actual: State) -> str | None:
    """The name of a tensor that differs, if there is one."""
    for name, value in expected.items():
        if name not in actual or not torch.equal(value, actual[name]):
            return name
    return None
