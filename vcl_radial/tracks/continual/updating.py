"""A kept model of a task sequence learns one more task: its stream, and its run."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count, zip_longest
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vcl_radial.data.streams import ImageData, TensorStream
from vcl_radial.data.streams.new_task import load_new_task
from vcl_radial.errors import DataError, UserError
from vcl_radial.files import reading
from vcl_radial.models.model import Model
from vcl_radial.nn import SingleHead
from vcl_radial.nn.movement import LayerMovement
from vcl_radial.runs.spec import Update
from vcl_radial.runs.updating import parent_of
from vcl_radial.tracks.continual.evaluation import Row, evaluate
from vcl_radial.tracks.continual.models import restored
from vcl_radial.tracks.continual.networks import stream_for
from vcl_radial.tracks.continual.settings import Run
from vcl_radial.tracks.continual.training import ContinualRun
from vcl_radial.training.scores import SCORES
from vcl_radial.training.trainer import Trainer

_SCORED = {*SCORES, "sampling", "predicted_as_newest"}
"""Scores that an updated run continues; those of `uncertainty` need the validation data."""

HeldOut = tuple[Tensor, Tensor]
"""Inputs as the network takes them, and labels, of a task on which the model is scored."""


class UpdatedRun(ContinualRun):
    """A run whose stream ends with the one task that a kept model learns.

    The scores of the parent are those of the earlier tasks. With one head for all tasks the new
    task is also scored before it is trained, for forward transfer.

    Args:
        stream: see `updated_stream`.
        run: the run.
        settings: settings of `ContinualRun`.
    """

    def __init__(self, stream: TensorStream, run: Run, **settings: Any) -> None:
        done = stream.n_tasks - 1
        folder = Path(_last(run).folder)
        card, state = parent_of(run)
        grown = [*card.get("grown", [])]
        if more := stream.n_classes - len(card["heads"][0]):
            grown.append(more)
        super().__init__(stream, run.recipe, run.seed, learnt=done, grown=grown, **settings)
        if more:
            state = with_new_outputs(state, self.method.state_dict(), f"grown.{len(grown) - 1}.")
        untrained = self._scores_of_new_task(0)
        self.trainer.load_state_dict(Trainer.state_between_tasks([state], done))
        rows = [*_scores(folder), *untrained, *self._scores_of_new_task(done)]
        self.rows = sorted(rows, key=lambda row: row[:2])
        self.layers = _movement(folder)

    def _scores_of_new_task(self, done: int) -> list[Row]:
        """The scores on the new task before its training; none if it has a head of its own."""
        if self.stream.multi_head:
            return []
        rows = evaluate(self.method, self.stream, self.evaluate_on, done)
        return [row for row in rows if row[1] == self.stream.n_tasks]


def updated_stream(
    run: Run, data_dir: Path | None, report: Callable[[str], None] = lambda line: None
) -> TensorStream:
    """The stream of a run that updates a model: training data of the new task alone.

    Earlier tasks have the data on which they are scored, if these are at hand.

    Args:
        run: the run.
        data_dir: the folder of the benchmark's data.
        report: called with a line on data that are not at hand.

    Raises:
        UserError: the parent is not the model that the run continues, or has no room for a class.
        DataError: the new data are damaged, or do not fit the model.
    """
    card, state = parent_of(run)
    model, update = restored(run, card, state), _last(run)
    data = new_data(model, Path(update.data), update)
    tasks, heads = card["tasks"], card["heads"]
    outputs = outputs_for(model, data.class_names, Path(update.data))
    labels = torch.tensor(outputs)
    train = model.inputs(data.train_x), labels[data.train_y]
    tests = [*_held_out(run, model, data_dir, report)]
    tests.append((model.inputs(data.test_x), labels[data.test_y]))
    parts = [train, *tests]
    ends = torch.tensor([len(y) for _, y in parts]).cumsum(0).tolist()
    rows = [torch.arange(*ends) for ends in zip([0, *ends], ends, strict=False)]
    nothing = torch.arange(0)
    names = [tuple(heads[task["head"]][n] for n in task["outputs"]) for task in tasks]
    return TensorStream(
        name=run.benchmark,
        x=torch.cat([x for x, _ in parts]),
        y=torch.cat([y for _, y in parts]),
        train=(*[nothing] * len(tasks), rows[0]),
        validation=tuple(rows[1:]),
        test=tuple(rows[1:]),
        task_names=(*model.tasks, update.task),
        task_classes=(*(tuple(task["outputs"]) for task in tasks), tuple(outputs)),
        n_classes=max(len(heads[0]), 1 + max(outputs)),
        multi_head=card["multi_head"],
        class_names=(*names, data.class_names),
        scaling=tuple(card["input"]["scaling"]),
    )


def new_task(model: Model, path: Path) -> str:
    """The checksum of the data of one more task.

    Raises:
        UserError: the model does not know how its inputs are made of raw data.
        DataError: the data are missing, damaged or do not fit the model.
    """
    data = new_data(model, path)
    outputs_for(model, data.class_names, path)
    return data.checksum


def new_data(model: Model, path: Path, update: Update | None = None) -> ImageData:
    """Read the data of one more task, in the channels of the model, without a validation part.

    Args:
        model: the model.
        path: a file or a folder; see `load_new_task`.
        update: the update whose data they must be.

    Raises:
        UserError, DataError: see `new_task`.
    """
    shape = model.card["input"]["shape"]
    size = _image_size(shape) if model.backbone is None else model.image_size
    data = load_new_task(path, size)
    chosen = slice(None) if data.held_out is None else ~data.held_out
    train_x, test_x = data.train_x[chosen], data.test_x
    if math.prod(shape) == 3 * train_x[0].numel():  # grey images for a model of colour
        train_x, test_x = (x[:, None].expand(-1, 3, *x.shape[1:]) for x in (train_x, test_x))
    try:
        for x in (train_x, test_x):
            model.inputs(x)
    except DataError as error:
        raise DataError(str(error), at=path) from None
    parts = train_x, data.train_y[chosen], test_x, data.test_y
    data = ImageData(data.name, *parts, class_names=data.class_names)
    if update is not None and data.checksum != update.checksum:
        raise DataError(f"has changed since the task {update.task!r} was learnt", at=path)
    return data


def outputs_for(model: Model, names: Sequence[str], path: Path) -> list[int]:
    """The outputs of a new task's classes, by their names.

    A new head begins with its first output. In the one head of all tasks, a class that it knows
    keeps its output, and a new one gets the next output that no task has; if none is left, the
    head grows.

    Raises:
        DataError: the head has too few outputs, and the method cannot add any.
    """
    tasks, head = model.card["tasks"], model.card["heads"][0]
    used = [] if model.card["multi_head"] else sorted({n for t in tasks for n in t["outputs"]})
    known = {head[output]: output for output in used}
    free = iter([output for output in range(len(head)) if output not in used])
    missing = len({*names} - {*known}) - (len(head) - len(used))
    if missing > 0 and not _grows(model):
        reason = (
            "" if model.card["multi_head"] else f", and {model.card['spec']['method']} adds none"
        )
        raise DataError(
            f"has {missing} new classes more than the {len(head)} outputs of the model's head "
            f"have room for{reason}: train a model with a larger head, or leave them out",
            at=path,
        )
    free = chain(free, count(len(head)))
    return [known[name] if name in known else next(free) for name in names]


def _grows(model: Model) -> bool:
    """Whether the head of a model may get more outputs."""
    head = getattr(model.method.network, "head", None)
    return isinstance(head, SingleHead) and vars(type(model.method)).get("grows", False)


def with_new_outputs(state: Any, fresh: Any, key: str) -> Any:
    """A method's state before new outputs, with these as they are in its state at the start.

    Args:
        state: the state, a nest of dictionaries, lists and tuples.
        fresh: the state of the method at the start, with the new outputs.
        key: a part of the keys of the new outputs.
    """
    if isinstance(state, Mapping) and isinstance(fresh, Mapping):
        new = {name: value for name, value in fresh.items() if key in str(name)}
        old = {
            name: with_new_outputs(value, fresh[name], key) if name in fresh else value
            for name, value in state.items()
        }
        return new | old
    if isinstance(state, list | tuple) and isinstance(fresh, list | tuple):
        pairs = zip_longest(state, fresh[: len(state)])
        return type(state)(with_new_outputs(old, new, key) for old, new in pairs)
    return state


def _held_out(
    run: Run, model: Model, data_dir: Path | None, report: Callable[[str], None]
) -> list[HeldOut]:
    """The data on which each of the model's tasks is scored; empty where they are not at hand."""
    card, earlier = model.card, (run.updates or [])[:-1]
    count = len(card["tasks"]) - len(earlier)
    absent = torch.zeros(0, *card["input"]["shape"]), torch.zeros(0, dtype=torch.int64)
    parts: list[HeldOut] = [absent] * count
    try:
        stream, part = stream_for(run.stream, run.recipe, data_dir, run.seed), run.evaluate_on
        parts = [(stream.inputs(t, part), stream.labels(t, part)) for t in range(count)]
    except UserError as error:
        report(f"the first {count} tasks are not scored again, as their data are not here: {error}")
    for task, update in zip(card["tasks"][count:], earlier, strict=True):
        try:
            data = new_data(model, Path(update.data), update)
        except UserError as error:
            report(f"{update.task} is not scored again, as its data are not here: {error}")
            parts.append(absent)
        else:
            labels = torch.tensor(task["outputs"])[data.test_y]
            parts.append((model.inputs(data.test_x), labels))
    return parts


