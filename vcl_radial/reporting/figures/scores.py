"""The scores of a comparison, with their headings, formats and meanings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Score:
    """The heading, format and meaning of a score.

    Attributes:
        heading: heading of the column; the arrow shows the better direction.
        decimals: number of printed decimals.
        better: "higher", "lower", or None if neither is better.
        meaning: a short explanation.
        counted: whether it is a whole number that is equal for all seeds of a method.
        in_bytes: whether it is a number of bytes, which is printed with its unit.
    """

    heading: str
    decimals: int
    better: Literal["higher", "lower"] | None
    meaning: str
    counted: bool = False
    in_bytes: bool = False

    @property
    def name(self) -> str:
        """The heading without unit and arrow."""
        return self.heading.partition(" (")[0].rstrip(" ↑↓")


SCORES = {
    "average_accuracy": Score(
        "accuracy (%) ↑", 2, "higher", "accuracy of the final network, averaged over all tasks"
    ),
    "forgetting": Score(
        "forgetting ↓", 2, "lower", "points that earlier tasks fell from their best"
    ),
    "learning_accuracy": Score(
        "learnt (%) ↑", 2, "higher", "accuracy on each task right after it was trained"
    ),
    "backward_transfer": Score(
        "BWT ↑", 2, "higher", "backward transfer: points that later tasks added to earlier ones"
    ),
    "forward_transfer": Score(
        "FWT ↑", 2, "higher", "forward transfer: points that earlier tasks added to later ones"
    ),
    "minimum_accuracy": Score(
        "min-ACC (%) ↑", 2, "higher", "worst accuracy of earlier tasks after they were learnt"
    ),
    "recency_bias": Score(
        "recency bias (%) ↓", 2, "lower", "images of earlier tasks taken for the newest task's"
    ),
    "average_nll": Score(
        "NLL (nats) ↓", 3, "lower", "negative log-likelihood of the final network, over all tasks"
    ),
    "average_ece": Score(
        "ECE (%) ↓", 2, "lower", "expected calibration error of the final network, over all tasks"
    ),
    "average_sampling": Score(
        "sampling (%)",
        3,
        None,
        "standard deviation of the predicted class's probability over draws of the weights",
    ),
    "training_seconds": Score("training (s) ↓", 1, "lower", "seconds of training, on one device"),
    "evaluation_seconds": Score(
        "evaluation (s) ↓", 1, "lower", "seconds of evaluation, on one device"
    ),
    "parameters": Score(
        "parameters",
        0,
        None,
        "numbers that the final network trains; a Gaussian weight has two",
        counted=True,
    ),
    "carried_bytes": Score(
        "carried",
        0,
        None,
        "bytes that a method keeps from task to task: what training has changed of its state",
        counted=True,
        in_bytes=True,
    ),
}
"""The scores of `metrics.summary`, then the costs of a run, in the order of tables."""

COSTS = ("training_seconds", "evaluation_seconds", "parameters", "carried_bytes")

ASIDE = ("average_sampling", *COSTS)
"""Scores that do not measure the quality of predictions."""
