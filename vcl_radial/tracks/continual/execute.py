"""Steps of a task sequence for the run machine, alone or as lanes: a step is a task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
from avalanche.training.plugins import EvaluationPlugin

from vcl_radial.metrics import summary
from vcl_radial.nn.movement import LayerStart
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.training import Step
from vcl_radial.strategies.base import ContinualStrategy
from vcl_radial.strategies.upkeep import check_objective
from vcl_radial.tracks.continual.lane_runs import LaneRuns
from vcl_radial.tracks.continual.networks import make_network, stream_for
from vcl_radial.tracks.continual.specification import Run
from vcl_radial.tracks.continual.training import ContinualRun, make_strategy
from vcl_radial.tracks.methods import check_made


class InProgress(Protocol):
    """What `ContinualRun` and a lane have in common."""

    rows: list[tuple[int, int, str, float]]
    tasks_done: int
    seconds: dict[str, float]

    @property
    def parameters(self) -> int:
        """How many numbers the network trains."""

    @property
    def carried_bytes(self) -> int | None:
        """Bytes that the method keeps between tasks; None if it learns all tasks at once."""

    @property
    def iterations(self) -> int:
        """Training steps made so far."""

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers from which training resumes."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from what `state_dict` gave."""

    def accuracy(self) -> pd.DataFrame:
        """The tidy scores so far."""

    @property
    def starts(self) -> Sequence[LayerStart]:
        """The initial noise of each layer; empty without a posterior."""

    def movement(self) -> pd.DataFrame:
        """How far each layer's posterior moved in each task; empty without a posterior."""

    def average_accuracy(self) -> float:
        """The mean accuracy over the tasks trained so far, in per cent."""


