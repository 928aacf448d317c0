"""A network in the form that Avalanche's strategies, plugins and metrics expect."""

from __future__ import annotations

from typing import Any

from avalanche.models import MultiTaskModule
from torch import Tensor, nn

from vcl_radial.methods.base import Method
from vcl_radial.methods.naive import Naive
from vcl_radial.nn.heads import adapt_heads


class TaskModel(MultiTaskModule):
    """Task labels, heads on demand, and Monte-Carlo prediction around a network.

    In training a call returns the logits `[B, C]` under one draw of the weights. In evaluation it
    returns the log-predictive `[B, C]` over `eval_samples` draws, so that Avalanche's metrics and
    loggers use the Bayesian prediction. Plugins may differentiate it.

    Args:
        network: called as `network(x, task)` when it holds a `MultiHead`, or else as `network(x)`;
            or the method that trains it, which then predicts.
        eval_samples: weight samples of a network's prediction.
        eval_seed: seed of these samples, the same in every evaluation (common random numbers).
    """

    def __init__(
        self, network: nn.Module | Method, eval_samples: int = 100, eval_seed: int = 0
    ) -> None:
        super().__init__()
        self.known_train_tasks_labels: set[int]
        self.max_class_label: int
        if not isinstance(network, Method):
            network = Naive(network, eval_samples=eval_samples, eval_seed=eval_seed)
        self.method, self.network = network, network.network

    @property
    def eval_samples(self) -> int:
        """Weight samples of a prediction."""
        return self.method.eval_samples

    def adaptation(self, experience: Any) -> None:
        """Make the heads of the experience's tasks."""
        super().adaptation(experience)
        adapt_heads(self.network, experience.task_labels)

    def add_task(self, task: int, classes: int) -> None:
        """Register a task that was trained without Avalanche, as `adaptation` would."""
        self.known_train_tasks_labels = {*self.known_train_tasks_labels, task}
        self.max_class_label = max(self.max_class_label, classes)

    def forward(self, x: Tensor, task_labels: int | Tensor | None) -> Any:
        """Logits in training, log-predictive in evaluation; without labels, of every known task."""
        if task_labels is None:
            return self.forward_all_tasks(x)
        if self.training:
            return self.method.output(x, task_labels)
        return self.method.predict(x, task_labels, differentiable=True)

    def forward_single_task(self, x: Tensor, task_label: int) -> Any:
        """Call `forward` for one task."""
        return self.forward(x, task_label)

    def get_extra_state(self) -> dict[str, Any]:
        """The task labels and the classes met in training; part of the state dict."""
        return {"tasks": sorted(self.known_train_tasks_labels), "classes": self.max_class_label}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Load what `get_extra_state` returned."""
        self.known_train_tasks_labels = set(state["tasks"])
        self.max_class_label = state["classes"]
