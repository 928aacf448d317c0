"""The training of many runs of one shape as lanes of one program, one task after another.

    trainer = LaneTrainer([LaneRun(method, seed) for method, seed in ...], batch_size=64)
    for lanes in trainer.steps(tasks): ...      # numbers of the lanes that finished another task

A lane gives the same numbers as the run alone, up to the rounding of batched products: it draws
from a generator with the seed of that run, in the same order. Every lane has a method, which
begins and ends its tasks; only the steps are made for all lanes together.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from vcl_radial.errors import Diverged
from vcl_radial.likelihoods import Categorical
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn.cuda_graph import Replayed
from vcl_radial.nn.lane_step import LaneSettings
from vcl_radial.nn.lanes import Lanes
from vcl_radial.optimizers.schedules import Schedule, constant
from vcl_radial.training.lane_data import LaneData
from vcl_radial.training.trainer import Trainer


@dataclass(eq=False)
class LaneRun:
    """A run that trains as a lane. Its state is that of a `Trainer` between tasks.

    Attributes:
        method: the method, of a class that has a `lane_step`.
        seed: the seed of a task, by its number from 0.
        learning_rate: learning rate of means and point estimates.
        rho_learning_rate: learning rate of the rhos; None for the same.
        epochs: passes over a task, by its number.
        schedule: factor of the learning rates as a function of the finished fraction of a task.
        done: number of finished tasks.
        fault: why the lane stopped early; None if it did not.
        left_out: whether the lane trains no more tasks.
    """

    method: Method
    seed: Callable[[int], int]
    learning_rate: float = 1e-3
    rho_learning_rate: float | None = None
    epochs: Callable[[int], int] = lambda task: 1
    schedule: Schedule = constant
    done: int = 0
    fault: Diverged | None = None
    left_out: bool = False

    def __post_init__(self) -> None:
        # The steps are made by other code than the method's.
        self.method.gradients_are_read = True

    @property
    def settings(self) -> LaneSettings:
        """The settings of its steps; the task has begun."""
        rate, method = self.learning_rate, self.method
        kl_factor = method.kl_weight / method.task.points
        return LaneSettings(rate, self.rho_learning_rate or rate, kl_factor)

    @property
    def states(self) -> list[dict[str, Any]]:
        """The method's state after the last task, as of a `Trainer`."""
        return [self.method.state_dict()] if self.done else []

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers from which the run continues, as a lane or alone."""
        return Trainer.state_between_tasks(self.states, self.done)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state_dict` of a lane or of a trainer returned."""
        for carried in state["states"][-1:]:
            self.method.load_state_dict(copy.deepcopy(carried))
        self.done = state["done"]


