"""Predict files with a kept model: a table of predictions, and scores where labels are known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from vcl_radial.data.data_files import expanded
from vcl_radial.errors import DataError, UserError
from vcl_radial.metrics import expected_calibration_error
from vcl_radial.models.inputs import Batch
from vcl_radial.models.model import Assessment, Model
from vcl_radial.models.tables import open_table

COLUMNS = {
    "input": str,
    "task": str,
    "class": str,
    "probability": float,
    "entropy": float,
    "mutual_information": float,
}
"""The columns of every table; entropies are in nats."""


def predict_file(
    model: Model,
    data: str,
    to: Path,
    *,
    task: str | None = None,
    probabilities: bool = False,
    scores: bool = False,
    data_dir: Path | None = None,
) -> list[str]:
    """Write the predictions of a model for files or a data set; return the lines of its scores.

    The table has a row for each input: its name or row number, the task, the most probable class,
    its probability, and entropy and mutual information in nats.

    Args:
        model: the model.
        data: the inputs; see `vcl_radial.models.inputs.read_inputs`.
        to: the table, .csv or .parquet.
        task: number (from 0) or name of the task; None: the one of the least uncertain head.
        probabilities: whether to add a column for each class.
        scores: whether to score the predictions of inputs with labels.
        data_dir: the folder of a data set's files.

    Raises:
        UserError: there are no such data, no such task, no labels, or the table cannot be written.
        DataError: a file is damaged or does not fit the model.
    """
    source = expanded(Path(data))
    if to.exists() and source.exists() and to.samefile(source):
        raise UserError("is the input too; name another file", at=to)
    number = task_number(model, task)
    classes = _classes(model, number) if probabilities else ()
    columns = COLUMNS | {f"p({name})": float for name in classes}
    named = number is not None or len(model.classes) > 1
    scored = Scores(model, number, data) if scores else None
    with open_table(to, columns) as write:
        for batch, assessed in _assessed(model, data, number, data_dir):
            write(_cells(model, batch, assessed, classes, named=named))
            if scored is not None:
                scored.add(batch, assessed)
        # Without labels the table is not replaced.
        return [] if scored is None else scored.lines()


def task_number(model: Model, task: str | None) -> int | None:
    """The number of a task by its name, or by its number as text."""
    if task is None or task in model.tasks or not task.isdecimal():
        return None if task is None else model.number(task)
    return model.number(int(task))


def _assessed(
    model: Model, data: str, number: int | None, data_dir: Path | None
) -> Iterator[tuple[Batch, Assessment]]:
    for batch in model.read(data, data_dir):
        try:
            assessed = model.assess(batch.x, number)
        except DataError as error:
            raise DataError(str(error), at=data) from None
        yield batch, assessed


def _classes(model: Model, number: int | None) -> Sequence[str]:
    """The classes that a prediction may have, in order, without duplicates."""
    heads = model.classes if number is None else [model.classes[model.head(number)]]
    return [*dict.fromkeys(name for head in heads for name in head)]


def _cells(
    model: Model, batch: Batch, assessed: Assessment, classes: Sequence[str], *, named: bool
) -> list[Sequence[Any]]:
    """The columns of a batch; `named` is whether the task of every input is known."""
    tasks = assessed.tasks.tolist()
    heads = [model.classes[model.head(task)] for task in tasks]
    best = assessed.probabilities.max(1)
    predicted = [head[c] for head, c in zip(heads, best.indices.tolist(), strict=True)]
    columns: list[Sequence[Any]] = [
        [str(name) for name in batch.names],
        [model.tasks[task] for task in tasks] if named else [None] * len(tasks),
        predicted,
        best.values.tolist(),
        assessed.uncertainty.entropy.tolist(),
        assessed.uncertainty.mutual_information.tolist(),
    ]
    if classes:
        rows = zip(heads, assessed.probabilities.tolist(), strict=True)
        by_class = [dict(zip(head, row, strict=True)) for head, row in rows]
        columns += [[row.get(name) for row in by_class] for name in classes]
    return columns


class Scores:
    """Accuracy, NLL and calibration of predictions, from inputs with labels.

    A label is the name of a class, or, for one head, the number of its output.

    Args:
        model: the model.
        number: number of the task of all inputs; None where it is inferred.
        data: name of the data, for messages.
    """

    def __init__(self, model: Model, number: int | None, data: str) -> None:
        self.model, self.number, self.data = model, number, data
        self.infers = number is None and len(model.classes) > 1
        self.head_of: dict[str, set[int]] = {}
        for head, names in enumerate(model.classes):
            for name in names:
                self.head_of.setdefault(name, set()).add(head)
        self._rows: list[tuple[float, bool, float, bool]] = []
        """Confidence, whether the class is right, probability of the label, whether the head is."""

    def add(self, batch: Batch, assessed: Assessment) -> None:
        """Score some more inputs; those without a label do not count.

        Raises:
            DataError: a label is no class.
        """
        best = assessed.probabilities.max(1)
        rows = zip(
            batch.labels,
            assessed.tasks.tolist(),
            *(part.tolist() for part in (assessed.probabilities, best.values, best.indices)),
            strict=True,
        )
        for label, task, probs, confidence, predicted in rows:
            if label is not None:
                output = self._output(label, self.model.head(task))
                p = 0.0 if output is None else probs[output]
                self._rows.append((confidence, output == predicted, p, output is not None))

    def lines(self) -> list[str]:
        """The scores, one per line.

        Raises:
            UserError: there is no label.
        """
        if not self._rows:
            raise UserError("has no labels, which --scores needs", at=self.data)
        confidence, right, p, in_head = torch.tensor(self._rows, dtype=torch.float64).unbind(1)
        share = 100 * float(in_head.mean())
        known = in_head.bool()
        if not self.infers:  # no head that does not have the class could be right
            confidence, right, p = confidence[known], right[known], p[known]
            if not len(p):
                raise UserError("has no label of this task; name another --task", at=self.data)
        ece = expected_calibration_error(confidence.log()[:, None], 1 - right.long())
        nll = -float((p[known] if self.infers else p).log().mean()) if known.any() else math.nan
        lines = [f"accuracy {100 * float(right.mean()):.2f} %", f"NLL {nll:.4f} nats"]
        lines.append(f"ECE {ece:.2f} %")
        if self.infers:
            lines[1] += " (where the inferred head has the class)"
            if all(len(heads) == 1 for heads in self.head_of.values()):
                lines.append(f"head inferred {share:.2f} %")
        elif share < 100:
            lines.append(f"over the {share:.2f} % of the inputs whose class the task has")
        return lines

    def _output(self, label: str, head: int) -> int | None:
        """The output of a head for a label; None where another head has the class.

        Raises:
            DataError: no head has the class.
        """
        names = self.model.classes[head]
        if label in names:
            return names.index(label)
        if label in self.head_of:
            return None
        if not self.infers and label.isdecimal() and int(label) < len(names):
            return int(label)
        raise DataError(
            f"the label {label!r} is no class of the model ({', '.join(self.head_of)}): "
            "rename it, or predict without --scores",
            at=self.data,
        )