def _image_size(shape: Sequence[int]) -> int | None:
    """The edge of the square images of inputs of a shape; None where they are not square."""
    for channels in (1, 3):
        edge = math.isqrt(math.prod(shape) // channels)
        if channels * edge**2 == math.prod(shape) and (len(shape) == 1 or shape[-1] == edge):
            return edge
    return None


def _last(run: Run) -> Update:
    assert run.updates
    return run.updates[-1]


def _scores(folder: Path) -> list[Row]:
    """The scores of a finished run that an update continues."""
    return [
        (int(row["task_trained"]), int(row["task_evaluated"]), row["metric"], float(row["value"]))
        for row in _table(folder / "accuracy.csv")
        if row["metric"] in _SCORED
    ]


def _movement(folder: Path) -> list[tuple[int, LayerMovement]]:
    """The movement of layers in a finished run; empty for a method without it."""
    if not (folder / "layers.csv").exists():
        return []
    return [
        (
            int(row.pop("task_trained")),
            LayerMovement(row.pop("layer"), *(float(value or "nan") for value in row.values())),
        )
        for row in _table(folder / "layers.csv")
    ]


def _table(file: Path) -> list[dict[str, Any]]:
    with reading.data_errors(file):
        return [*csv.DictReader(reading.read_text(file).splitlines())]
