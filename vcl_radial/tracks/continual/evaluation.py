"""Scores of a method on the tasks of a stream."""

from __future__ import annotations

import torch
from torch import Tensor

from vcl_radial.data.streams.tensors import Split, TensorStream
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import check_inputs
from vcl_radial.training.scores import scores_of

EVAL_BATCH = 16_384
"""Maximum rows of an evaluation batch; predictions do not depend on it."""

EVAL_NUMBERS = 2**23
"""Maximum number of input values in an evaluation batch; a convolution makes many values from
each."""

Row = tuple[int, int, str, float]
"""A score: tasks trained, task evaluated (from 1), metric and value."""


@torch.no_grad()
def evaluate(method: Method, stream: TensorStream, part: Split, tasks_done: int) -> list[Row]:
    """The scores on the tasks that are scored after `tasks_done` tasks, if they have data.

    Accuracy and ECE are in per cent, the NLL in nats. `sampling` (if the method draws weights) and
    `predicted_as_newest` (if all tasks share one head) are in per cent.

    Raises:
        DataError: an input is not a finite number.
        Diverged: a prediction is not a number.
    """
    newest, rows = newest_classes(stream, tasks_done), []
    if method.needs_whole_stream:
        newest = None
    for task in evaluated_tasks(stream, tasks_done):
        if not len(stream.rows(task, part)):
            continue
        x, predictions, spreads = stream.inputs(task, part), [], []
        for batch in torch.split(x, eval_batch(stream)):
            predictions.append(method.predict(batch, stream.task_label(task), number=task))
            spreads.append(method.sampling)
        predicted = torch.cat(predictions)
        if torch.isnan(predicted).any():
            check_inputs(x, f"task {task + 1}")
        spread = torch.cat([s for s in spreads if s is not None]) if None not in spreads else None
        scores = scores_of(predicted, stream.labels(task, part), spread)
        if newest is not None:
            scores["predicted_as_newest"] = share_predicted_as(newest, predicted)
        rows += [(tasks_done, task + 1, name, value) for name, value in scores.items()]
    return rows


def eval_batch(stream: TensorStream | None) -> int:
    """Rows of an evaluation batch of a stream."""
    if stream is None:
        return EVAL_BATCH
    return min(EVAL_BATCH, max(1, EVAL_NUMBERS // stream.x[0].numel()))


def evaluated_tasks(stream: TensorStream, tasks_done: int) -> range:
    """The tasks (from 0) that are scored after `tasks_done` tasks: the trained ones.

    With one head for all tasks, forward transfer also needs the next task; before the first task it
    needs all tasks. A head that has not been trained predicts by chance.
    """
    if stream.multi_head:
        return range(tasks_done)
    return range(min(tasks_done + 1, stream.n_tasks) if tasks_done else stream.n_tasks)


def newest_classes(stream: TensorStream, tasks_done: int) -> Tensor | None:
    """The classes of the last trained task, if all tasks share one head of classes."""
    if tasks_done == 0 or stream.multi_head:
        return None
    newest = stream.task_classes[tasks_done - 1]
    return torch.tensor(newest) if len(newest) < stream.n_classes else None


def share_predicted_as(classes: Tensor, predictions: Tensor) -> float:
    """Share of predictions `[B, C]` that are of these classes, in per cent."""
    return 100 * torch.isin(predictions.argmax(-1).cpu(), classes).double().mean().item()