class LaneTrainer:
    """Train runs of one shape together, by Adam.

    Args:
        lanes: the runs. Their methods and networks differ in numbers only.
        batch_size: number of points in a step.
        drop_last: whether to leave out the last batch of an epoch if it is smaller.
        amsgrad: whether to use AMSGrad instead of Adam.
        on_epoch: called after every epoch with the number of each lane that trained, the task (from
            0) and the finished epochs.
    """

    def __init__(
        self,
        lanes: Sequence[LaneRun],
        *,
        batch_size: int,
        drop_last: bool = False,
        amsgrad: bool = False,
        on_epoch: Callable[[int, int, int], None] = lambda lane, task, epochs: None,
    ) -> None:
        self.lanes = list(lanes)
        self._batch_size, self._drop_last, self._amsgrad = batch_size, drop_last, amsgrad
        self._on_epoch = on_epoch

    def steps(self, tasks: Sequence[LaneData]) -> Iterator[list[int]]:
        """Train on the remaining tasks; yield the numbers of lanes that finished another task.

        Their states can then be stored. A lane that diverges stops; its `fault` says why.
        """
        while unfinished := self._unfinished(len(tasks)):
            number = min(self.lanes[k].done for k in unfinished)
            together = [k for k in unfinished if self.lanes[k].done == number]
            self._train(together, number, tasks[number])
            yield [k for k in together if self.lanes[k].fault is None]

    def _unfinished(self, tasks: int) -> list[int]:
        stopped = [lane.left_out or lane.fault is not None for lane in self.lanes]
        return [k for k, lane in enumerate(self.lanes) if not stopped[k] and lane.done < tasks]

    def _train(self, numbers: list[int], task: int, data: LaneData) -> None:
        """Train lanes, by their numbers, on a task (from 0)."""
        # Sort by epochs, descending, so that active lanes form a prefix.
        numbers = sorted(numbers, key=lambda k: -self.lanes[k].epochs(task))
        lanes, data = [self.lanes[k] for k in numbers], data.of_lanes(numbers)
        for at, lane in enumerate(lanes):
            lane.method.begin_task(self._task(lane, task, data, at))
        method, (x, y) = lanes[0].method, data.table
        likelihood = cast(Categorical, method.likelihood)
        assert method.lane_step is not None
        orders = [torch.Generator().manual_seed(lane.seed(task)) for lane in lanes]
        draws = orders
        if x.device.type == "cuda":
            draws = [torch.Generator(x.device).manual_seed(g.initial_seed()) for g in orders]
        stacked = Lanes([lane.method.network for lane in lanes], data.head)
        step = method.lane_step(
            stacked,
            [lane.settings for lane in lanes],
            draws,
            x,
            y,
            samples=method.train_samples,
            loss=lambda outputs, y: likelihood.nll_per_point(outputs, y).mean(-1),
            amsgrad=self._amsgrad,
        )
        self._train_epochs(numbers, Replayed(step), orders, len(y))
        stacked.write_back()
        for lane in lanes:
            lane.method.end_task(lane.method.task)
            lane.done += 1

    def _task(self, lane: LaneRun, number: int, data: LaneData, at: int) -> Task:
        """The task of a lane, which is at a position in the data."""
        points, own = int(data.points[at]), at if len(data.x) > 1 else 0
        batch = Batch(data.x[own, :points], data.y[own, :points], data.head)
        epochs, size = lane.epochs(number), self._batch_size
        epoch_steps = points // size if self._drop_last else -(-points // size)
        return Task(
            number=number,
            points=points,
            batches=lambda: [batch],
            heads=[data.head],
            steps=epochs * epoch_steps,
            epochs=epochs,
            batch_size=size,
            schedule=lane.schedule,
        )

    def _train_epochs(
        self, numbers: list[int], step: Replayed, orders: list[torch.Generator], points: int
    ) -> None:
        """Train epoch by epoch; a step draws its random numbers itself."""
        lanes, size = [self.lanes[k] for k in numbers], self._batch_size
        epochs = [lane.method.task.epochs for lane in lanes]
        end = points - points % size if self._drop_last else points
        for epoch in range(epochs[0]):
            active = sum(count > epoch for count in epochs)
            shares = [x.schedule(epoch / n) for x, n in zip(lanes[:active], epochs, strict=False)]
            step.scale_rates(shares)
            order = torch.stack([torch.randperm(points, generator=g) for g in orders[:active]])
            losses = torch.zeros(active)
            for rows in torch.split(order.to(step.device)[:, :end], size, dim=1):
                losses = step(rows)
            self._end_epoch(numbers[:active], epoch + 1, losses)

    def _end_epoch(self, numbers: list[int], epoch: int, losses: Tensor) -> None:
        """Stop lanes whose loss is not finite, and call `on_epoch`."""
        finite = torch.isfinite(losses).tolist()
        for k, is_finite, loss in zip(numbers, finite, losses.tolist(), strict=True):
            lane = self.lanes[k]
            if not is_finite and lane.fault is None:
                lane.fault = Diverged(
                    f"the loss became {loss} in epoch {epoch} of task {lane.done + 1}; "
                    "try a smaller learning_rate"
                )
            self._on_epoch(k, lane.done, epoch)
