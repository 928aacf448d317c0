"""Learning without forgetting (Li and Hoiem 2017).

On the new task's inputs x the old heads are to answer as they did before the task, so that no old
data are needed:

    loss = mean NLL of the new task + strength * sum_s L_s
    L_s = - mean_x sum_c  p_c log p'_c,   p = softmax(z / T),   p' = softmax(z' / T)

with the sum over the old heads s, and z and z' the logits of the network as it was before the task
and as it is (their modified cross-entropy, T = 2; no factor T^2). L_s is least, the entropy of p,
where the two agree. With one head for all tasks the classes c are those trained so far: the old
network knows nothing of new ones. The warm-up that trains the new head alone first is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torch
from avalanche.models import avalanche_forward
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vcl_radial.errors import UserError
from vcl_radial.nn import MultiHead
from vcl_radial.strategies.base import ContinualStrategy
from vcl_radial.strategies.task_model import TaskModel, require_known_heads


class LwF(ContinualStrategy):
    """Distil the network of the last task, head by head, while the new task is learnt.

    Args:
        strength: lambda_o, the factor of the old heads' losses.
        temperature: T; above 1 small probabilities count for more.
        settings: those of `ContinualStrategy`.

    Raises:
        UserError: the strength is below 0, the temperature not above 0, or the model is a
            `MultiTaskModule`, whose heads cannot be told apart.
    """

    trains_old_heads = True

    def __init__(self, *, strength: float = 1.0, temperature: float = 2.0, **settings: Any) -> None:
        super().__init__(**settings)
        if not strength >= 0:
            raise UserError(f"options.strength = {strength} must be at least 0")
        if not temperature > 0:
            raise UserError(f"options.temperature = {temperature} must be above 0")
        require_known_heads(self.model, "lwf")
        self.strength, self.temperature = strength, temperature
        self.classes: dict[int, list[int]] = {}
        """The classes trained so far, by head; the one head for all tasks is 0."""
        self._old: TaskModel | None = None
        self._logits: dict[int, Tensor] = {}

    def forward(self) -> Tensor:
        """As every strategy; in training the logits of the old heads are kept beside it."""
        with _features(self.model) as features:
            output = super().forward()
        if self._old is not None and self.is_training:
            self._logits = self._old_heads(self.model, features, output)
        return output

    def criterion(self) -> Tensor:
        """Mean NLL, and in training the distillation of the old heads; nats per point."""
        loss = super().criterion()
        if self._old is None or not self.is_training:
            return loss
        with torch.no_grad(), _features(self._old) as features:
            output = avalanche_forward(self._old, self.mb_x, self.mb_task_id)
            before = self._old_heads(self._old, features, output)
        for head, classes in self.classes.items():
            now = self._logits[head]
            term = distillation(now[:, classes], before[head][:, classes], self.temperature)
            loss = loss + self.strength * term
        return loss

    def consolidate(self, experience: Any) -> None:
        """Note the classes that the heads have been trained on."""
        data = experience.dataset
        for label, task in {*zip(data.targets, data.targets_task_labels, strict=True)}:
            head = int(task) if self.model.multi_head else 0
            self.classes[head] = sorted({*self.classes.get(head, []), int(label)})
        self._old = None

    def state_dict(self) -> dict[str, Any]:
        """As every strategy, and the classes; the old network is the one a task starts with."""
        return super().state_dict() | {"classes": self.classes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict(state)
        self.classes = {head: list(classes) for head, classes in state["classes"].items()}

    def _before_training_exp(self, **kwargs: Any) -> None:
        super()._before_training_exp(**kwargs)
        self._old = deepcopy(self.model) if self.classes else None
        if self._old is not None:
            # Without dropout, and with the statistics of its task; the model around it stays in
            # training, where it gives logits.
            self._old.network.eval()

    def _old_heads(
        self, model: TaskModel, features: list[Tensor], output: Tensor
    ) -> dict[int, Tensor]:
        """The logits `[B, C]` of each head that has been trained before."""
        heads = [m for m in model.modules() if isinstance(m, MultiHead)]
        if not heads:
            return {0: output}
        return {task: heads[0].head(task)(features[-1]) for task in self.classes}


def distillation(now: Tensor, before: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of tempered predictions, a scalar in nats per point.

    -mean sum_c softmax(before / T)_c log softmax(now / T)_c;   logits `[B, C]` both.
    """
    return cross_entropy(now / temperature, (before / temperature).softmax(-1))


@contextmanager
def _features(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collect what the heads of a model are given inside: the body need not run for each head."""
    found: list[Tensor] = []
    hooks = [
        module.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0]))
        for module in model.modules()
        if isinstance(module, MultiHead)
    ]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()
