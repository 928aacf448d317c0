"""A network as Avalanche's strategies, plugins and metrics expect it."""

from __future__ import annotations

from typing import Any

from avalanche.models import MultiTaskModule, avalanche_forward
from torch import Tensor, nn

from vcl_radial.errors import UserError
from vcl_radial.nn import MultiHead
from vcl_radial.nn.weights import held_scales
from vcl_radial.predict import log_predictive


class TaskModel(MultiTaskModule):
    """Task labels, heads on demand, and Monte-Carlo prediction around a network.

    In training a call returns the logits `[B, C]` under one draw of the weights. In evaluation it
    returns the log-predictive `[B, C]` over `eval_samples` draws, so that stock metrics and
    loggers see the Bayesian prediction without knowing about it. Plugins may differentiate it.

    Args:
        network: called as `network(x, task)` when it holds a `MultiHead`, or else as `network(x)`.
        eval_samples: weight samples of a prediction.
        eval_seed: of those samples; the same in every evaluation (common random numbers).
    """

    def __init__(self, network: nn.Module, eval_samples: int = 100, eval_seed: int = 0) -> None:
        super().__init__()
        self.known_train_tasks_labels: set[int]
        self.max_class_label: int
        self.network = network
        self.eval_samples, self.eval_seed = eval_samples, eval_seed

    @property
    def multi_head(self) -> bool:
        """Whether the network has a head for each task."""
        return any(isinstance(module, MultiHead) for module in self.network.modules())

    def adaptation(self, experience: Any) -> None:
        """Make the heads of the experience's tasks."""
        super().adaptation(experience)
        for module in self.network.modules():
            if isinstance(module, MultiHead):
                module.adapt(experience.task_labels)

    def meet(self, task: int, classes: int) -> None:
        """Remember a task that was trained without Avalanche, as `adaptation` would."""
        self.known_train_tasks_labels = {*self.known_train_tasks_labels, task}
        self.max_class_label = max(self.max_class_label, classes)

    def logits(self, x: Tensor, task: int | Tensor) -> Tensor:
        """Logits `[B, C]` under one draw of the weights."""
        logits: Tensor = self.network(x, task) if self.multi_head else self.network(x)
        return logits

    def forward(self, x: Tensor, task_labels: int | Tensor | None) -> Any:
        """Logits in training, log-predictive in evaluation; without labels, of every known task."""
        if task_labels is None:
            return self.forward_all_tasks(x)
        if self.training:
            return self.logits(x, task_labels)
        with held_scales(self.network):
            return log_predictive(
                lambda inputs: self.logits(inputs, task_labels),
                x,
                self.eval_samples,
                self.eval_seed,
                differentiable=True,
            )

    def forward_single_task(self, x: Tensor, task_label: int) -> Any:
        """As `forward`, for one task."""
        return self.forward(x, task_label)

    def get_extra_state(self) -> dict[str, Any]:
        """The task labels and the classes met in training; part of the state dict."""
        return {"tasks": sorted(self.known_train_tasks_labels), "classes": self.max_class_label}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take over what `get_extra_state` gave."""
        self.known_train_tasks_labels = set(state["tasks"])
        self.max_class_label = state["classes"]


def log_predictive_of(model: MultiTaskModule, x: Tensor, tasks: Tensor) -> Tensor:
    """What a model in evaluation says, `[B, C]`: somebody else's gives logits."""
    output: Tensor = avalanche_forward(model, x, tasks)
    return output if isinstance(model, TaskModel) else output.log_softmax(-1)


def require_known_heads(model: nn.Module, method: str) -> None:
    """See that a method can ask each head of its model by itself.

    Raises:
        UserError: it is somebody else's `MultiTaskModule`, whose heads cannot be told apart.
    """
    if not isinstance(model, TaskModel):
        raise UserError(
            f"{method} cannot tell the heads of a {type(model).__name__} apart: give it a network "
            "with a vcl_radial.nn.MultiHead, or with one head"
        )
