"""What a network knows of its own errors: scores of prediction sets and of uncertainties.

After every task, with the entropy and the mutual information of predictions as uncertainties:

- `coverage`, `set_size`: share (%) of a trained task's points whose 90 % prediction set holds their
  class, and the mean number of classes in a set. The limit of the sets is set once, by the task's
  validation points right after the task (`vcl_radial.metrics.conformal`): what a network forgets
  shows as a coverage below 90 %.
- `answered_accuracy`: accuracy (%) on the 80 % of a trained task's points that are least uncertain.
- `later_auc`: AUC (%) of the uncertainty that tells a later task, before it is learned, from the
  trained ones.
- `ood_auc`: the same for the test images of another data set and one trained task.

The last two know no task: with many heads an uncertainty is that of the trained head whose entropy
is smallest. At most `LIMIT` points of a task count, evenly spaced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from vcl_radial.data.feature_rows import features_of
from vcl_radial.data.streams import TensorStream, load_dataset
from vcl_radial.data.streams.build import backbone_of
from vcl_radial.data.streams.tensors import Split
from vcl_radial.errors import UserError, bad_value
from vcl_radial.methods.base import Method
from vcl_radial.metrics import conformal
from vcl_radial.metrics.prediction import accuracy
from vcl_radial.metrics.referral import auc, entropy, mutual_information
from vcl_radial.tracks.continual.evaluation import Row, eval_batch
from vcl_radial.tracks.continual.settings import StreamSettings

LIMIT = 2_000
ANSWERED = 0.8
SET_LIMIT = "set_limit"
"""The metric in whose row the limit of a task's prediction sets is stored, in nats."""


class Judged(NamedTuple):
    """Predictions of points by heads H: `log_probs` `[H, B, C]`, uncertainties `[H, B]` in nats."""

    log_probs: Tensor
    uncertainty: dict[str, Tensor]

    def of_head(self, head: int) -> Judged:
        """One head's predictions, without the dimension H."""
        parts = {name: values[head] for name, values in self.uncertainty.items()}
        return Judged(self.log_probs[head], parts)

    def least_uncertain(self) -> dict[str, Tensor]:
        """The uncertainties `[B]` by the head with the smallest entropy."""
        heads = self.uncertainty["entropy"].argmin(0)[None]
        return {name: values.gather(0, heads)[0] for name, values in self.uncertainty.items()}


class UncertaintyScores:
    """The scores of a run.

    Args:
        stream: the task sequence.
        part: the part of the data that is scored.
        other: inputs of another data set, as the network takes them; None for none.

    Raises:
        UserError: a task has too few validation points for the limit of its sets.
    """

    def __init__(self, stream: TensorStream, part: Split, other: Tensor | None = None) -> None:
        if part == "validation":
            raise UserError(
                "sets its limits by validation points and cannot score them too: leave it out, or "
                "set evaluate_on = 'test'",
                at="stream.uncertainty",
            )
        fewest = min(len(rows) for rows in stream.validation)
        if fewest < conformal.FEWEST:
            raise UserError(
                f"needs {conformal.FEWEST} validation points of each task, and one has {fewest}: "
                "raise stream.validation, or leave uncertainty out",
                at="stream.uncertainty",
            )
        self.stream, self.part, self.other = stream, part, other

    @torch.no_grad()
    def rows(self, method: Method, done: int, past: Sequence[Row]) -> list[Row]:
        """The scores after a number of tasks; `past` has the rows of earlier scores."""
        limits = {task: value for _, task, metric, value in past if metric == SET_LIMIT}
        trained = range(done)
        judged = [self._judged(method, self._points(task), done) for task in trained]
        known = [of.least_uncertain() for of in judged]
        rows: list[Row] = []
        for task, of in zip(trained, judged, strict=True):
            head = self.stream.task_label(task)
            scores = {}
            if (limit := limits.get(task + 1)) is None:
                limit = scores[SET_LIMIT] = self._limit(method, task)
            scores |= _scores(of.of_head(head), self._labels(task), limit)
            rows += [(done, task + 1, name, value) for name, value in scores.items()]
        if not trained:
            return rows
        pooled = {name: torch.cat([of[name] for of in known]) for name in known[0]}
        for task in range(done, self.stream.n_tasks):
            unknown = self._judged(method, self._points(task), done).least_uncertain()
            rows += _detection(done, task + 1, "later_auc", pooled, unknown)
        if self.other is not None:
            unknown = self._judged(method, self.other, done).least_uncertain()
            for task in trained:
                rows += _detection(done, task + 1, "ood_auc", known[task], unknown)
        return rows

    def _points(self, task: int) -> Tensor:
        return spaced(self.stream.inputs(task, self.part))

    def _labels(self, task: int) -> Tensor:
        return spaced(self.stream.labels(task, self.part))

    def _limit(self, method: Method, task: int) -> float:
        log_probs = [
            method.predict(batch, self.stream.task_label(task), number=task)
            for batch in torch.split(
                self.stream.inputs(task, "validation"), eval_batch(self.stream)
            )
        ]
        return conformal.limit_of(torch.cat(log_probs), self.stream.labels(task, "validation"))

    def _judged(self, method: Method, x: Tensor, done: int) -> Judged:
        """Predictions by the heads of the trained tasks, or by the one head."""
        numbers: list[int | None] = [*range(done)] if self.stream.multi_head else [None]
        by_head = []
        for number in numbers:
            parts = []
            for batch in torch.split(x, eval_batch(self.stream)):
                with method.using(method.predictor(number)):
                    outputs = method.draws(batch, number or 0)
                parts.append(method.likelihood.log_probabilities(outputs))
            by_head.append(torch.cat(parts, 1))
        draws = torch.stack(by_head)  # [H, S, B, C]
        log_probs = draws.logsumexp(1) - math.log(draws.shape[1])
        uncertainty = {"entropy": entropy(log_probs)}
        if draws.shape[1] > 1:
            uncertainty["mutual_information"] = torch.stack([*map(mutual_information, draws)])
        return Judged(log_probs, uncertainty)


