"""The continual track: one run of a method over a task sequence, trained and scored.

For every task: train against the carried prior, consolidate, evaluate every task. All randomness
of task t comes from (seed, t) alone, so that a run that resumes from a checkpoint ends with the
same bytes as one that was never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from vcl_radial.data.streams import TensorStream
from vcl_radial.likelihoods import Likelihood
from vcl_radial.methods.tasks import Batch
from vcl_radial.optimizers.schedules import SCHEDULES
from vcl_radial.runs.training import Step
from vcl_radial.system.seeds import seed_of
from vcl_radial.tracks.continual.methods import method_of, optimizer_for
from vcl_radial.tracks.continual.networks import make_network, stream_for
from vcl_radial.tracks.continual.progress import TaskRun
from vcl_radial.tracks.continual.settings import Recipe, StreamSettings
from vcl_radial.tracks.continual.uncertainty import of_run
from vcl_radial.training.seeds import Purpose, drawing_from
from vcl_radial.training.source import TaskSource, TensorTask
from vcl_radial.training.trainer import Trainer

OnEpoch = Callable[[int, int, Mapping[str, float]], None]
"""A function of the task and epoch (from 1) that just ended, and means over its batches."""


class StreamTasks(TaskSource):
    """The tasks of a stream.

    Args:
        stream: the stream, on the device of the training.
        recipe: recipe with the size of batches.
    """

    def __init__(self, stream: TensorStream, recipe: Recipe) -> None:
        self.stream, self.recipe = stream, recipe

    def tasks(self) -> Sequence[TensorTask]:
        """The tasks; a task gathers its inputs on access."""
        return OnDemand(self.stream.n_tasks, lambda number: self._task([number]))

    def together(self) -> TensorTask:
        """All tasks as one task, in which each point has its head."""
        return self._task(range(self.stream.n_tasks))

    def _task(self, numbers: Sequence[int]) -> TensorTask:
        stream, recipe = self.stream, self.recipe
        rows = torch.cat([stream.rows(number, "train") for number in numbers])
        heads = [stream.task_label(number) for number in numbers]
        label: int | Tensor = heads[0]
        if len(set(heads)) > 1:
            counts = [len(stream.rows(number, "train")) for number in numbers]
            label = torch.tensor(heads).repeat_interleave(torch.tensor(counts)).to(rows.device)
        # The stream keeps the inputs of one task.
        x = stream.inputs(numbers[0], "train") if len(numbers) == 1 else stream.gather(rows)
        points = Batch(x, stream.gather_labels(rows), label)
        name = f"task {numbers[0] + 1}"
        return TensorTask(name, points, sorted(set(heads)), recipe.batch_size, recipe.drop_last)


class OnDemand(Sequence[Any]):
    """A sequence whose items are made on access."""

    def __init__(self, count: int, make: Callable[[int], Any]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: Any) -> Any:
        return self._make(number)


class ContinualRun(TaskRun):
    """A run in progress.

    Args:
        stream: the task sequence, or its settings.
        recipe: the method.
        seed: seed of the initial weights, the batches and the weight samples.
        learnt: number of tasks that were learnt before the run, and need no training data.
        grown: see `make_network`.
        evaluate_on: "test" or "validation".
        data_dir: folder of the data; see `vcl_radial.data.streams`.
        device: the device of network and data.
        on_epoch: called after every epoch.
        watched: whether `on_epoch` gets `nll` (nats per point) and `accuracy` (per cent).
    """

    def __init__(
        self,
        stream: StreamSettings | TensorStream,
        recipe: Recipe,
        seed: int,
        *,
        learnt: int = 0,
        grown: Sequence[int] = (),
        evaluate_on: Any = "test",
        data_dir: Path | None = None,
        device: str = "cpu",
        on_epoch: OnEpoch = lambda task, epoch, scalars: None,
        watched: bool = False,
    ) -> None:
        # A network trained to a loss near 0 meets denormal numbers, and they are slow.
        torch.set_flush_denormal(True)
        self.seed, self.recipe, self.evaluate_on = seed, recipe, evaluate_on
        settings = stream
        if isinstance(stream, StreamSettings):
            stream = stream_for(stream, recipe, data_dir, seed)
        recipe.check_batches(min(map(len, stream.train[learnt:])))
        self.stream = stream.to(device)
        self.source = StreamTasks(self.stream, recipe)
        with drawing_from(task_seed(seed, 0), torch.device("cpu")):
            network = make_network(stream, recipe, grown).to(device)
            trainer = self._trainer(network, on_epoch, watched=watched)
        uncertainty = None
        if isinstance(settings, StreamSettings):
            uncertainty = of_run(settings, self.stream, evaluate_on, data_dir)
        super().__init__(self.stream, recipe, trainer, evaluate_on, uncertainty)

    def _trainer(self, network: Any, on_epoch: OnEpoch, *, watched: bool) -> Any:
        recipe = self.recipe
        method = method_of(recipe, network)
        means = EpochMeans(method.likelihood) if watched else None
        return Trainer(
            method,
            optimizer=optimizer_for(recipe),
            epochs=lambda number: recipe.epochs_of(number + 1),
            schedule=SCHEDULES[recipe.schedule],
            kl_schedule=recipe.kl_schedule,
            seed=self._seed_of,
            on_step=self._count,
            on_epoch=lambda epoch: on_epoch(
                epoch.task + 1, epoch.epoch, {} if means is None else means.take()
            ),
            measure=False,
            on_outputs=None if means is None else means.add,
        )

    def _count(self) -> None:
        self.iterations += 1

    def finish_tasks(self) -> Iterator[int]:
        """Train and score the remaining tasks; yield the number of tasks done after each step."""
        if not self.rows:
            self.evaluate()
        started = time.perf_counter()
        for _ in self.trainer.steps(self.source):
            self.end_task(time.perf_counter() - started)
            yield self.tasks_done
            started = time.perf_counter()

    def steps(self) -> Iterator[Step]:
        """Train and score task by task."""
        for _ in self.finish_tasks():
            yield self.after_task()

    def _seed_of(self, purpose: Purpose, number: int, epoch: int) -> int | None:
        """One seed for each task."""
        if purpose != "task":
            return None
        return task_seed(self.seed, self.tasks if self.trainings == 1 else number + 1)


class EpochMeans:
    """Means over the training batches of an epoch, which can be compared between methods.

    Args:
        likelihood: likelihood of the outputs.
    """

    def __init__(self, likelihood: Likelihood) -> None:
        self._likelihood = likelihood
        self.points, self.nll, self.correct = 0, 0.0, 0

    def add(self, outputs: Tensor, targets: Tensor) -> None:
        """Count a batch; shapes as in `Likelihood.nll`."""
        likelihood = self._likelihood
        several = outputs.dim() > 2
        output = likelihood.mean_output(outputs) if several else likelihood.logits(outputs)
        self.points += len(targets)
        self.nll += float(cross_entropy(output, targets, reduction="sum"))
        self.correct += int((output.argmax(-1) == targets).sum())

    def take(self) -> dict[str, float]:
        """Return NLL in nats per point and accuracy in per cent, and reset."""
        means = {"nll": self.nll / self.points, "accuracy": 100 * self.correct / self.points}
        self.points, self.nll, self.correct = 0, 0.0, 0
        return means


def task_seed(seed: int, task: int) -> int:
    """The seed of all randomness of a task; task 0 is before the first."""
    return seed_of(seed, task)
