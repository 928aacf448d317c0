"""Checks of what training leaves alone and of what a method does about the past."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vcl_radial.conformance.penalty_view import PenaltyView
from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.verdict import Fault, NotApplicable
from vcl_radial.methods.base import Method
from vcl_radial.nn.parameters import parameters_of_heads
from vcl_radial.strategies.base import ContinualStrategy


def heads(subject: Subject) -> str:
    """Training on a task leaves the heads of the other tasks as they are, to the last bit.

    A method that trains old heads by design, as replay does, says so with the class attribute
    `trains_old_heads = True`; heads of tasks to come stay as they are even then.
    """
    main = subject.main
    if subject.whole_stream:
        raise NotApplicable("trains once on all tasks together: all heads at once")
    assert main.trial is not None
    if subject.memoryless and len({*map(id, main.models)}) > 1:
        raise NotApplicable("trains a network of its own for each task")
    if not main.trial.names_of_heads():
        raise NotApplicable("has one head for all tasks")
    old_too = subject.method.trains_old_heads
    for now in range(1, len(main.states)):
        before, after = main.states[now - 1], main.states[now]
        for head, starts in main.trial.names_of_heads().items():
            task = head + 1
            if task == now or (task < now and old_too):
                continue
            if name := _changed(before, after, starts):
                mend = (
                    "if it trains old heads by design, say so in the class: trains_old_heads = True"
                    if task < now
                    else "the first prior holds until a head's own task comes"
                )
                raise Fault(
                    f"training task {now} altered {name}, of the head of task {task}: leave the "
                    f"heads of other tasks alone (weight decay and noise reach them too); {mend}"
                )
    if old_too:
        return "heads of tasks to come stay as they are; old ones are trained, as the class says"
    return "training a task leaves the heads of the others as they are"


def frozen(subject: Subject) -> str:
    """Parameters that the user froze (`requires_grad = False`) keep their bits: here the body's."""
    _ = subject.main
    trial = subject.trial()
    of_heads = parameters_of_heads(trial.model)
    body = {n: p for n, p in trial.model.named_parameters() if id(p) not in of_heads}
    for parameter in body.values():
        parameter.requires_grad_(False)
    before = trial.tensors()
    for _ in trial.steps[:2]:
        trial.train_next()
    if name := _changed(before, trial.tensors(), tuple(body)):
        raise Fault(
            f"training altered {name}, which is frozen (requires_grad = False): leave it alone, "
            "where gradients are filled in and where weights are written to"
        )
    return "a body that is frozen stays as it is"


def consolidates(subject: Subject) -> str:
    """Task 2 is trained in view of task 1, and the penalty is minimal where task 1 ended.

    It holds no head that has not been trained to the random weights that the head starts with. A
    method that carries nothing by design says so with the class attribute `memoryless = True`,
    and one whose penalty has its minimum elsewhere with `penalty_off_minimum = True`.
    """
    _ = subject.main
    if subject.whole_stream:
        raise NotApplicable("trains once on all tasks together: there is no past")
    method = subject.method
    memoryless = subject.memoryless
    if memoryless and subject.remembers:
        raise Fault(
            "the class says memoryless = True, but task 2 is trained otherwise after task 1 than "
            "from the same weights alone"
        )
    if memoryless:
        raise NotApplicable("carries nothing but the weights, as the class says")
    own = _own(method)
    if not (subject.remembers or own):
        raise NotApplicable(
            "carries nothing but the weights: it has neither penalty() nor consolidate()"
        )
    try:
        view = subject.penalty
    except Exception:
        raise NotApplicable("not looked at before 'penalty' is mended") from None
    if not subject.remembers:
        if view.malformed or view.without_gradient:
            raise NotApplicable("not looked at before 'penalty' is mended")
        raise Fault(
            f"task 2 is trained as if task 1 had never been, although the class has its own "
            f"{' and '.join(own)}: let consolidate(experience) store what penalty() reads "
            "(a method that means to carry nothing says so: memoryless = True)"
        )
    _untrained_heads(view, subject)
    if method.penalty_off_minimum:
        return "task 2 is trained in view of task 1; its minimum is elsewhere, as the class says"
    return _minimal(view)


def _untrained_heads(view: PenaltyView, subject: Subject) -> None:
    if view.held:
        assert subject.main.trial is not None
        starts = subject.main.trial.names_of_heads()
        held = [f"{'*, '.join(starts[task - 1])}* of task {task}" for task in view.held]
        *others, last = held
        heads = f"{', '.join(others)} and {last}" if others else last
        raise Fault(
            f"after task 1 penalty() holds heads that no task has trained to the random weights "
            f"that they start with: {heads}; let consolidate() store the body and the heads that "
            "the task has trained (vcl_radial.nn.parameters_in_use(self.network, self.tasks))"
        )


def _minimal(view: PenaltyView) -> str:
    if not view.present:
        return "task 2 is trained in view of task 1, by other means than penalty()"
    if view.random:
        return "task 2 is trained in view of task 1; penalty() is random: its minimum is not sought"
    drop = max(view.drop, -view.rise)
    if drop > view.tolerance:
        raise Fault(
            f"penalty() is {view.at_consolidated:.6g} nats at the weights that task 1 ended with "
            f"and {drop:.3g} lower near by, but it should be minimal there: either consolidate() "
            "does not store the weights as they are after the task, or penalty() is no distance "
            "from what it stores (if that is meant, say so in the class: penalty_off_minimum = "
            "True)"
        )
    return f"penalty() is minimal where task 1 ended; 1 % away it is {view.rise:.3g} nats higher"


def _own(method: type[Any]) -> list[str]:
    """Those of the hooks of memory that a class has itself."""
    base: Any = Method if issubclass(method, Method) else ContinualStrategy
    hooks = ("penalty", "end_task" if base is Method else "consolidate")
    return [f"{hook}()" for hook in hooks if getattr(method, hook) is not getattr(base, hook)]


def _changed(
    before: dict[str, Tensor], after: dict[str, Tensor], starts: tuple[str, ...]
) -> str | None:
    names = (name for name in before if name.startswith(starts))
    return next(
        (name for name in names if name in after and not torch.equal(before[name], after[name])),
        None,
    )
