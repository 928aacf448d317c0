"""The training of a method on one task, from start to end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from vcl_radial.errors import DataError, Diverged, is_out_of_memory
from vcl_radial.methods.base import MakeOptimizer, Method
from vcl_radial.methods.penalties import PenaltyUpkeep, check_kl, source_of
from vcl_radial.methods.tasks import Batch, Task, check_inputs
from vcl_radial.optimizers.schedules import set_rates
from vcl_radial.training.upkeep import NetworkUpkeep


def selected(method: Method, points: Batch) -> Batch:
    """The points of a task that a method trains on; call it before the task begins."""
    rows = method.select(lambda: points)
    return points if rows is None else points.at(rows)


TrainEpoch = Callable[[int, int], object]
"""Trains for a warm-up epoch; the arguments are its number from 0 and the number of epochs."""


def warm_up(method: Method, start: Callable[[], object], train: TrainEpoch) -> None:
    """Train for the method's warm-up epochs, if it has any; the task has begun.

    Args:
        method: method whose `warm_up` gives the number of epochs and their context.
        start: makes the optimiser, before these epochs and after them.
        train: trains for an epoch.
    """
    if (epochs := method.warm_up()) is None:
        return
    with epochs.inside:
        start()
        for number in range(epochs.epochs):
            train(number, epochs.epochs)
    start()


class TaskLoop:
    """The steps of a method on one task, which begins in the constructor.

        loop = TaskLoop(method, task, make)
        for epoch in range(task.epochs):
            loop.learn(batches(), epoch / task.epochs)
        loop.end()

    `vcl_radial.training.trainer.Trainer` calls it for one task after another. Between two calls of
    `learn` its state can be stored; another loop over the same task that loads it continues with
    the same numbers.

    Args:
        method: the method to train.
        task: the task's data and size.
        make: makes the optimiser of the settings, over the parameters of a network.
        clip: largest norm of a step's gradient; None for no limit.
        upkeep: whether to check the penalty and the network; see `PenaltyUpkeep`, `NetworkUpkeep`.

    Raises:
        UserError: a posterior is trained without its KL, or a check fails.
        Diverged: the penalty is not finite.
    """

    def __init__(
        self,
        method: Method,
        task: Task,
        make: MakeOptimizer,
        *,
        clip: float | None = None,
        upkeep: bool = True,
    ) -> None:
        self.method, self.task = method, task
        self._make, self._clip = make, clip
        self.loss = torch.zeros(())
        """Loss of the last step, in nats per point."""
        method.begin_task(task)
        if task.number == 0:
            check_kl(method)
        self.start()
        self._upkeep = PenaltyUpkeep(method, task.number) if upkeep else None
        source = source_of(method)
        hook = "end_task()" if isinstance(source, Method) else "consolidate()"
        owner = type(source).__name__
        self._network = NetworkUpkeep(method.network, task.number, owner, hook) if upkeep else None

    def start(self) -> None:
        """Make a new optimiser."""
        self.optimizer = self.method.make_optimizer(self._make)
        if self._clip is not None:
            self.optimizer.register_step_pre_hook(self._clip_gradients)

    def _clip_gradients(self, *_: Any) -> None:
        assert self._clip is not None
        clip_grad_norm_(self.method.network.parameters(), self._clip)

    def warm_up(self, epoch: Callable[[], Iterable[Batch]]) -> None:
        """Train for the method's warm-up epochs, if it has any.

        Args:
            epoch: returns the batches of an epoch.
        """
        warm_up(self.method, self.start, lambda number, count: self.learn(epoch(), number / count))

    def learn(
        self,
        batches: Iterable[Batch],
        progress: float | Callable[[int], float],
        kl: Callable[[int], float] | None = None,
    ) -> None:
        """Take a step on each batch, in training mode.

        Args:
            batches: batches of the task.
            progress: finished fraction of the task, which sets the learning rate: one number for
                all of these steps, or a function of a step's number among them.
            kl: factor of the method's `kl_weight`, by a step's number; None for 1.
        """
        method, weight = self.method, self.method.kl_weight
        method.network.train()
        if not callable(progress):
            set_rates(self.optimizer, self.task.schedule, progress)
        try:
            for number, batch in enumerate(batches):
                if callable(progress):
                    set_rates(self.optimizer, self.task.schedule, progress(number))
                if kl is not None:
                    method.kl_weight = weight * kl(number)
                self.loss = self._step(batch)
                if self._upkeep is not None:
                    self._upkeep.after_step()
        finally:
            if kl is not None:
                method.kl_weight = weight

    def _step(self, batch: Batch) -> Tensor:
        """Make a step; returns its loss.

        Raises:
            DataError: the network fails on inputs that are not floating-point numbers.
        """
        try:
            return self.method.learn(batch, self.optimizer)
        except RuntimeError as error:
            if batch.x.is_floating_point() or is_out_of_memory(error):
                raise
            kind = str(batch.x.dtype).removeprefix("torch.")
            raise DataError(f"the network takes no inputs of {kind}: give floats") from error

    def check_loss(self, moment: str, name: str | None = None) -> None:
        """Check that the last step's loss is a finite number.

        Args:
            moment: the point in training, for the message, such as "in epoch 2".
            name: name of the task, for the message; by default its number.

        Raises:
            DataError: the loss is not finite because the task's inputs are not.
            Diverged: the loss is not finite for another reason.
        """
        if not torch.isfinite(self.loss):
            for batch in self.task.batches():
                check_inputs(batch.x, name or f"task {self.task.number + 1}")
            raise Diverged(f"the loss became {self.loss.item()} {moment}; lower learning_rate")

    def end(self, **draws: Any) -> None:
        """Fit the likelihood to all points, and carry the task forward, in evaluation mode.

        Args:
            draws: `samples` and `seed` of the outputs for the fit; by default the method's.
        """
        self.method.network.eval()
        if self._network is not None:
            self._network.training_ended()
        self.method.fit_likelihood(**draws)
        self.method.end_task(self.task)
        if self._network is not None:
            self._network.task_ended()

    def state_dict(self) -> dict[str, Any]:
        """The states of the method and of its optimiser."""
        self.method.forget_caches()
        return {"method": self.method.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state_dict` returned."""
        self.method.load_state_dict(state["method"])
        self.method.forget_caches()
        self.optimizer.load_state_dict(state["optimizer"])
