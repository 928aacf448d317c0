"""The training of a method on one task after another.

    trainer = Trainer(method, learning_rate=3e-3, epochs=10)
    trainer.fit(tasks)                      # or: for epoch in trainer.steps(tasks): ...

The trainer alone sets training and evaluation mode, the state of the random generators, and the
optimiser.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from vcl_radial.errors import Diverged, UserError
from vcl_radial.likelihoods.objectives import per_point
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import MakeOptimizer, Method
from vcl_radial.methods.tasks import Batch, Task, columns
from vcl_radial.optimizers.schedules import SCHEDULES, Schedule
from vcl_radial.runs.peers import ALONE, Peers
from vcl_radial.system.seeds import seed_of
from vcl_radial.training.loop import TaskLoop, warm_up
from vcl_radial.training.source import TaskData, Tasks, TaskSource

Purpose = Literal["task", "begin", "epoch", "end"]

SeedOf = Callable[[Purpose, int, int], int | None]
"""The seed of a purpose, of a task (from 0) and an epoch (from 0); None draws from the generator as
it is. "task" is for a whole task, the others are for its parts."""


class Epoch(NamedTuple):
    """A finished epoch, and what was measured in it.

    Attributes:
        task: number of the task, from 0.
        epoch: number of the epoch, from 1.
        loss: mean loss, with the penalty at the epoch's end; nats per point.
        nll: mean NLL, nats per point.
        penalty: the method's penalty at the epoch's end, in nats.
        validation: score on held-out points; NaN without them.
        seconds: seconds of training and validation.
    """

    task: int
    epoch: int
    loss: float
    nll: float
    penalty: float
    validation: float
    seconds: float


def _seeds(seed: int) -> SeedOf:
    """Seeds of every part of every task, from one seed."""
    purposes = ("begin", "epoch", "end")

    def seed_for(purpose: Purpose, task: int, epoch: int) -> int | None:
        if purpose == "task":
            return None
        return seed_of(seed, task, purposes.index(purpose), epoch)

    return seed_for


def _optimizer(name: str, learning_rate: float) -> MakeOptimizer:
    """A function that makes an optimiser by its name: "adam", "amsgrad" or "sgd"."""

    def make(network: nn.Module) -> Optimizer:
        if name == "sgd":
            return SGD(network.parameters(), lr=learning_rate)
        return Adam(network.parameters(), lr=learning_rate, amsgrad=name == "amsgrad")

    if name not in ("adam", "amsgrad", "sgd"):
        raise UserError(
            f"optimizer = {name!r}: choose from 'adam', 'amsgrad' and 'sgd', or give a function of "
            "the network"
        )
    return make


class Trainer:
    """Train a method on one task after another; each posterior is the next task's prior.

    Training can be stored after every task, and with seeds for its parts after every epoch:
    `load_state_dict` of another trainer over the same method and tasks continues with the same
    numbers.

    Args:
        method: the method.
        optimizer: "adam", "amsgrad" or "sgd", or a function that makes an optimiser over the
            parameters of a network.
        learning_rate: its learning rate, if it is a name.
        epochs: passes over each task.
        steps: number of steps on each task, in place of `epochs`.
        batch_size: number of points in a step, for tasks that are tensors or datasets.
        schedule: factor of the learning rates, by its name or as a function of the finished
            fraction of a task.
        rates_by: whether the schedule sets the rates of each "step" or of each "epoch".
        clip: largest norm of a step's gradient; None for no limit.
        seed: seed of batches and weight samples, or a `SeedOf`; None draws from PyTorch's global
            generator.
        select: the epoch of each task whose weights are kept: the "last", or the "best" by
            validation.
        patience: epochs without a better validation score after which a task ends; None for never.
        measure: whether to measure loss, NLL and penalty of each epoch.
        inside: makes a context for each pass over the data, such as `torch.autocast`.
        fit_options: options of `Method.fit_likelihood` by the number of the task.
        on_step: called after every step.
        on_epoch: called after every epoch, before its task may end.
        keep_states: whether to keep the method's state after every task, not only after the last.
        upkeep: whether to check the penalty; see `PenaltyUpkeep`.
        peers: processes that share every batch. Each draws its own weights; gradients are averaged.

    Raises:
        UserError: a name is unknown.
    """

    def __init__(
        self,
        method: Method,
        *,
        optimizer: str | MakeOptimizer = "adam",
        learning_rate: float = 1e-3,
        epochs: int = 1,
        steps: int | None = None,
        batch_size: int = 32,
        schedule: str | Schedule = "constant",
        rates_by: Literal["epoch", "step"] = "epoch",
        clip: float | None = None,
        seed: int | SeedOf | None = 0,
        select: Literal["last", "best"] = "last",
        patience: int | None = None,
        measure: bool = False,
        inside: Callable[[], AbstractContextManager[Any]] = nullcontext,
        fit_options: Callable[[int], dict[str, Any]] = lambda task: {},
        on_step: Callable[[], object] | None = None,
        on_epoch: Callable[[Epoch], object] = lambda epoch: None,
        keep_states: bool = False,
        upkeep: bool = True,
        peers: Peers = ALONE,
    ) -> None:
        if isinstance(optimizer, str):
            optimizer = _optimizer(optimizer, learning_rate)
        self._make = optimizer
        if isinstance(schedule, str) and schedule not in SCHEDULES:
            raise UserError(f"schedule = {schedule!r}: choose from {', '.join(SCHEDULES)}")
        self._schedule = SCHEDULES[schedule] if isinstance(schedule, str) else schedule
        self._seed_of = _seeds(seed) if isinstance(seed, int) else seed
        self.method, self.epochs, self.batch_size = method, epochs, batch_size
        self._steps = steps
        self.select, self.patience, self.peers = select, patience, peers
        self._rates_by, self._clip, self._upkeep = rates_by, clip, upkeep
        self._measure, self._inside, self._fit_options = measure, inside, fit_options
        self.on_step, self._on_epoch, self._keep_states = on_step, on_epoch, keep_states
        self.states: list[dict[str, Any]] = []
        """The method's state after the last task, or after every task."""
        self.history: list[Epoch] = []
        """The epochs of all tasks so far."""
        self.done = 0
        """Number of finished tasks."""
        self.loop: TaskLoop | None = None
        """The task in training; None between tasks."""
        self.epoch = 0
        """Number of finished epochs of the current task."""
        self.best_epoch, self.best_score = 0, -math.inf
        """The best epoch of the current task (0 for none), and its validation score."""
        self.best: dict[str, Any] | None = None
        """The state of that epoch, if it is selected."""
        self._stored: dict[str, Any] | None = None
        peers.average_gradients(method.network.parameters())
        # Hooks read `.grad`.
        method.gradients_are_read |= peers.world > 1 or clip is not None

    def fit(self, source: TaskSource | Iterable[Any]) -> Trainer:
        """Train on all remaining tasks; see `steps`."""
        for _ in self.steps(source):
            pass
        return self

    def steps(self, source: TaskSource | Iterable[Any]) -> Iterator[Epoch]:
        """Train on the remaining tasks; yield whenever the state can be stored.

        Args:
            source: the tasks, see `Tasks`.

        Yields:
            The last epoch: after every epoch, or after every task if a task has one seed.

        Raises:
            Diverged: the loss stopped being a finite number.
            DataError, UserError: see `Tasks` and `Method.learn`.
        """
        if not isinstance(source, TaskSource):
            source = Tasks(source, batch_size=self.batch_size)
        at_once = self.method.needs_whole_stream
        tasks = [source.together()] if at_once else source.tasks()
        while self.done < len(tasks):
            data = tasks[self.done]
            epochs = self._task(data, source)
            with self._random("task") as one_seed:
                if one_seed:  # only the task's end can be stored
                    *_, last = epochs
                    epochs = iter([last])
            yield from epochs

    def end_task(self) -> None:
        """End the task in training with the selected epoch, also before its last epoch."""
        if self.loop is None:
            return
        if self.best is not None:
            self.loop.load_state_dict(self.best)
        with self._random("end"):
            self.loop.end(**self._fit_options(self.done))
        state = copy.deepcopy(self.method.state_dict())
        self.states = [*(self.states if self._keep_states else []), state]
        self.loop, self.best = None, None
        self.done += 1

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers from which the training continues."""
        loop = None if self.loop is None else self.loop.state_dict() | self._of_task()
        return {
            "states": self.states,
            "done": self.done,
            "history": [tuple(epoch) for epoch in self.history],
            "loop": loop,
            "processes": self.peers.world,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned.

        Raises:
            UserError: another number of processes wrote the state, or it is of another method.
        """
        if state["processes"] != self.peers.world:
            raise UserError(
                f"{state['processes']} processes wrote the checkpoint; resume with as many, or "
                "delete it"
            )
        self.states, self.done = list(state["states"]), state["done"]
        self.history = [Epoch(*epoch) for epoch in state["history"]]
        if self.states:
            # Copied, because a method may train in place.
            self.method.load_state_dict(copy.deepcopy(self.states[-1]))
        self._stored = copy.deepcopy(state["loop"])

    def _of_task(self) -> dict[str, Any]:
        """The numbers of the task in training."""
        return {
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "best_score": self.best_score,
            "best": self.best,
        }

    def _task(self, data: TaskData, source: TaskSource) -> Iterator[Epoch]:
        """Train on a task."""
        resumed = self._stored is not None
        data = self._begin(data)
        assert self.loop is not None
        started = time.perf_counter()
        if not resumed:
            # Numbers after the task's epochs give a warm-up other batches and draws.
            first = self._epochs(data)
            warm_up(
                self.method,
                self.loop.start,
                lambda number, count: self._pass(data, first + number, number, count, warm_up=True),
            )
        while self.loop is not None:
            self._pass(data, self.epoch, self.epoch, self._epochs(data))
            self.epoch += 1
            epoch = self._measured(data, source, started)
            self.history.append(epoch)
            self._on_epoch(epoch)
            # In the same step, because a method may use its last gradients.
            if self._is_last(data):
                self.end_task()
            yield epoch
            started = time.perf_counter()

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
        return data

    def _epochs(self, data: TaskData) -> int:
        """The number of epochs of a task."""
        if self._steps is None:
            return self.epochs
        return math.ceil(self._steps / data.epoch_steps)

    def _pass(
        self, data: TaskData, number: int, begun: int, count: int, *, warm_up: bool = False
    ) -> None:
        """Make a step on each batch of an epoch.

        Args:
            data: the task.
            number: number of the epoch, which seeds its order and draws.
            begun: number of the epochs before it that the schedule counts.
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
        if self._seed_of is None or self._seed_of("task", self.done, 0) is None:
            method.forget_caches()
        self._sums = torch.zeros(3, dtype=torch.float64, device=method.device)
        method.on_outputs = self._add_nlls if self._measure else None
        with self._random("epoch", number), self._inside():
            batches = islice(data.epoch(number), None if total is None else total - done)
            loop.learn(self._observed(batches), progress)
        method.on_outputs = None

    def _observed(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches on the method's device; calls `on_step` after each step."""
        device = self.method.device
        for batch in batches:
            yield batch.to(device)
            if self.on_step is not None:
                self.on_step()

    @torch.no_grad()
    def _add_nlls(self, outputs: Tensor, targets: Tensor) -> None:
        """Add a step's NLL in the method's objective, and the mean NLL over all outputs."""
        method, one = self.method, torch.ones((), device=outputs.device)
        nlls = method.nll(outputs, targets), method.likelihood.nll(outputs, targets)
        self._sums += torch.stack([*nlls, one])

    def _measured(self, data: TaskData, source: TaskSource, started: float) -> Epoch:
        """The numbers of the epoch that has ended, which may be the best one.

        Raises:
            DataError, Diverged: its loss is not finite.
        """
        loop, method, peers = self.loop, self.method, self.peers
        assert loop is not None
        loop.check_loss(f"in epoch {self.epoch} of {data.name}", data.name)
        loss = nll = penalty = math.nan
        if self._measure:
            loss, nll = (peers.mean(self._sums[:2]) / self._sums[2]).tolist()
            penalty = self._penalty()
            if method.kl_weight:
                loss += float(per_point(torch.tensor(penalty), loop.task.points, method.kl_weight))
            if not math.isfinite(loss):
                raise Diverged(
                    f"the loss became {loss} in epoch {self.epoch} of {data.name}; lower "
                    "learning_rate"
                )
        score = math.nan
        if source.has_validation:
            score = peers.from_first(lambda: source.validate(method, self.done), method.device)
        if score > self.best_score:
            self.best_epoch, self.best_score = self.epoch, score
            if self.select == "best":
                # The optimiser too, because a method may carry its moments.
                self.best = copy.deepcopy(loop.state_dict())
        seconds = time.perf_counter() - started
        return Epoch(self.done, self.epoch, loss, nll, penalty, score, seconds)

    @torch.no_grad()
    def _penalty(self) -> float:
        """The method's penalty, in nats."""
        method = self.method
        loss_value, method.loss_value = method.loss_value, True
        penalty = method.penalty()
        method.loss_value = loss_value
        return float(penalty)

    def _is_last(self, data: TaskData) -> bool:
        """Whether the task ends after the current epoch."""
        waited = self.epoch - self.best_epoch if self.best_epoch else 0
        return self.epoch >= self._epochs(data) or waited >= (self.patience or math.inf)

    @contextmanager
    def _random(self, purpose: Purpose, epoch: int = 0) -> Iterator[bool]:
        """Draw from the seed of a purpose inside; yields whether it has a seed."""
        seed = None if self._seed_of is None else self._seed_of(purpose, self.done, epoch)
        if seed is None:
            yield False
            return
        with seeded_rng(seed, self.method.device):
            yield True
