"""The training of many runs of one shape as lanes of one program, one task after another.

    trainer = LaneTrainer([LaneRun(method, seed) for method, seed in ...], batch_size=64)
    for trained in trainer.steps(tasks): ...    # numbers of the lanes that finished another task

A lane gives the same numbers as the run alone, up to the rounding of batched products: it draws
from a generator with the seed of that run, in the same order. Every lane has a method, which
begins and ends its tasks; only the steps are made for all lanes together.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from vcl_radial.errors import Diverged
from vcl_radial.likelihoods import Categorical, Gaussian
from vcl_radial.likelihoods.noise_precision import BATCH_STEP, NoisePrecision
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn.compiled_lanes import CompiledLanes
from vcl_radial.nn.cuda_graph import Replayed
from vcl_radial.nn.lane_step import LaneSettings, LaneStep, Loss
from vcl_radial.nn.lanes import Lanes
from vcl_radial.optimizers.schedules import Schedule, constant
from vcl_radial.training.kl_schedules import KLSchedule, kl_factor
from vcl_radial.training.lane_data import LaneBatches, LaneData
from vcl_radial.training.trainer import Trainer

FINAL_DRAWS = 50
"""Number of weight samples to set the noise at the end of a task, on all points."""

_CHUNK_STEPS, _CHUNK_ROWS = 64, 16_384
"""Maximum number of steps, and of their rows, whose random numbers are drawn at once."""


@dataclass(eq=False)
class LaneRun:
    """A run that trains as a lane. Its state is that of a `Trainer` between tasks.

    Attributes:
        method: the method, of a class that has a `lane_step`.
        seed: the seed of a task, by its number from 0; None continues the generator of the last
            task.
        learning_rate: learning rate of means and point estimates.
        rho_learning_rate: learning rate of the rhos; None for the same.
        epochs: passes over a task, by its number.
        schedule: factor of the learning rates as a function of the finished fraction of a task.
        prior_precision: prior precision of point estimates by name; others have no prior.
        done: number of finished tasks.
        fault: why the lane stopped early; None if it did not.
        left_out: whether the lane trains no more tasks.
    """

    method: Method
    seed: Callable[[int], int | None]
    learning_rate: float = 1e-3
    rho_learning_rate: float | None = None
    epochs: Callable[[int], int] = lambda task: 1
    schedule: Schedule = constant
    prior_precision: Mapping[str, Tensor] = field(default_factory=dict)
    done: int = 0
    fault: Diverged | None = None
    left_out: bool = False

    def __post_init__(self) -> None:
        # The steps are made by other code than the method's.
        self.method.gradients_are_read = True
        self.generator = torch.Generator()
        """Generator of batches and, on a CPU, of draws."""

    @property
    def settings(self) -> LaneSettings:
        """The settings of its steps; the task has begun."""
        rate, method = self.learning_rate, self.method
        factor = method.kl_weight / method.task.points
        return LaneSettings(rate, self.rho_learning_rate or rate, factor)

    @property
    def states(self) -> list[dict[str, Any]]:
        """The method's state after the last task, as of a `Trainer`."""
        return [self.method.state_dict()] if self.done else []

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers from which the run continues, as a lane or alone."""
        state = Trainer.state_between_tasks(self.states, self.done)
        if self.seed(self.done) is None:
            state["generator"] = self.generator.get_state()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state_dict` of a lane or of a trainer returned."""
        for carried in state["states"][-1:]:
            self.method.load_state_dict(copy.deepcopy(carried))
        self.done = state["done"]
        if "generator" in state:
            self.generator.set_state(state["generator"])