class TaskTraining:
    """A run on a task sequence.

    Args:
        spec: the specification of the run.
        run: the training in progress.
        names: the names of the tasks.
        trainings: number of trainings: one per task, or one for all tasks.
    """

    def __init__(self, spec: Run, run: InProgress, names: Sequence[str], trainings: int) -> None:
        self._spec, self._run, self._names = spec, run, names
        self._total = spec.recipe.epochs_until(trainings)

    def position(self) -> Step:
        """The step of the last task that is done."""
        done = self._run.tasks_done
        news = f"resumes after task {done} of {len(self._names)}" if done else None
        return self._step(done, news=news, start=tuple(map(str, self._run.starts)))

    def state_dict(self) -> dict[str, Any]:
        """The state of the training; see `ContinualRun.state_dict`."""
        return self._run.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume after the last task that is done."""
        self._run.load_state_dict(state)

    def steps(self) -> Iterator[Step]:
        """Train and score task by task."""
        assert isinstance(self._run, ContinualRun)  # lanes have the steps of `TaskLanes`
        for _ in self._run.finish_tasks():
            yield self.after_task()

    def after_task(self) -> Step:
        """The step of the task that is just done."""
        done, accuracy = self._run.tasks_done, self._run.average_accuracy()
        news = f"task {done} of {len(self._names)}  average accuracy {accuracy:6.2f} %"
        scalars = {"average_accuracy": accuracy, **self._scores_after(done)}
        return self._step(done, score=accuracy, news=news, scalars=scalars)

    def untrained(self) -> Step:
        """The scores before any training."""
        return replace(self._step(0, 0, scalars=self._scores_after(0)), at=0)

    def _scores_after(self, done: int) -> dict[str, float]:
        return {
            f"{metric}/task-{task}": value
            for trained, task, metric, value in self._run.rows
            if trained == done
        }

    def after_epoch(self, task: int, epoch: int, scalars: Mapping[str, float]) -> Step:
        """The step of an epoch of a task, both from 1; it is not stored."""
        done = self._spec.recipe.epochs_until(task - 1) + epoch
        named = {f"training_{name}/task-{task}": value for name, value in scalars.items()}
        return self._step(task - 1, done, scalars=named)

    def _step(self, done: int, epoch: int | None = None, **more: Any) -> Step:
        if epoch is None:
            epoch = min(self._spec.recipe.epochs_until(done), self._total)
        return Step(
            done=done,
            message=f"task {min(done + 1, len(self._names))} of {len(self._names)}",
            epoch=epoch,
            epochs=self._total,
            at=self._run.iterations,
            **more,
        )

    def files(self) -> dict[str, str]:
        """Scores of all tasks after every task, their summary, and the movement of layers."""
        tidy, layers = self._run.accuracy(), self._run.movement()
        scores = summary(tidy, multi_head=self._spec.stream.multi_head)
        files = {} if layers.empty else {"layers.csv": layers.to_csv(index=False)}
        return {
            **files,
            "accuracy.csv": tidy.to_csv(index=False),
            "metrics.json": json.dumps(scores, indent=2) + "\n",
        }

    def kept(self) -> dict[str, Any]:
        """Return nothing: no other result is kept."""
        return {}

    def facts(self) -> dict[str, Any]:
        """Tasks, parameters, seconds, bytes carried between tasks, and the initial noise."""
        starts = [start._asdict() for start in self._run.starts]
        return {
            "tasks": list(self._names),
            "parameters": self._run.parameters,
            "carried_bytes": self._run.carried_bytes,
            "seconds": self._run.seconds,
            **({"starts": starts} if starts else {}),
        }


def open_run(spec: Run, context: RunContext, report: Callable[[Step], None]) -> TaskTraining:
    """Open a run at its start."""

    def on_epoch(task: int, epoch: int, scalars: Mapping[str, float]) -> None:
        if context.log and (task, epoch) == (1, 1):
            report(training.untrained())
        report(training.after_epoch(task, epoch, scalars))

    run = ContinualRun(
        spec.stream,
        spec.recipe,
        spec.seed,
        evaluate_on=spec.evaluate_on,
        data_dir=context.data_dir,
        device=context.device,
        on_epoch=on_epoch,
        watched=bool(context.log),
    )
    training = TaskTraining(spec, run, run.stream.task_names, run.trainings)
    return training


class TaskLanes:
    """Runs on one stream, trained as one program.

    Args:
        specs: specifications of one stream and one shape.
        context: device and folders of the runs.
        report: called with a lane and an epoch of it.
    """

    def __init__(
        self, specs: Sequence[Run], context: RunContext, report: Callable[[int, Step], None]
    ) -> None:
        def on_epoch(lane: int, task: int, epoch: int) -> None:
            report(lane, self.lanes[lane].after_epoch(task, epoch, {}))

        self._runs = LaneRuns(
            specs[0].stream,
            [spec.recipe for spec in specs],
            [spec.seed for spec in specs],
            evaluate_on=specs[0].evaluate_on,
            data_dir=context.data_dir,
            device=context.device,
            on_epoch=on_epoch,
        )
        names = self._runs.stream.task_names
        self.lanes = [
            TaskTraining(spec, lane, names, self._runs.tasks)
            for spec, lane in zip(specs, self._runs.lanes, strict=True)
        ]

    def leave_out(self, lane: int) -> None:
        """Stop training a lane."""
        self._runs.leave_out(lane)

    def fault(self, lane: int) -> Any:
        """The error that ended a lane early; None if there was none."""
        return self._runs.lanes[lane].fault

    def steps(self) -> Iterator[dict[int, Step]]:
        """Train and score task by task."""
        for finished in self._runs.finish_tasks():
            yield {lane: self.lanes[lane].after_task() for lane in finished}


def check_made_on(runs: Sequence[Run], data_dir: Path | None) -> None:
    """Make the stream that runs share, and each of their methods for it once.

    Raises:
        UserError: the data are missing or damaged, or a method cannot be made for them.
    """
    stream = stream_for(runs[0].stream, runs[0].recipe, data_dir, runs[0].seed)

    def make(run: Run) -> ContinualStrategy:
        run.recipe.check_batches(min(map(len, stream.train)))
        made = make_strategy(
            run.recipe,
            make_network(stream, run.recipe),
            tensor_stream=stream,
            device="cpu",
            evaluator=EvaluationPlugin(loggers=[]),
        )
        check_objective(made)
        return made

    check_made(runs, make)
