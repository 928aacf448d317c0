"""The training of a method on one task after another.

    trainer = Trainer(method, learning_rate=3e-3, epochs=10)
    trainer.fit(tasks)                      # or: for epoch in trainer.steps(tasks): ...

Only the trainer sets training and evaluation mode, the state of the random generators, and the
optimiser.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any, Literal

from torch import Tensor

from vcl_radial.config import ranges
from vcl_radial.config.ranges import Count, CountOrZero, Positive
from vcl_radial.errors import Diverged, UserError, bad_value
from vcl_radial.methods.base import MakeOptimizer, Method
from vcl_radial.methods.tasks import Batch, Task, columns
from vcl_radial.optimizers.named import Name, optimizer_maker
from vcl_radial.optimizers.schedules import SCHEDULES, Schedule
from vcl_radial.runs.peers import ALONE, Peers
from vcl_radial.training.arguments import check_arguments, check_kl_schedule
from vcl_radial.training.kl_schedules import KLSchedule, kl_factor
from vcl_radial.training.loop import TaskLoop, warm_up
from vcl_radial.training.losses import NO_EPOCH, Epoch, Losses
from vcl_radial.training.seeds import Purpose, SeedOf, drawing_from, seeds
from vcl_radial.training.source import TaskData, Tasks, TaskSource


class Trainer:
    """Train a method on one task after another; each posterior is the next task's prior.

    The training state can be stored after every task, and, if the parts of a task have seeds, after
    every epoch: `load_state_dict` of another trainer over the same method and tasks continues with
    the same numbers.

    Args:
        method: the method.
        optimizer: "adam", "amsgrad" or "sgd", or a function from a network to an optimiser, such as
            `lambda network: AdamW(network.parameters(), lr=1e-3)`.
        learning_rate: its learning rate, if it is a name.
        epochs: passes over each task, or a function of the task's number (from 0).
        steps: number of steps on each task, in place of `epochs`.
        batch_size: number of points in a step, for tasks that are tensors or datasets.
        schedule: factor of the learning rates, by its name or as a function of the finished
            fraction of a task.
        rates_by: whether the schedule sets the rates for every "step" or for every "epoch".
        kl_schedule: factor of the method's `kl_weight` in each step, by its name in
            `vcl_radial.training.kl_schedules`.
        clip: largest norm of a step's gradient; None for no limit.
        seed: seed of batches and weight samples, or a `SeedOf`; None draws from PyTorch's global
            generator.
        select: the epoch of each task whose weights are kept: the "last", or the "best" by
            validation.
        patience: epochs without a better validation score after which a task ends; None for never.
        measure: whether to measure loss, NLL and penalty of each epoch, for `history`.
        inside: makes a context for each pass over the data, such as
            `lambda: torch.autocast("cuda")`.
        fit_options: options of `Method.fit_likelihood` by the number of the task.
        on_step: called after every step.
        on_epoch: called after every epoch, before its task may end.
        on_outputs: called after every step with outputs and targets, in place of `measure`; see
            `Method.on_outputs`.
        keep_states: whether to keep the method's state after every task, not only after the last.
        upkeep: whether to check the penalty and the network; see `TaskLoop`.
        peers: processes that share every batch. They draw different weights, and average gradients.

    Raises:
        UserError: an argument is outside its range, or no method.
    """

    @ranges.checked
    def __init__(
        self,
        method: Method,
        *,
        optimizer: Name | MakeOptimizer = "adam",
        learning_rate: Positive = 1e-3,
        epochs: Count | Callable[[int], int] = 1,
        steps: Count | None = None,
        batch_size: Count = 32,
        schedule: Literal["constant", "cosine", "one-cycle"] | Schedule = "constant",
        rates_by: Literal["epoch", "step"] = "epoch",
        kl_schedule: KLSchedule = "constant",
        clip: Positive | None = None,
        seed: CountOrZero | SeedOf | None = 0,
        select: Literal["last", "best"] = "last",
        patience: Count | None = None,
        measure: bool = True,
        inside: Callable[[], AbstractContextManager[Any]] = nullcontext,
        fit_options: Callable[[int], dict[str, Any]] = lambda task: {},
        on_step: Callable[[], object] | None = None,
        on_epoch: Callable[[Epoch], object] = lambda epoch: None,
        on_outputs: Callable[[Tensor, Tensor], None] | None = None,
        keep_states: bool = False,
        upkeep: bool = True,
        peers: Peers = ALONE,
    ) -> None:
        check_arguments(method, optimizer, inside)
        check_kl_schedule(kl_schedule, type(method))
        self._make = optimizer_maker(optimizer, learning_rate)
        self._schedule = SCHEDULES[schedule] if isinstance(schedule, str) else schedule
        self._seed_of = seed if seed is None or callable(seed) else seeds(seed)
        self.method, self.epochs, self.batch_size = method, epochs, batch_size
        self._steps = steps
        self.select, self.patience, self.peers = select, patience, peers
        self._rates_by, self._clip, self._upkeep = rates_by, clip, upkeep
        self._kl_schedule = kl_schedule
        self._inside, self._fit_options = inside, fit_options
        self._losses = Losses(method) if measure else None
        self._on_outputs = on_outputs if self._losses is None else self._losses.add
        self.on_step, self._on_epoch, self._keep_states = on_step, on_epoch, keep_states
        self._states: list[dict[str, Any]] = []
        self.history: list[Epoch] = []
        """The epochs of all tasks so far, if they are measured or validated."""
        self.done = 0
        """Number of finished tasks."""
        self._data: TaskData | None = None
        self.loop: TaskLoop | None = None
        """The task in training; None between tasks."""
        self.epoch = 0
        """Number of finished epochs of the current task."""
        self.best_epoch, self.best_score = 0, -math.inf
        """The best epoch of the current task (0 for none), and its validation score."""
        self.best: dict[str, Any] | None = None
        """The state after the best epoch, if `select` is "best"."""
        self._last = NO_EPOCH
        self._stored: dict[str, Any] | None = None
        peers.average_gradients(method.network.parameters())
        # Hooks read `.grad`.
        method.gradients_are_read |= peers.world > 1 or clip is not None

    def fit(self, source: TaskSource | Iterable[Any]) -> Trainer:
        """Train on all remaining tasks, as `steps` does; returns the trainer."""
        for _ in self.steps(source):
            pass
        return self

    def steps(self, source: TaskSource | Iterable[Any]) -> Iterator[Epoch]:
        """Train on the remaining tasks; yield whenever the state can be stored.

        A later call continues where this one was left. After an interrupt within an epoch, it
        repeats the epoch on the current weights.

        Args:
            source: a stream of `vcl_radial.benchmark`, or a list of tasks; a task is a task of a
                stream, a pair of inputs and targets, a `torch.utils.data.Dataset` or a
                `DataLoader`. In a network with a head for each task, task t (from 0) has head t;
                `vcl_radial.training.source.Tasks` gives others. A `TaskSource` of your own also
                validates.

        Yields:
            The last epoch: after every epoch, or after every task if a task has one seed.

        Raises:
            Diverged: the loss stopped being a finite number.
            DataError, UserError: see `Tasks` and `Method.learn`; or `select` or `patience` need
                validation, and the source has none.
        """
        if not isinstance(source, TaskSource):
            source = Tasks(source, batch_size=self.batch_size, a_head_each=self.method.with_task)
        if not source.has_validation and (self.select == "best" or self.patience is not None):
            raise UserError(
                'select = "best" and patience need validation: give a TaskSource whose '
                "has_validation is True, or leave them out"
            )
        at_once = self.method.needs_whole_stream
        tasks = [source.together()] if at_once else source.tasks()
        while self.done < len(tasks):
            data = tasks[self.done]
            epochs = self._task(data, source)
            with self._random("task") as one_seed:
                if one_seed:  # only the state at the end of the task can be stored
                    *_, last = epochs
                    epochs = iter([last])
            yield from epochs

    def end_task(self) -> None:
        """End the current task with the selected epoch, even before its last epoch."""
        if self.loop is None:
            return
        if self.best is not None:
            self.loop.load_state_dict(self.best)
        with self._random("end"):
            self.loop.end(**self._fit_options(self.done))
        if not self._one_seed:
            state = copy.deepcopy(self.method.state_dict())
            self._states = [*(self._states if self._keep_states else []), state]
        self.loop, self._data, self.best = None, None, None
        self.done += 1

    @property
    def states(self) -> list[dict[str, Any]]:
        """The method's state after the last task, or after every task."""
        if self._one_seed:  # no later task has changed it yet
            return [self.method.state_dict()] if self.done else []
        return self._states

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers from which the training continues."""
        state = self.state_between_tasks(self.states, self.done) | {
            "history": [tuple(epoch) for epoch in self.history],
            "processes": self.peers.world,
        }
        if self.loop is not None:
            state["loop"] = self.loop.state_dict() | {
                "epoch": self.epoch,
                "best_epoch": self.best_epoch,
                "best_score": self.best_score,
                "best": self.best,
            }
        return state

    @staticmethod
    def state_between_tasks(states: Sequence[dict[str, Any]], done: int) -> dict[str, Any]:
        """The state of a trainer that has finished `done` tasks, with states of its method."""
        return {"states": [*states], "done": done, "history": [], "loop": None, "processes": 1}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state_dict` returned.

        Raises:
            UserError: a different number of processes wrote the state, or it belongs to another
                method, or to no trainer.
        """
        if not isinstance(state, dict) or "processes" not in state:
            raise UserError("this is no state of a trainer: give what its state_dict() returned")
        if state["processes"] != self.peers.world:
            raise UserError(
                f"{state['processes']} processes wrote the checkpoint; resume with as many, or "
                "delete it"
            )
        self._states, self.done = list(state["states"]), state["done"]
        self.history = [Epoch(*epoch) for epoch in state["history"]]
        if self._states:
            # Copied, because a method may train in place.
            self.method.load_state_dict(copy.deepcopy(self._states[-1]))
        self._stored = copy.deepcopy(state["loop"])
        self.loop, self._data, self.best = None, None, None

    def __getstate__(self) -> dict[str, Any]:
        """The attributes of a copy.

        Raises:
            UserError: a task is in training, whose optimiser and data cannot be copied.
        """
        if self.loop is not None:
            raise UserError(
                "a trainer within a task cannot be copied: load its state_dict() into a new one"
            )
        return vars(self)

    @property
    def _one_seed(self) -> bool:
        """Whether a task has one seed, so that only its end can be stored."""
        return self._seed_of is not None and self._seed_of("task", self.done, 0) is not None

    def _task(self, data: TaskData, source: TaskSource) -> Iterator[Epoch]:
        """Train on a task."""
        started = time.perf_counter()
        if self._data is None:
            resumed = self._stored is not None
            data = self._begin(data)
            if not resumed:
                self._warm_up(data)
            self._data = data
        else:  # an earlier call was left within the task
            data = self._data
        while self.loop is not None:
            # An interrupt while a task ended leaves it after its last epoch.
            if not self._is_last(data):
                self._pass(data, self.epoch, self.epoch, self._epochs(data))
                self.epoch += 1
                self._last = self._measured(data, source, started)
                if self._losses is not None or source.has_validation:
                    self.history.append(self._last)
                self._on_epoch(self._last)
            # In the same step, because a method may use its last gradients.
            if self._is_last(data):
                self.end_task()
            yield self._last
            started = time.perf_counter()

    def _warm_up(self, data: TaskData) -> None:
        """Train for the method's warm-up epochs, if it has any."""
        assert self.loop is not None
        # Numbers after the task's epochs give a warm-up other batches and draws.
        first = self._epochs(data)
        warm_up(
            self.method,
            self.loop.start,
            lambda number, count: self._pass(data, first + number, number, count, warm_up=True),
        )

    def _begin(self, data: TaskData) -> TaskData:
        """Begin a task, or continue with it; returns the points that the method trains on."""
        with self._random("begin"):
            rows = self.method.select(lambda: Batch(*columns(data.batches(), self.method.device)))
            data = data if rows is None else data.select(rows.cpu())
            task = Task(
                number=self.done,
                points=len(data),
                batches=data.batches,
                heads=data.heads,
                steps=self._steps or self._epochs(data) * data.epoch_steps,
                epochs=self._epochs(data),
                batch_size=data.batch_size,
                schedule=self._schedule,
            )
            self.loop = TaskLoop(
                self.method, task, self._make, clip=self._clip, upkeep=self._upkeep
            )
        stored, self._stored = self._stored, None
        if stored is None:
            self.epoch, self.best_epoch, self.best_score, self.best = 0, 0, -math.inf, None
        else:
            self.loop.load_state_dict(stored)
            self.epoch, self.best_epoch = stored["epoch"], stored["best_epoch"]
            self.best_score, self.best = stored["best_score"], stored["best"]
        self._last = NO_EPOCH._replace(task=self.done, epoch=self.epoch)
        return data

    def _epochs(self, data: TaskData) -> int:
        """The number of epochs of a task."""
        if self._steps is None:
            epochs = self.epochs(self.done) if callable(self.epochs) else self.epochs
            if epochs < 1:
                raise bad_value("epochs", epochs, f"of {data.name} must be at least 1")
            return epochs
        return math.ceil(self._steps / data.epoch_steps)

    def _pass(
        self, data: TaskData, number: int, begun: int, count: int, *, warm_up: bool = False
    ) -> None:
        """Make a step on each batch of an epoch.

        Args:
            data: the task.
            number: number of the epoch, which seeds its order and draws.
            begun: number of earlier epochs that the schedule counts.
            count: number of epochs that the schedule counts.
            warm_up: whether it is a warm-up epoch.
        """
        loop, steps, method = self.loop, data.epoch_steps, self.method
        assert loop is not None
        begin, end, done = begun / count, (begun + 1) / count, begun * steps
        total = None if warm_up else self._steps
        if self._rates_by == "epoch":
            progress: float | Callable[[int], float] = begin
        elif total is None:
            progress = lambda step: begin + (end - begin) * step / steps  # noqa: E731
        else:
            progress = lambda step: (done + step) / total  # noqa: E731
        kl: Callable[[int], float] | None = None
        if self._kl_schedule != "constant" and not warm_up:
            kl = lambda step: kl_factor(  # noqa: E731
                self._kl_schedule, done + step, steps, total or count * steps
            )
        if not self._one_seed:
            method.forget_caches()
        method.on_outputs = None if warm_up else self._on_outputs
        with self._random("epoch", number), self._inside():
            batches = islice(data.epoch(number), None if total is None else total - done)
            loop.learn(self._observed(batches), progress, kl)
        method.on_outputs = None

    def _observed(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches on the method's device; calls `on_step` after each step."""
        device = self.method.device
        for batch in batches:
            yield batch.to(device)
            if self.on_step is not None:
                self.on_step()

    def _measured(self, data: TaskData, source: TaskSource, started: float) -> Epoch:
        """The numbers of the epoch that has ended, which may be the best one.

        Raises:
            DataError, Diverged: its loss is not finite.
        """
        loop, method, peers = self.loop, self.method, self.peers
        assert loop is not None
        loop.check_loss(f"in epoch {self.epoch} of {data.name}", data.name)
        losses = math.nan, math.nan, math.nan
        if self._losses is not None:
            losses = self._losses.take(loop.task.points, peers)
            if not math.isfinite(losses[0]):
                raise Diverged(
                    f"the loss became {losses[0]} in epoch {self.epoch} of {data.name}; lower "
                    "learning_rate"
                )
        score = math.nan
        if source.has_validation:
            score = peers.from_first(lambda: source.validate(method, self.done), method.device)
        if score > self.best_score:
            self.best_epoch, self.best_score = self.epoch, score
            if self.select == "best":
                # The state includes the optimiser, because a method may carry its moments.
                self.best = copy.deepcopy(loop.state_dict())
        seconds = time.perf_counter() - started
        return Epoch(self.done, self.epoch, *losses, score, seconds)

    def _is_last(self, data: TaskData) -> bool:
        """Whether the task ends after the current epoch."""
        waited = self.epoch - self.best_epoch if self.best_epoch else 0
        return self.epoch >= self._epochs(data) or waited >= (self.patience or math.inf)

    def _random(self, purpose: Purpose, epoch: int = 0) -> AbstractContextManager[bool]:
        """Draw from the seed of a purpose inside; yields whether it has a seed."""
        seed = None if self._seed_of is None else self._seed_of(purpose, self.done, epoch)
        return drawing_from(seed, self.method.device)
