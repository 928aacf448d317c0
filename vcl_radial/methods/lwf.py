"""Learning without forgetting (Li and Hoiem 2017).

On the new task's inputs x the old heads should keep the outputs that they had before the task, so
that no old data are needed:

    loss = mean NLL of the new task + strength * sum_s L_s
    L_s = - mean_x sum_c  p_c log p'_c,   p = softmax(z / T),   p' = softmax(z' / T)

with the sum over the old heads s, z the logits of the network before the task, and z' the logits
now (their modified cross-entropy, T = 2; no factor T^2). L_s has its minimum, the entropy of p,
where p' = p. With one head for all tasks, the sum includes only the classes c trained so far: the
old network does not know new ones. The warm-up of the original, which first trains the new head
alone, is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vcl_radial.config.ranges import NotNegative, Positive
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import MultiHead


class LwF(Method):
    """Distil the network of the last task, head by head, while learning the new task.

    Args:
        strength: lambda_o, the factor of the old heads' losses.
        temperature: T; above 1, small probabilities have more weight.
        settings: settings of `Method`.

    Raises:
        UserError: the strength is below 0, or the temperature not above 0.
    """

    carries = "the weights alone, and a copy of them while a task trains"
    likelihoods = frozenset({"categorical"})
    trains_old_heads = True
    asks_heads = True

    def __init__(
        self,
        network: nn.Module,
        *,
        strength: NotNegative = 1.0,
        temperature: Positive = 2.0,
        **settings: Any,
    ) -> None:
        super().__init__(network, **settings)
        self.strength, self.temperature = strength, temperature
        self.classes: dict[int, list[int]] = {}
        """The classes trained so far, by head; a single head for all tasks is 0."""
        self._old: nn.Module | None = None
        self._logits: list[dict[int, Tensor]] = []
        """Logits of the old heads under each weight sample of the step."""

    def begin_task(self, task: Task) -> None:
        """Keep a copy of the network before the task."""
        super().begin_task(task)
        # Evaluation mode: no dropout, and the running batch statistics of earlier tasks.
        self._old = deepcopy(self.network).eval() if self.classes else None

    def output(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """The outputs, as in `Method`; in training it also stores the logits of the old heads."""
        if self._old is None or not self.network.training:
            return super().output(x, task)
        with _features(self.network) as features:
            output = super().output(x, task)
        self._logits.append(self._old_heads(self.network, features, output))
        return output

    def outputs(self, batch: Batch) -> Tensor:
        """The outputs, as in `Method`; stores the logits of the old heads under the same draws."""
        self._logits = []
        return super().outputs(batch)

    def loss(self, batch: Batch, outputs: Tensor) -> Tensor:
        """Mean NLL plus the distillation loss of the old heads, in nats per point."""
        loss = super().loss(batch, outputs)
        if self._old is None:
            return loss
        with torch.no_grad(), self.using(self._old), _features(self._old) as features:
            old = self._old_heads(self._old, features, self.output(batch.x, batch.task))
        for head, classes in self.classes.items():
            for new in self._logits:
                term = distillation(new[head][:, classes], old[head][:, classes], self.temperature)
                loss = loss + self.strength * term / len(self._logits)
        return loss

    def end_task(self, task: Task) -> None:
        """Record the classes that the heads have been trained on."""
        for arguments, labels in self.points():
            head = int(arguments[1]) if self.with_task else 0
            self.classes[head] = sorted({*self.classes.get(head, []), *labels.tolist()})
        self._old = None

    def state_dict(self) -> dict[str, Any]:
        """The state of every method, and the classes; `begin_task` copies the old network again."""
        return super().state_dict() | {"classes": dict(self.classes)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        self.classes = {head: list(classes) for head, classes in state["classes"].items()}

    def _old_heads(
        self, network: nn.Module, features: list[Tensor], output: Tensor
    ) -> dict[int, Tensor]:
        """The logits `[B, C]` of each head that earlier tasks trained."""
        heads = [m for m in network.modules() if isinstance(m, MultiHead)]
        if not heads:
            return {0: output}
        return {task: heads[0].head(task)(features[-1]) for task in self.classes}


def distillation(new: Tensor, old: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of tempered predictions, a scalar in nats per point.

    -mean sum_c softmax(old / T)_c log softmax(new / T)_c;   logits `[B, C]` both.
    """
    return cross_entropy(new / temperature, (old / temperature).softmax(-1))


@contextmanager
def _features(network: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the inputs of a network's heads, so that the body need not run for each head."""
    features: list[Tensor] = []
    hooks = [
        module.register_forward_pre_hook(lambda _, inputs: features.append(inputs[0]))
        for module in network.modules()
        if isinstance(module, MultiHead)
    ]
    try:
        yield features
    finally:
        for hook in hooks:
            hook.remove()
