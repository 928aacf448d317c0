"""Accuracy, NLL and calibration of every evaluated experience, as an Avalanche metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from avalanche.evaluation import PluginMetric
from avalanche.evaluation.metric_results import MetricValue
from avalanche.evaluation.metric_utils import get_metric_name
from torch import Tensor

from vcl_radial.methods.tasks import check_inputs
from vcl_radial.training.scores import SCORES, Score, scores_of


class Scores(PluginMetric[float]):
    """Scores of the log-predictive on whole experiences: accuracy and ECE in per cent, NLL in nats.

    If the strategy's method measures the spread of its predictions over weight draws, the mean over
    the points is a score too, `sampling` in per cent.

    Args:
        scores: functions of log-probabilities `[B, C]` and labels `[B]`, by name.
    """

    def __init__(self, scores: Mapping[str, Score] = SCORES) -> None:
        super().__init__()
        self.scores = scores
        self.values: dict[str, float] = {}
        """The scores of the experience that was evaluated last."""
        self.predictions: Tensor | None = None
        """The log-probabilities of that experience."""
        self._outputs: list[Tensor] = []
        self._labels: list[Tensor] = []
        self._sampling: list[Tensor] = []

    def result(self) -> float | None:
        """None: the values come as metric values after each experience."""
        return None

    def reset(self) -> None:
        """Drop the batches of the last experience."""
        self._outputs, self._labels, self._sampling = [], [], []

    def before_eval_exp(self, strategy: Any) -> None:
        """Start a new experience."""
        self.reset()

    def after_eval_iteration(self, strategy: Any) -> None:
        """Store a batch's log-probabilities and labels, and the spread over draws."""
        self._outputs.append(strategy.mb_output)
        self._labels.append(strategy.mb_y)
        spread = getattr(getattr(strategy, "method", None), "sampling", None)
        if spread is not None:
            self._sampling.append(spread)

    def after_eval_exp(self, strategy: Any) -> Sequence[MetricValue]:
        """Score the experience.

        Raises:
            DataError: an input is not a number.
            Diverged: a prediction is not a number.
        """
        self.predictions, labels = torch.cat(self._outputs), torch.cat(self._labels)
        sampling = torch.cat(self._sampling) if self._sampling else None
        if torch.isnan(self.predictions).any():
            for batch in strategy.dataloader:
                check_inputs(batch[0], f"experience {strategy.experience.current_experience + 1}")
        self.values = scores_of(self.predictions, labels, sampling, self.scores)
        self.reset()
        step = strategy.clock.train_iterations
        return [
            MetricValue(
                self, get_metric_name(f"{name}_Exp", strategy, add_experience=True), v, step
            )
            for name, v in self.values.items()
        ]

    def __str__(self) -> str:
        return "Scores"