def of_run(
    settings: StreamSettings, stream: TensorStream, part: Split, data_dir: Path | None
) -> UncertaintyScores | None:
    """The scores that a stream's settings ask for, or None.

    Raises:
        UserError: the other data set does not fit the stream, or a task has few validation points.
    """
    if not settings.uncertainty and settings.ood is None:
        return None
    if settings.ood == settings.dataset:
        raise bad_value("stream.ood", settings.ood, "is the data set of the tasks: name another")
    other = None if settings.ood is None else inputs_of(settings, stream, data_dir)
    return UncertaintyScores(stream, part, other)


def inputs_of(settings: StreamSettings, stream: TensorStream, data_dir: Path | None) -> Tensor:
    """Test images of `stream.ood`, another data set, as inputs of a stream, at most `LIMIT`.

    Raises:
        UserError: the images have another size, or the stream does not know its scaling.
    """
    name = str(settings.ood)
    data = load_dataset(name, data_dir)
    images = spaced(data.test_x)
    if settings.backbone is not None:
        images = features_of(images, data, backbone_of(settings.model_dump()))
    images = images.float()
    shape = stream.x.shape[1:]
    if stream.scaling is None:
        raise bad_value("stream.ood", name, "needs a stream of images that knows its scaling")
    if images[0].numel() != shape.numel():
        raise bad_value(
            "stream.ood",
            name,
            f"has images of {list(images.shape[1:])} and the stream inputs of {list(shape)}: "
            "choose a data set of the same size",
        )
    m, s = stream.scaling
    return images.sub(m).div(s).reshape(len(images), *shape)


def spaced(rows: Tensor) -> Tensor:
    """At most `LIMIT` rows, evenly spaced."""
    return rows[:: math.ceil(len(rows) / LIMIT)]


def _scores(of: Judged, labels: Tensor, limit: float) -> dict[str, float]:
    sets = conformal.sets(of.log_probs, limit)
    covered = sets.gather(1, labels[:, None]).double()
    scores = {
        "coverage": 100 * covered.mean().item(),
        "set_size": sets.double().sum(1).mean().item(),
    }
    for name, values in of.uncertainty.items():
        kept = values.argsort()[: math.ceil(ANSWERED * len(values))]
        scores[f"answered_accuracy_by_{name}"] = accuracy(of.log_probs[kept], labels[kept])
    return scores


def _detection(
    done: int, task: int, metric: str, known: dict[str, Tensor], unknown: dict[str, Tensor]
) -> list[Row]:
    """How well uncertainties tell unknown points from known ones."""
    rows: list[Row] = []
    for name, values in known.items():
        scores = torch.cat([values, unknown[name]]).cpu().numpy()
        is_unknown = (torch.arange(len(scores)) >= len(values)).long().numpy()
        rows.append((done, task, f"{metric}_by_{name}", float(auc(is_unknown, scores))))
    return rows
