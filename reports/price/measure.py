"""One task sequence, learned in every shape at every weight of the prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from reports.price.carry import (
    Carried,
    CarriedRadial,
    Model,
    carry,
    carry_radial,
    exactly,
    precisions,
    without_itself,
)
from reports.price.radial import RadialShape
from reports.price.scores import SCORES, certainty, nll_and_ece
from reports.price.shapes import Blocks, Diagonal, Full, LowRank, Moments, Shape
from reports.price.tasks import LinearStream, unit_vectors

RANKS = (2, 8, 32, 128, 512)
BLOCKS = (10, 50, 250)
WEIGHTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e5)
"""Weights of the prior to choose from."""

RADIAL_WEIGHTS = (1.0, 10.0, 30.0, 100.0, 300.0, 1e3)
"""Weights of the prior for posteriors whose optimum is searched for."""

RADIAL = tuple(
    RadialShape(grouping, corrected)
    for corrected in (True, False)
    for grouping in ("unit", "layer")
)

NUMBER_BYTES = 8
"""Means and precisions are carried in float64."""

COLUMNS = (
    "stream",
    "seed",
    "scored_by",
    "shape",
    "weight",
    "chosen",
    "two_tasks",
    "score",
    "forgetting",
    "kl",
    "nll",
    "ece",
    "bytes",
)
"""Columns of the table, with a line for every shape and weight of a stream and seed.

`scored_by` is a name of `reports.price.scores.SCORES`, and `score` the mean over the test points
of all tasks in the end; `two_tasks` is that on held-out points after two tasks. `chosen` names the
criterion that chose the weight: "two tasks", "oracle" for the score itself, "both", or nothing.
`forgetting` is the mean drop of the score from the end of a task to the end, over all tasks but the
last. KL in nats, NLL in nats a point, ECE in per cent; NLL and ECE only for classes, for chosen
weights and weight 1. For numbers they would measure how well the first task fits the noise of all.
"""


def shapes(d: int) -> list[Shape]:
    """The Gaussian shapes that differ with D features."""
    ranks = [LowRank(rank) for rank in RANKS if 2 * rank < d]
    blocks = [Blocks(size) for size in BLOCKS if 2 * size < d]
    return [Full(), *ranks, *blocks, Diagonal(), Moments()]


@torch.no_grad()
def measure(
    stream: LinearStream, seed: int, say: Callable[[str], None] = lambda line: None
) -> list[dict[str, Any]]:
    """The lines of a stream with one seed, in `COLUMNS`.

    Args:
        stream: the task sequence.
        seed: seed of the stream.
        say: called with progress messages.
    """
    model = Model.of(stream.tasks[0].sums)
    has_classes = not stream.tasks[0].test.y.is_floating_point()
    exact = exactly(stream, model)
    lines: list[dict[str, Any]] = []
    for shape, weights, posteriors in _sequences(stream, model):
        weight_lines: list[dict[str, Any]] = []
        kept: dict[float, Sequence[Carried | CarriedRadial]] = {}
        for weight in weights:
            kept[weight] = list(posteriors(weight))
            weight_lines.append(_line(stream, model, exact[-1], kept[weight], weight))
            # Posteriors of other weights are dropped, as each may have D x D numbers.
            kept = {w: kept[w] for w in _marked(weight_lines, stream) if w in kept}
        common = {"stream": stream.name, "seed": seed, "scored_by": stream.score}
        common["shape"] = shape.name
        common["bytes"] = NUMBER_BYTES * (model.d * model.outputs + _numbers(shape, model))
        for line in weight_lines:
            after = kept.get(line["weight"]) if has_classes else None
            whole = line | common | ({} if after is None else _certainty(stream, after))
            lines.append({column: whole[column] for column in COLUMNS})
        best = next(line for line in weight_lines if line["chosen"] in ("two tasks", "both"))
        heading = SCORES[stream.score].heading
        say(
            f"{stream.name} seed {seed}  {shape.name}: {heading} {best['score']:.3g} at weight "
            f"{best['weight']:g}, KL {best['kl']:.3g} nats"
        )
    return lines


Posteriors = Callable[[float], Iterator[Carried | CarriedRadial]]


def _sequences(
    stream: LinearStream, model: Model
) -> Iterator[tuple[Shape | RadialShape, Sequence[float], Posteriors]]:
    for shape in shapes(model.d):
        after = precisions(stream, model, shape)
        weights = WEIGHTS if not isinstance(shape, Full) else (1.0,)
        yield shape, weights, partial(carry, stream, model, after)
    for radial in RADIAL:
        if radial.grouping == "layer" and model.outputs == 1:
            continue  # a layer of one unit
        yield (
            radial,
            RADIAL_WEIGHTS if radial.corrected else WEIGHTS,
            partial(carry_radial, stream, model, radial),
        )


def _numbers(shape: Shape | RadialShape, model: Model) -> int:
    if isinstance(shape, RadialShape):
        return shape.numbers(model.d, model.outputs)
    return shape.numbers(model.d)


def _line(
    stream: LinearStream,
    model: Model,
    exact: Carried,
    after: Sequence[Carried | CarriedRadial],
    weight: float,
) -> dict[str, Any]:
    score, last = SCORES[stream.score], after[-1]

    def of(posterior: Carried | CarriedRadial, points: Any) -> float:
        return score.of(points.phi.double() @ posterior.mean, points.y)

    final = [of(last, task.test) for task in stream.tasks]
    learned = [of(q, task.test) for q, task in zip(after, stream.tasks, strict=True)]
    sign = 1 if score.higher_is_better else -1
    lost = [sign * (a - b) for a, b in zip(learned[:-1], final[:-1], strict=True)]
    two = [of(after[1], task.validation) for task in stream.tasks[:2]]
    return {
        "weight": weight,
        "chosen": "",
        "two_tasks": sum(two) / 2,
        "score": sum(final) / len(final),
        "forgetting": sum(lost) / len(lost),
        "kl": last.divergence(exact, model.noise),
        "nll": math.nan,
        "ece": math.nan,
    }


def _marked(lines: Sequence[dict[str, Any]], stream: LinearStream) -> set[float]:
    """Mark the weights that are best by two tasks and by the end; the smallest wins ties.

    Returns:
        These two weights, and 1.
    """
    sign = 1 if SCORES[stream.score].higher_is_better else -1
    for line in lines:
        line["chosen"] = ""
    by_two = max(lines, key=lambda line: sign * line["two_tasks"])
    by_end = max(lines, key=lambda line: sign * line["score"])
    by_two["chosen"], by_end["chosen"] = "two tasks", "oracle"
    if by_two is by_end:
        by_two["chosen"] = "both"
    return {by_two["weight"], by_end["weight"], 1.0}


def _certainty(stream: LinearStream, after: Sequence[Carried | CarriedRadial]) -> dict[str, float]:
    """The NLL and the calibration error in the end, of classes."""
    tests = [task.test for task in stream.tasks]
    predictions = [after[-1].predict(points) for points in tests]
    left_out = [
        without_itself(q, task.some, unit_vectors(task.some.y, stream.outputs))
        for q, task in zip(after, stream.tasks, strict=True)
    ]
    labels = [task.some.y for task in stream.tasks]
    nll, ece = nll_and_ece(certainty(left_out, labels, predictions), tests)
    return {"nll": nll, "ece": ece}
