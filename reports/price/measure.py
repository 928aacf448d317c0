"""One task sequence, learned in every shape at every weight of the prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from reports.price.carry import (
    Carried,
    CarriedGaussian,
    Model,
    carry,
    carry_radial,
    precisions,
)
from reports.price.radial import RadialShape
from reports.price.scores import SCORES, nll_and_ece
from reports.price.shapes import DIAGONAL, FULL, MOMENTS, Shape, blocks, low_rank
from reports.price.tasks import LinearStream, Points

RANKS = (2, 8, 32, 128, 512)
BLOCKS = (10, 50, 250)
WEIGHTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e5)
"""Weights of the prior to choose from."""

RADIAL_WEIGHTS = (1.0, 10.0, 30.0, 100.0, 300.0, 1e3)
"""Weights of the prior for posteriors whose optimum is found numerically."""

RADIAL = tuple(
    RadialShape(grouping, corrected)
    for corrected in (True, False)
    for grouping in ("unit", "layer")
)

NUMBER_BYTES = 8
"""Means and precisions are carried in float64."""


class Candidate(NamedTuple):
    """A shape of the posterior.

    Attributes:
        name: name of the shape.
        numbers: number of values that are carried beside the means.
        weights: weights of the prior to choose from.
        posteriors: function of the weight: the posterior after every task.
    """

    name: str
    numbers: int
    weights: Sequence[float]
    posteriors: Callable[[float], Iterator[Carried]]


def shapes(d: int) -> list[Shape]:
    """The Gaussian shapes that differ with D features."""
    ranks = [low_rank(rank) for rank in RANKS if 2 * rank < d]
    sizes = [blocks(size) for size in BLOCKS if 2 * size < d]
    return [FULL, *ranks, *sizes, DIAGONAL, MOMENTS]


def candidates(stream: LinearStream, model: Model) -> Iterator[Candidate]:
    """All shapes: Gaussian shapes, and radial shapes by unit and, for several outputs, by layer."""
    for shape in shapes(model.d):
        weights = (1.0,) if shape is FULL else WEIGHTS
        posteriors = partial(carry, stream, model, precisions(stream, model, shape))
        yield Candidate(shape.name, shape.numbers(model.d), weights, posteriors)
    for radial in RADIAL:
        if radial.grouping == "unit" or model.outputs > 1:
            tried = RADIAL_WEIGHTS if radial.corrected else WEIGHTS
            posteriors_of = partial(carry_radial, stream, model, radial)
            yield Candidate(radial.name, model.d * model.outputs, tried, posteriors_of)


@torch.no_grad()
def measure(
    stream: LinearStream, seed: int, say: Callable[[str], None] = lambda line: None
) -> list[dict[str, Any]]:
    """Learn a stream in every shape at every weight of the prior.

    Args:
        stream: the task sequence.
        seed: seed of the stream.
        say: called with progress messages.

    Returns:
        One line per shape and weight. `scored_by` is a name of `reports.price.scores.SCORES`, and
        `score` is the mean over the test points of all tasks at the end; `two_tasks` is the same
        score on held-out points after two tasks. `chosen` names the criterion that chose the
        weight: "two tasks", "oracle" for the score itself, "both", or nothing. `forgetting` is the
        mean drop of the score from the end of a task to the end, over all tasks but the last. KL is
        in nats, NLL in nats per point, ECE in per cent. NLL and ECE exist only for classes, for
        chosen weights and weight 1: for numbers they would measure how well the noise of the first
        task fits all tasks.
    """
    model, score = Model.of(stream.tasks[0].sums), SCORES[stream.score]
    *_, exact = carry(stream, model, precisions(stream, model, FULL))
    lines: list[dict[str, Any]] = []
    for candidate in candidates(stream, model):
        rows: list[dict[str, Any]] = []
        kept: dict[float, list[Carried]] = {}
        for weight in candidate.weights:
            kept[weight] = list(candidate.posteriors(weight))
            rows.append({"weight": weight} | _scores(stream, model, exact, kept[weight]))
            # Posteriors of other weights are dropped, as each may have D x D numbers.
            kept = {w: kept[w] for w in _choose(rows, score.sign) if w in kept}
        common = {"stream": stream.name, "seed": seed, "scored_by": stream.score}
        size = NUMBER_BYTES * (model.d * model.outputs + candidate.numbers)
        for row in rows:
            certain = _certainty(stream, kept.get(row["weight"]))
            lines.append(common | {"shape": candidate.name} | row | certain | {"bytes": size})
        best = next(row for row in rows if row["chosen"] in ("two tasks", "both"))
        say(
            f"{stream.name} seed {seed}  {candidate.name}: {score.heading} {best['score']:.3g} at "
            f"weight {best['weight']:g}, KL {best['kl']:.3g} nats"
        )
    return lines


def _scores(
    stream: LinearStream, model: Model, exact: CarriedGaussian, after: Sequence[Carried]
) -> dict[str, Any]:
    score = SCORES[stream.score]

    def score_of(posterior: Carried, points: Points) -> float:
        return score.function(points.phi.double() @ posterior.mean, points.y)

    final = [score_of(after[-1], task.test) for task in stream.tasks]
    learned = [score_of(q, task.test) for q, task in zip(after, stream.tasks, strict=True)]
    two = [score_of(after[1], task.validation) for task in stream.tasks[:2]]
    lost = [score.sign * (a - b) for a, b in zip(learned[:-1], final[:-1], strict=True)]
    return {
        "chosen": "",
        "two_tasks": sum(two) / 2,
        "score": sum(final) / len(final),
        "forgetting": sum(lost) / len(lost),
        "kl": after[-1].divergence(exact, model.noise),
    }


def _choose(rows: Sequence[dict[str, Any]], sign: int) -> set[float]:
    """Mark the weights that are best after two tasks and at the end; the smallest wins ties.

    Returns:
        These two weights, and 1.
    """
    for row in rows:
        row["chosen"] = ""
    by_two = max(rows, key=lambda row: sign * row["two_tasks"])
    by_end = max(rows, key=lambda row: sign * row["score"])
    by_two["chosen"], by_end["chosen"] = "two tasks", "oracle"
    if by_two is by_end:
        by_two["chosen"] = "both"
    return {by_two["weight"], by_end["weight"], 1.0}


def _certainty(stream: LinearStream, after: Sequence[Carried] | None) -> dict[str, float]:
    """NLL and calibration error of classes at the end; nan for numbers or without posteriors."""
    if after is None or stream.score == "rmse":
        return {"nll": math.nan, "ece": math.nan}
    learned = [
        (q.outputs_without(task.calibration), task.calibration.y)
        for q, task in zip(after, stream.tasks, strict=True)
    ]
    tests = [(after[-1].outputs(task.test), task.test.y) for task in stream.tasks]
    return dict(zip(("nll", "ece"), nll_and_ece(learned, tests), strict=True))
