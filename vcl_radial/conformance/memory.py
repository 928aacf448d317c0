"""Checks of what training must not change, and of a method's memory of the past."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from vcl_radial.conformance.penalty import Penalty
from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.verdict import Fault, NotApplicable
from vcl_radial.integrations.avalanche.base import ContinualStrategy
from vcl_radial.methods.base import Method
from vcl_radial.nn.parameters import parameters_of_heads


def heads(subject: Subject) -> str:
    """Check that training on a task does not change a bit of the heads of other tasks.

    A method that trains old heads by design, such as replay, states so with the class attribute
    `trains_old_heads = True`; even then the heads of future tasks must not change.
    """
    if subject.whole_stream:
        raise NotApplicable("trains once on all tasks together: all heads at once")
    record = subject.record
    if subject.memoryless and len({*map(id, record.networks)}) > 1:
        raise NotApplicable("trains a separate network for each task")
    heads_by_task = record.trial.head_prefixes()
    if not heads_by_task:
        raise NotApplicable("has one head for all tasks")
    old_too = subject.method.trains_old_heads
    for current, (old, new) in enumerate(pairwise(record.states), start=1):
        for head, starts in heads_by_task.items():
            task = head + 1
            if task == current or (task < current and old_too):
                continue
            if name := _changed(old, new, starts):
                fix = (
                    "if it trains old heads by design, say so in the class: trains_old_heads = True"
                    if task < current
                    else "the first prior holds until a head's own task comes"
                )
                raise Fault(
                    f"training task {current} altered {name}, of the head of task {task}: leave "
                    f"the heads of other tasks alone (weight decay and noise reach them too); {fix}"
                )
    if old_too:
        return "heads of future tasks do not change; old heads are trained, as the class says"
    return "training a task does not change the heads of other tasks"


def frozen(subject: Subject) -> str:
    """Check that frozen parameters (`requires_grad = False`), here the body's, do not change."""
    trial = subject.trial()
    in_heads = parameters_of_heads(trial.method.network)
    body = {n: p for n, p in trial.method.network.named_parameters() if id(p) not in in_heads}
    for parameter in body.values():
        parameter.requires_grad_(False)
    start = trial.tensors()
    for _ in range(min(trial.trainings, 2)):
        trial.train_next()
    if name := _changed(start, trial.tensors(), tuple(body)):
        raise Fault(
            f"training altered {name}, which is frozen (requires_grad = False): leave it alone, "
            "where gradients are computed and where weights are written to"
        )
    return "a frozen body does not change"


def consolidates(subject: Subject) -> str:
    """Check that task 1 affects task 2, and that the penalty is minimal where task 1 ended.

    The penalty must not hold an untrained head to its random initial weights. A method that carries
    nothing by design states so with the class attribute `memoryless = True`, and a method whose
    penalty has its minimum elsewhere with `penalty_off_minimum = True`.
    """
    if subject.whole_stream:
        raise NotApplicable("trains once on all tasks together: there is no past")
    method = subject.method
    if subject.memoryless:
        if subject.remembers:
            raise Fault(
                "the class states memoryless = True, but training task 2 after task 1 differs from "
                "training it from the same weights alone"
            )
        raise NotApplicable("carries nothing but the weights, as the class says")
    hooks = _overridden_hooks(method)
    if not (subject.remembers or hooks):
        raise NotApplicable(
            "carries nothing but the weights: it has neither penalty() nor consolidate()"
        )
    if not subject.remembers:
        raise Fault(
            f"task 2 is trained as if there were no task 1, although the class defines "
            f"{' and '.join(hooks)}: let consolidate(experience) store what penalty() reads "
            "(a method that means to carry nothing says so: memoryless = True)"
        )
    _untrained_heads(subject)
    if method.penalty_off_minimum:
        return "task 1 affects task 2; the penalty's minimum is elsewhere, as the class says"
    return _minimal(subject.penalty)


def _untrained_heads(subject: Subject) -> None:
    if held := subject.penalty.held_heads:
        starts = subject.record.trial.head_prefixes()
        heads = " and ".join(f"{'*, '.join(starts[t - 1])}* of task {t}" for t in held)
        raise Fault(
            f"after task 1 penalty() holds heads that no task has trained to the random weights "
            f"that they start with: {heads}; let consolidate() store the body and the heads that "
            "the task has trained (vcl_radial.nn.parameters_in_use(self.network, self.tasks))"
        )


def _minimal(view: Penalty) -> str:
    if not view.present:
        return "task 1 affects task 2, but not through penalty()"
    if view.random:
        return "task 1 affects task 2; penalty() is random, so its minimum is not checked"
    drop = max(view.drop, -view.rise)
    if drop > view.tolerance:
        raise Fault(
            f"penalty() is {view.at_start:.6g} nats at the weights that task 1 ended with "
            f"and {drop:.3g} lower near by, but it should be minimal there: either consolidate() "
            "does not store the weights as they are after the task, or penalty() is not a distance "
            "from the stored weights (if that is meant, say so in the class: penalty_off_minimum = "
            "True)"
        )
    return f"penalty() is minimal where task 1 ended; 1 % away it is {view.rise:.3g} nats higher"


def _overridden_hooks(method: type[Any]) -> list[str]:
    """The hooks of memory that a class overrides."""
    base: Any = Method if issubclass(method, Method) else ContinualStrategy
    hooks = ("penalty", "end_task" if base is Method else "consolidate")
    return [f"{hook}()" for hook in hooks if getattr(method, hook) is not getattr(base, hook)]


def _changed(old: dict[str, Tensor], new: dict[str, Tensor], starts: tuple[str, ...]) -> str | None:
    names = (name for name in old if name.startswith(starts))
    return next(
        (name for name in names if name in new and not torch.equal(old[name], new[name])), None
    )