class LaneTrainer:
    """Train runs of one shape together, by Adam.

    Args:
        lanes: the runs. Their methods and networks differ in numbers only.
        batch_size: number of points in a step.
        drop_last: whether to leave out the last batch of an epoch if it is smaller.
        amsgrad: whether to use AMSGrad instead of Adam.
        steps: number of steps on each task, in place of epochs, for a Gaussian likelihood. The
            random numbers of many steps are then drawn ahead, and the compiled library makes the
            steps where it can.
        kl_schedule: factor of the KL in each step; see `vcl_radial.training.kl_schedules`.
        compiled: whether the library may make them; it knows no schedule of the KL.
        on_progress: called after every epoch, or after some steps, with the number of each lane
            that trained, the task (from 0), and the finished epochs or steps of the task.
    """

    step: LaneStep
    """The last task's step with its networks and its optimiser, for a Gaussian likelihood."""

    def __init__(
        self,
        lanes: Sequence[LaneRun],
        *,
        batch_size: int,
        drop_last: bool = False,
        amsgrad: bool = False,
        steps: int | None = None,
        kl_schedule: KLSchedule = "constant",
        compiled: bool = True,
        on_progress: Callable[[int, int, int], None] = lambda lane, task, done: None,
    ) -> None:
        self.lanes = list(lanes)
        self._batch_size, self._drop_last, self._amsgrad = batch_size, drop_last, amsgrad
        self._steps, self._on_progress = steps, on_progress
        self._kl_schedule = kl_schedule
        self._compiled = compiled and kl_schedule == "constant"
        self.trained: list[int] = []
        """The lanes of the last task by their numbers, in the order of its networks."""

    def steps(self, tasks: Sequence[LaneData]) -> Iterator[list[int]]:
        """Train on the remaining tasks; yield the numbers of lanes that finished another task.

        Their states can then be stored. A lane whose loss is not finite in an epoch stops; its
        `fault` says why.
        """
        while unfinished := self._unfinished(len(tasks)):
            task = min(self.lanes[k].done for k in unfinished)
            together = [k for k in unfinished if self.lanes[k].done == task]
            self._train(together, task, tasks[task])
            yield [k for k in together if self.lanes[k].fault is None]

    @property
    def noise(self) -> NoisePrecision:
        """The noise precision of the lanes of the last task, for a Gaussian likelihood."""
        likelihoods = [cast(Gaussian, self.lanes[k].method.likelihood) for k in self.trained]
        return NoisePrecision.stacked([likelihood.noise for likelihood in likelihoods])

    def _unfinished(self, tasks: int) -> list[int]:
        stopped = [lane.left_out or lane.fault is not None for lane in self.lanes]
        return [k for k, lane in enumerate(self.lanes) if not stopped[k] and lane.done < tasks]

    def _train(self, numbers: list[int], task: int, data: LaneData) -> None:
        """Train lanes, by their numbers, on a task (from 0)."""
        # Sort by epochs, descending, so that active lanes form a prefix.
        self.trained = sorted(numbers, key=lambda k: -self.lanes[k].epochs(task))
        lanes, data = [self.lanes[k] for k in self.trained], data.of_lanes(self.trained)
        for at, lane in enumerate(lanes):
            if (seed := lane.seed(task)) is not None:
                lane.generator.manual_seed(seed)
            lane.method.begin_task(self._task(lane, task, data, at))
        if self._steps is None:
            networks = self._train_epochs(lanes, data)
        else:
            networks = self._train_steps(lanes, data, self._steps)
        networks.write_back()
        for lane in lanes:
            lane.method.end_task(lane.method.task)
            lane.done += 1

    def _task(self, lane: LaneRun, number: int, data: LaneData, at: int) -> Task:
        """The task of a lane, which is at a position in the data."""
        points, own = int(data.points[at]), at if len(data.x) > 1 else 0
        batch = Batch(data.x[own, :points], data.y[own, :points], data.head)
        epochs = lane.epochs(number)
        return Task(
            number=number,
            points=points,
            batches=lambda: [batch],
            heads=[data.head],
            steps=self._steps or epochs * self._epoch_steps(points),
            epochs=epochs,
            batch_size=min(self._batch_size, points),
            schedule=lane.schedule,
        )

    def _epoch_steps(self, points: int) -> int:
        """The number of steps in an epoch of a lane."""
        size = min(self._batch_size, points)
        return points // size if self._drop_last else -(-points // size)

    def _scale_kl(self, step: LaneStep, lanes: Sequence[LaneRun], number: int) -> None:
        """Set the factors of the KL in a step of the task, by its number from 0."""
        if self._kl_schedule != "constant":
            tasks = [lane.method.task for lane in lanes]
            lengths = [(self._epoch_steps(task.points), task.steps) for task in tasks]
            step.scale_kl([kl_factor(self._kl_schedule, number, *length) for length in lengths])

    def _make_step(self, lanes: list[LaneRun], data: LaneData, loss: Loss) -> LaneStep:
        """The step of lanes whose task has begun."""
        method, (x, y) = lanes[0].method, data.table
        assert method.lane_step is not None
        generators = [lane.generator for lane in lanes]
        if x.device.type == "cuda":
            seeds = [generator.initial_seed() for generator in generators]
            generators = [torch.Generator(x.device).manual_seed(seed) for seed in seeds]
        return method.lane_step(
            Lanes([lane.method.network for lane in lanes], data.head),
            [lane.settings for lane in lanes],
            generators,
            x,
            y,
            samples=method.train_samples,
            loss=loss,
            amsgrad=self._amsgrad,
            prior_precision={
                name: torch.stack([lane.prior_precision[name] for lane in lanes])
                for name in lanes[0].prior_precision
            },
        )

    def _train_epochs(self, lanes: list[LaneRun], data: LaneData) -> Lanes:
        """Train epoch by epoch, on points that all lanes share; a step draws its random numbers."""
        likelihood = cast(Categorical, lanes[0].method.likelihood)

        def loss(outputs: Tensor, y: Tensor) -> Tensor:
            return likelihood.nll_per_point(outputs, y).mean(-1)

        step = Replayed(self._make_step(lanes, data, loss))
        size, points = self._batch_size, int(data.points[0])
        epochs = [lane.method.task.epochs for lane in lanes]
        end = points - points % size if self._drop_last else points
        for epoch in range(epochs[0]):
            active = lanes[: sum(count > epoch for count in epochs)]
            step.scale_rates([x.schedule(epoch / n) for x, n in zip(active, epochs, strict=False)])
            order = torch.stack([torch.randperm(points, generator=x.generator) for x in active])
            losses = torch.zeros(len(active))
            first = epoch * self._epoch_steps(points)
            batches = torch.split(order.to(step.device)[:, :end], size, dim=1)
            for number, rows in enumerate(batches, first):
                self._scale_kl(step.step, active, number)
                losses = step(rows)
            finite = torch.isfinite(losses).tolist()
            for k, is_finite, loss in zip(self.trained, finite, losses.tolist(), strict=False):
                lane = self.lanes[k]
                if not is_finite and lane.fault is None:
                    lane.fault = Diverged(
                        f"the loss became {loss} in epoch {epoch + 1} of task {lane.done + 1}; "
                        "try a smaller learning_rate"
                    )
                self._on_progress(k, lane.done, epoch + 1)
        return step.step.lanes

    def _train_steps(self, lanes: list[LaneRun], data: LaneData, steps: int) -> Lanes:
        """Train a number of steps, and set the noise to its optimum for the trained lanes.

        The loss of each lane is E tau / 2 mean (y - f)^2, without constants.
        """
        noise, generators = self.noise, [lane.generator for lane in lanes]

        def loss(outputs: Tensor, y: Tensor) -> Tensor:
            return noise.mean / 2 * (outputs.squeeze(-1) - y).square().mean(1)

        self.step = step = self._make_step(lanes, data, loss)
        compiled = CompiledLanes.if_supported(step, noise) if self._compiled else None
        batches = LaneBatches(data.points, self._batch_size, generators)
        chunk = max(1, min(_CHUNK_STEPS, _CHUNK_ROWS // batches.batch_size))
        for done in range(0, steps, chunk):
            # Draw a whole chunk at the end too, so that draws do not depend on the number of steps.
            rows = data.in_table(batches.take(chunk))
            drawn = step.lanes.noise(chunk * step.samples, batches.batch_size, generators)
            until = min(done + chunk, steps)
            shares = [lanes[0].schedule(k / steps) for k in range(done, until)]
            if compiled is not None:
                compiled.steps(rows, drawn, shares)
            else:
                for k, share in enumerate(shares):
                    step.scale_rates([share] * len(lanes))
                    self._scale_kl(step, lanes, done + k)
                    part = drawn.part(slice(k * step.samples, (k + 1) * step.samples))
                    noise.update(step(rows[k], part) * 2 / noise.mean, BATCH_STEP)
            for k in self.trained:
                self._on_progress(k, self.lanes[k].done, until)
        noise.update(expected_squared_error(step.lanes, data, generators))
        for k, lane in enumerate(lanes):
            state = {name: value[k] for name, value in noise.state_dict().items()}
            lane.method.likelihood.load_state_dict(state)
        return step.lanes


@torch.no_grad()
def expected_squared_error(
    lanes: Lanes, data: LaneData, generators: Sequence[torch.Generator]
) -> Tensor:
    """E_q mean_n (y_n - f(x_n; w))^2 of each lane over all its points, `[R]`."""
    total = torch.zeros(len(lanes))
    for outputs in lanes.functions(data.x, FINAL_DRAWS, generators):
        for f in outputs.squeeze(-1):
            total += data.mean_over_points((f - data.y).square())
    return total / FINAL_DRAWS
