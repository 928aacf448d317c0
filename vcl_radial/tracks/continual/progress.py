"""Progress, checkpoint and results of a run on a task sequence, trained alone or as a lane."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from vcl_radial.data.streams.tensors import Split, TensorStream
from vcl_radial.methods.base import Method
from vcl_radial.methods.carried import carried_bytes, contents
from vcl_radial.metrics import summary
from vcl_radial.metrics.continual import TIDY_COLUMNS
from vcl_radial.nn.movement import LayerMovement, layer_starts
from vcl_radial.runs.training import Step
from vcl_radial.tracks.continual.evaluation import Row, evaluate
from vcl_radial.tracks.continual.settings import Recipe
from vcl_radial.tracks.continual.uncertainty import UncertaintyScores


class TaskRun:
    """A run in progress; see `vcl_radial.runs.training.Training`. A step is a task.

    Args:
        stream: the task sequence.
        recipe: the method.
        trainer: its trainer, or its lane of a trainer of many runs, before the first task.
        evaluate_on: part of the data that is scored.
        uncertainty: more scores, of what the network knows of its errors; None for none.
    """

    iterations = 0
    """Number of training steps so far; lanes do not count them."""

    def __init__(
        self,
        stream: TensorStream,
        recipe: Recipe,
        trainer: Any,
        evaluate_on: Split,
        uncertainty: UncertaintyScores | None = None,
    ) -> None:
        self.stream, self.recipe, self.trainer = stream, recipe, trainer
        self.evaluate_on, self.uncertainty = evaluate_on, uncertainty
        self.method: Method = trainer.method
        self.starts = layer_starts(self.method.network)
        """The initial noise of each layer; empty without a posterior."""
        self._start = contents(self.method.network.state_dict())
        self.rows: list[Row] = []
        self.layers: list[tuple[int, LayerMovement]] = []
        self.seconds = {"training": 0.0, "evaluation": 0.0}

    @property
    def tasks(self) -> int:
        """The number of tasks, T."""
        return self.stream.n_tasks

    @property
    def trainings(self) -> int:
        """Number of trainings: one per task, or one for all tasks."""
        return 1 if self.method.needs_whole_stream else self.tasks

    @property
    def tasks_done(self) -> int:
        """Number of tasks that are trained."""
        return int(self.trainer.done) * (self.tasks // self.trainings)

    @property
    def carried_bytes(self) -> int | None:
        """Bytes that the method keeps after the last task; None if it learns all tasks at once."""
        if self.trainings == 1:
            return None
        return carried_bytes(self.trainer.states[-1], self._start)

    def steps(self) -> Iterator[Step]:
        """Raise: lanes are trained together, by `LaneRuns`."""
        raise NotImplementedError

    def end_task(self, seconds: float) -> None:
        """Score the method after a task.

        Args:
            seconds: seconds of the training on the task.
        """
        self.seconds["training"] += seconds
        self.layers += [(self.tasks_done, layer) for layer in self.method.movement]
        self.evaluate()

    def evaluate(self) -> None:
        """Score the method after the tasks so far.

        Raises:
            Diverged: a prediction is not a number.
        """
        started = time.perf_counter()
        done = self.tasks_done
        self.rows += evaluate(self.method, self.stream, self.evaluate_on, done)
        if self.uncertainty is not None:
            self.rows += self.uncertainty.rows(self.method, done, self.rows)
        self.seconds["evaluation"] += time.perf_counter() - started

    @property
    def parameters(self) -> int:
        """Number of trained numbers of the network; a Gaussian weight has two."""
        return sum(p.numel() for p in self.method.network.parameters())

    def accuracy(self) -> pd.DataFrame:
        """The tidy scores so far: `task_trained, task_evaluated, metric, value`."""
        return pd.DataFrame(
            self.rows, columns=["task_trained", "task_evaluated", "metric", "value"]
        )

    def movement(self) -> pd.DataFrame:
        """How far the posterior moved in each task: `task_trained` and `LayerMovement`'s fields.

        It is empty for a method without a posterior and a prior.
        """
        columns = ["task_trained", *LayerMovement._fields]
        return pd.DataFrame([(task, *layer) for task, layer in self.layers], columns=columns)

    def average_accuracy(self) -> float:
        """The mean accuracy over the tasks trained so far, in per cent."""
        last = [v for i, j, m, v in self.rows if i == self.tasks_done >= j and m == "accuracy"]
        return sum(last) / len(last)

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers from which the run resumes."""
        return {
            "trainer": self.trainer.state_dict(),
            "rows": self.rows,
            "layers": [(task, *layer) for task, layer in self.layers],
            "iterations": self.iterations,
            "seconds": self.seconds,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from the result of `state_dict`."""
        self.trainer.load_state_dict(state["trainer"])
        self.rows = [tuple(row) for row in state["rows"]]
        self.layers = [(task, LayerMovement(*layer)) for task, *layer in state["layers"]]
        self.seconds, self.iterations = dict(state["seconds"]), state["iterations"]

    def position(self) -> Step:
        """The step of the last finished task."""
        done = self.tasks_done
        news = f"resumes after task {done} of {self.tasks}" if done else None
        return self._step(done, news=news, start=tuple(map(str, self.starts)))

    def after_task(self) -> Step:
        """The step of the task that has just finished."""
        done, accuracy = self.tasks_done, self.average_accuracy()
        news = f"task {done} of {self.tasks}  average accuracy {accuracy:6.2f} %"
        scalars = {"average_accuracy": accuracy, **self._scores_after(done)}
        return self._step(done, score=accuracy, news=news, scalars=scalars)

    def untrained(self) -> Step:
        """The scores before any training."""
        return replace(self._step(0, 0, scalars=self._scores_after(0)), at=0)

    def after_epoch(self, task: int, epoch: int, scalars: Mapping[str, float]) -> Step:
        """The step of an epoch of a task, both from 1; it is not stored."""
        done = self.recipe.epochs_until(task - 1) + epoch
        named = {f"training_{name}/task-{task}": value for name, value in scalars.items()}
        return self._step(task - 1, done, scalars=named)

    def _scores_after(self, done: int) -> dict[str, float]:
        return {
            f"{metric}/task-{task}": value
            for trained, task, metric, value in self.rows
            if trained == done
        }

    def _step(self, done: int, epoch: int | None = None, **more: Any) -> Step:
        epochs = self.recipe.epochs_until(self.trainings)
        if epoch is None:
            epoch = min(self.recipe.epochs_until(done), epochs)
        message = f"task {min(done + 1, self.tasks)} of {self.tasks}"
        return Step(done, message, epoch=epoch, epochs=epochs, at=self.iterations, **more)

    def files(self) -> dict[str, str]:
        """Scores of all tasks after every task, their summary, and the movement of layers."""
        tidy, layers = self.accuracy(), self.movement()
        scores = summary(pd.DataFrame(self.rows, columns=TIDY_COLUMNS))
        files = {} if layers.empty else {"layers.csv": layers.to_csv(index=False)}
        return {
            **files,
            "accuracy.csv": tidy.to_csv(index=False),
            "metrics.json": json.dumps(scores, indent=2) + "\n",
        }

    def kept(self) -> dict[str, Any]:
        """An empty table: no other result is kept."""
        return {}

    def facts(self) -> dict[str, Any]:
        """Tasks, parameters, seconds, bytes carried between tasks, and the initial noise."""
        starts = [start._asdict() for start in self.starts]
        return {
            "tasks": list(self.stream.task_names),
            "parameters": self.parameters,
            "carried_bytes": self.carried_bytes,
            "seconds": self.seconds,
            **({"starts": starts} if starts else {}),
        }
