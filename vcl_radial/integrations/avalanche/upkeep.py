"""Checks of a strategy's method while it runs.

`vcl-radial check` tests more. These cost almost nothing, and end a run with one line where it would
otherwise continue to meaningless numbers.
"""

from __future__ import annotations

from typing import Any

import torch
from avalanche.core import SupervisedPlugin
from torch import Tensor

from vcl_radial.errors import UserError
from vcl_radial.integrations.avalanche.base import ContinualStrategy, Strategy
from vcl_radial.methods.penalties import PenaltyUpkeep, check_kl
from vcl_radial.training.upkeep import NetworkUpkeep


class KLUpkeep(SupervisedPlugin):
    """Check that a posterior is trained with its KL.

    Raises (in training):
        UserError: it is not; the message names the class and the fix.
    """

    def before_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        """Check the objective before the first task: a posterior needs its KL in it."""
        if _task(strategy) == 1:
            check_objective(strategy)


class Upkeep(KLUpkeep):
    """Also check that a method keeps shapes and finite numbers, and consolidates.

    Raises (in training):
        UserError: it does not, or the penalty is malformed; the message names the class and the
            fix.
        Diverged: the penalty is not finite.
    """

    def __init__(self) -> None:
        super().__init__()
        self._memory: Any = None
        self._stored_nothing = False

    def before_training_epoch(self, strategy: Any, **kwargs: Any) -> None:
        """Check the penalty at the start of a task, before it can make a weight NaN."""
        if strategy.clock.train_exp_epochs == 0:
            number, owner = _task(strategy) - 1, _name(strategy)
            self._network = NetworkUpkeep(strategy.model, number, owner, _hook(strategy))
            self._penalty = PenaltyUpkeep(strategy.method, _task(strategy) - 1)

    def after_training_epoch(self, strategy: Any, **kwargs: Any) -> None:
        """Check again after training, and store the state that `consolidate` must change."""
        if strategy.clock.train_exp_epochs == 0:
            penalty = self._penalty.look("in")
            is_number = isinstance(penalty, int | float)
            constant = not penalty if is_number else not penalty.requires_grad
            if self._stored_nothing and constant and not float(penalty):
                raise UserError(
                    f"{_name(strategy)} has a penalty() that does not depend on the weights in "
                    f"task {_task(strategy)}, and its consolidate() left state_dict() as it was: "
                    "store there what penalty() reads (a class that carries nothing by design "
                    "states so: memoryless = True)"
                )
        if strategy.clock.train_exp_epochs == strategy.train_epochs - 1:
            self._network.training_ended()
            if _has_memory(strategy):
                self._memory = _copied(strategy.state_dict())

    def after_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        """Check the result of `consolidate`, which strategies of the suite have already called."""
        self._network.task_ended()
        if _has_memory(strategy):
            self._stored_nothing = _same(self._memory, strategy.state_dict())
        self._memory = None


def check_objective(strategy: ContinualStrategy) -> None:
    """Call `check_kl` for a strategy, unless it overrides the loss, which may contain the KL.

    Raises:
        UserError: see `check_kl`.
    """
    if type(strategy).criterion is ContinualStrategy.criterion:
        check_kl(strategy.method)


def _has_memory(strategy: Any) -> bool:
    """Whether past tasks should enter through a penalty that the class defines."""
    overridden = type(strategy).penalty is not ContinualStrategy.penalty
    return overridden and not strategy.memoryless


def _copied(state: Any) -> Any:
    """A state with copies of its tensors."""
    if isinstance(state, dict):
        return {key: _copied(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return [_copied(value) for value in state]
    return state.detach().clone() if isinstance(state, Tensor) else state


def _same(a: Any, b: Any) -> bool:
    """Whether two states hold the same bits."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.equal(a, b)
    return a is b or (isinstance(a, bool | int | float | str) and a == b)


def _hook(strategy: Any) -> str:
    """The name of the hook at a task's end in the class that the user wrote."""
    cls, base = type(strategy), ContinualStrategy
    overridden = cls.penalty is not base.penalty or cls.consolidate is not base.consolidate
    return "consolidate()" if overridden else "end_task()"


def _name(strategy: Any) -> str:
    """The name of the class that the user wrote."""
    cls = type(strategy)
    return type(strategy.method).__name__ if cls is Strategy else cls.__name__


def _task(strategy: Any) -> int:
    return int(strategy.experience.current_experience) + 1
