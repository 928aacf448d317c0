"""Elastic weight consolidation done right: the Fisher of reversed logits (Liu and Chang 2026).

Where a network is sure of a point's class y, the gradient of -log softmax(z)_y in the logits z
vanishes, and with it the Fisher information of EWC. EWC-DR computes it with the logits reversed:

    Omega_i = 1/N sum_n (d log softmax(-z(x_n, w))_{y_n} / dw_i)^2
    loss = L + lambda / 2 sum_i Omega_i (w_i - w*_i)^2

with w* the weights at the end of the last task. The paper is arXiv 2603.18596; the equation is that
of its code, scarlet0703/EWC-DR. Omega is the mean over the finished tasks, not their sum, weighted
by the number of their points; a head of one task has the Omega of that task. The code weights by
the number of their classes, which is the same if all classes have equally many points.

The softmax is over the classes that have come so far, for which alone the paper's network has
outputs: classes to come have low logits, and reversed ones would take all the probability.

On the suite's scale R = 1/2 sum_i P_i (w_i - w*_i)^2 in the loss mean NLL + lambda R / N, with
P = N_t Omega and N_t the points of the last task: lambda = `kl_weight` is the paper's lambda, if
all tasks have equally many points.

The code differs in three more ways: it squares the gradient of each mini-batch's mean loss, where
here each point's is squared, as in `vcl_radial.methods.ewc`; it limits each Omega_i of a task to
10^-4 (`largest`); and a task after the first has a softmax over its own classes alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.config.ranges import Positive
from vcl_radial.curvature import diagonal_fisher
from vcl_radial.likelihoods import Categorical
from vcl_radial.methods.quadratic import QuadraticMethod
from vcl_radial.methods.tasks import Task


class EWCDR(QuadraticMethod):
    """Keep one anchor, and the mean over all tasks of the Fisher information of reversed logits.

    Args:
        largest: largest Omega_i of a task, in nats per squared weight; None for no limit.
        settings: settings of `Method`.

    Attributes:
        seen: labels of the classes that have come so far.
        points_seen: number of points of the finished tasks.
    """

    likelihoods = frozenset({"categorical"})

    def __init__(
        self, network: nn.Module, *, largest: Positive | None = None, **settings: Any
    ) -> None:
        super().__init__(network, **settings)
        self.largest = largest
        self.seen = torch.zeros(0, dtype=torch.long)
        self.points_seen = 0

    def end_task(self, task: Task) -> None:
        """Move the anchor, and take the task's Fisher of reversed logits into the mean."""
        labels = [y.cpu() for _, y in self.points()]
        self.seen = torch.unique(torch.cat([self.seen, *labels]))
        weights = self.trained_parameters()
        fisher = diagonal_fisher(
            self.network, weights, self.points(), likelihood=_ReversedLogits(self.seen)
        )
        if self.largest is not None:
            fisher = {name: F.clamp(max=self.largest * task.points) for name, F in fisher.items()}
        old = self.past.precision
        share = task.points / (self.points_seen + task.points)
        mean = {name: old[name].lerp(F, share) if name in old else F for name, F in fisher.items()}
        self.past.replace(weights, mean)
        self.points_seen += task.points

    def state_dict(self) -> dict[str, Any]:
        """The network, its past, and what has come so far."""
        return super().state_dict() | {"seen": self.seen, "points_seen": self.points_seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        self.seen, self.points_seen = state["seen"].cpu(), state["points_seen"]


class _ReversedLogits(Categorical):
    """A softmax of reversed logits over some of the classes."""

    def __init__(self, classes: Tensor) -> None:
        self.classes = classes

    def residual(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The gradient of log p in the logits, e_y - p in reversed ones; 0 in other classes."""
        classes = self.classes.to(outputs.device)
        residual = torch.zeros_like(outputs)
        residual[:, classes] = (-outputs[:, classes]).softmax(-1)
        residual[torch.arange(len(targets)), targets] -= 1
        return residual
