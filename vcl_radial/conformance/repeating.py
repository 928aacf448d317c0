"""Checks that numbers come again: same seed, evaluation in between, going on from a checkpoint."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.trial import Trial, random_states, same_states
from vcl_radial.conformance.verdict import Fault

State = dict[str, Tensor]


def seeds(subject: Subject) -> str:
    """The same seed gives the same numbers; from the same weights another gives others.

    A method that learns in closed form says so with the class attribute `closed_form = True`.
    """
    states = subject.main.states
    again = subject.trial()
    for done in range(1, len(again.steps[:2]) + 1):
        again.train_next()
        if name := _difference(states[done], again.tensors()):
            raise Fault(
                f"the same seed gave another {name} after task {done}: draw from PyTorch's, "
                "NumPy's or Python's global generator, which are seeded before each task, and "
                "iterate over nothing unordered"
            )
    if subject.closed_form:
        return "the same seed gives the same numbers; a closed form draws none, as the class says"
    other = subject.trial(training_seed=1)
    other.train_next()
    if _difference(states[1], other.tensors()) is None:
        raise Fault(
            "another seed gave the same numbers: something sets a seed of its own in training, or "
            "nothing is trained"
        )
    return "the same seed gives the same numbers, another one others"


def evaluating(subject: Subject) -> str:
    """Evaluating after each epoch and each task leaves training as it is without."""
    states = subject.main.states
    trial = subject.trial(eval_every=1)
    trial.model.train()
    _evaluate_and_compare(trial)
    for done in range(1, len(trial.steps[:2]) + 1):
        trial.train_next()
        _evaluate_and_compare(trial)
        if name := _difference(states[done], trial.tensors()):
            raise Fault(
                f"with an evaluation after each epoch task {done} ended with another {name}: keep "
                "evaluation from writing to what training reads (look at is_training)"
            )
    return "training goes the same way with it and without"


def ending(subject: Subject) -> str:
    """Where a task ends, batch norms keep the averages that training has left them with."""
    trial = subject.trial()
    end = getattr(trial.learner, trial.HOOK)
    before: State = {}
    after: State = {}

    def watched(*task: Any) -> None:
        before.update(_averages(trial.model))
        end(*task)
        after.update(_averages(trial.model))

    setattr(trial.learner, trial.HOOK, watched)
    trial.train_next()
    if name := _difference(before, after):
        raise Fault(
            f"consolidate() altered {name}: it begins with the network in evaluation mode, in "
            "which a look at the points moves no average; leave it there"
        )
    return "the averages stay as training has left them"


def checkpoint(subject: Subject) -> str:
    """Stopping after every task and going on in a fresh instance ends with the same bits."""
    main, trial = subject.main, subject.trial()
    for done in range(1, len(trial.steps) + 1):
        trial.train_next()
        state = trial.learner.state_dict()
        for place, kind in _foreign(state, "state_dict()"):
            raise Fault(
                f"{place} is a {kind}: a checkpoint holds plain tensors, numbers and text, in "
                "dicts and lists, and is never unpickled"
            )
        trial = subject.fresh()
        trial.learner.load_state_dict(_stored_and_loaded(state))
        trial.done = done
        if name := _difference(main.states[done], trial.tensors()):
            after = f"after task {done}"
            raise Fault(
                f"a run that goes on from checkpoints has another {name} {after} than one that "
                "was never stopped: state_dict() and load_state_dict() must carry all that "
                "consolidate() and training leave for the next task"
            )
    assert main.predictions is not None
    if not torch.equal(trial.evaluate(), main.predictions):
        raise Fault(
            "a run that goes on from checkpoints predicts otherwise than one that was never "
            "stopped: state_dict() lacks something that a prediction needs"
        )
    return "stopped after every task, it goes on to the same bits"


def _stored_and_loaded(state: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


def _foreign(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """What in a state is neither a plain tensor nor a number nor text: its place and type."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _foreign(inner, f"{place}[{key!r}]")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _foreign(inner, f"{place}[{index}]")
    elif not (value is None or type(value) in (Tensor, torch.nn.Parameter, bool, int, float, str)):
        yield place, f"{type(value).__module__}.{type(value).__name__}"


def _evaluate_and_compare(trial: Trial) -> None:
    model = trial.model
    tensors, modes = trial.tensors(), {n: m.training for n, m in model.named_modules()}
    generators = random_states()
    trial.evaluate()
    if name := _difference(tensors, trial.tensors()):
        raise Fault(f"evaluating altered {name}: put it back, or work on a copy")
    for name, module in trial.model.named_modules():
        if modes.get(name, module.training) != module.training:
            whose = name or "the model"
            raise Fault(f"evaluating altered the training mode of {whose}: put it back")
    for name, state in random_states().items():
        if not same_states({name: state}, generators):
            raise Fault(
                f"evaluating altered the state of {name}'s random numbers, on which training goes "
                "on: draw inside `with vcl_radial.likelihoods.predict.seeded_rng(seed, "
                "device):`, or from a generator of your own"
            )


def _averages(model: nn.Module) -> State:
    """Copies of what batch norms have averaged, by name."""
    return {
        f"{name}.{of_norm}": buffer.clone()
        for name, module in model.named_modules()
        if getattr(module, "running_mean", None) is not None
        for of_norm, buffer in module.named_buffers(recurse=False)
    }


def _difference(expected: State, found: State) -> str | None:
    """The name of a tensor that is not the same in both, if there is one."""
    for name, value in expected.items():
        if name not in found or not torch.equal(value, found[name]):
            return name
    return None
