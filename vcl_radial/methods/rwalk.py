"""Riemannian walk (Chaudhry, Dokania, Ajanthan and Torr 2018).

A weight's importance is its Fisher information plus a score: by how much it lowered the loss along
the path of training, per distance that the Fisher measures. After every Delta t steps (Eq. 6 to 8
of the paper, as the code of Avalanche numbers them)

    s_i <- s_i + max(0, dL_i) / (F_i (w_i' - w_i)^2 / 2 + xi),   dL_i = - sum_steps g_i dw_i
    F_i <- alpha mean_steps g_i^2 + (1 - alpha) F_i              (EWC++)

with g the gradient of a mini-batch's loss without the penalty, dw the move of a step, and w -> w'
the move over these steps. F runs on from task to task, and its first value is the first mean. At
the end of a task its score s is averaged with the past, S <- (S + s) / 2, where S of the first task
is s, and

    loss = L + lambda sum_i (F~_i + S~_i) (w_i - w*_i)^2

with ~ a shift and a scale to [0, 1] over all weights, and w* the weights at the end of the last
task.

On the suite's scale R = 1/2 sum_i P_i (w_i - w*_i)^2 in the loss mean NLL + lambda R / N, with
P = 2 N_t (F~ + S~) and N_t the points of the last task: lambda = `kl_weight` is the paper's lambda,
if all tasks have equally many points.

The code of the paper (facebookresearch/agem) has no factor 1/2, and adds (S + s) / 2 to S. It drops
the steps after the last full Delta t of a task, which here count as a shorter one. Avalanche's
`RWalkPlugin` averages the gradients' squares at every step, keeps negative dL until the end,
and has a xi of 10^-7; both terms are only scaled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vcl_radial.config.ranges import Count, Positive, Share
from vcl_radial.methods.si import SI
from vcl_radial.methods.tasks import Task


class RWalk(SI):
    """Keep one anchor, the running Fisher information, and the mean of the tasks' scores.

    A step takes six more passes over the weights. Between tasks the penalty, the Fisher information
    and the scores are kept; in the middle of a task also its sums so far.

    Args:
        alpha: weight of the newest steps in the running Fisher information.
        interval: Delta t, the number of steps between two updates.
        xi: damping, in nats per training point, above 0.
        settings: settings of `Method`.

    Attributes:
        fisher: F of each weight, per training point.
        score: S of each weight.
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        alpha: Share = 0.9,
        interval: Count = 10,
        xi: Positive = 1e-3,
        **settings: Any,
    ) -> None:
        super().__init__(network, xi=xi, **settings)
        self.alpha, self.interval = alpha, interval
        self.fisher: dict[str, Tensor] = {}
        self.score: dict[str, Tensor] = {}
        self._walked: dict[str, Tensor] = {}
        self._squares: dict[str, Tensor] = {}
        self._steps = 0

    def begin_task(self, task: Task) -> None:
        """Store the weights at the start of the task."""
        super().begin_task(task)
        self._walked, self._squares, self._steps = {}, {}, 0

    def step(self, optimizer: Optimizer) -> None:
        """Update the weights, and add the step to the path integral and to the squares."""
        super().step(optimizer)
        with torch.no_grad():
            for name, _, gradient, _ in self._step:
                if name in self._squares:
                    self._squares[name].addcmul_(gradient, gradient)
                else:
                    self._squares[name] = gradient.square()
            self._steps += 1
            if self._steps == self.interval:
                self._close()

    def _close(self) -> None:
        """End an interval: update the scores, then the Fisher information."""
        weights = self.parameters_in_use()
        for name, squares in self._squares.items():
            weight = weights[name].detach()
            fisher = self.fisher.get(name, torch.zeros_like(weight))
            distance = fisher * (weight - self._start[name]).square() / 2
            gain = self.omega[name].clamp(min=0) / (distance + self.xi)
            self._walked[name] = self._walked[name] + gain if name in self._walked else gain
            mean = squares / self._steps
            self.fisher[name] = fisher.lerp(mean, self.alpha) if name in self.fisher else mean
            self._start[name] = weight.clone()
            self.omega[name] = torch.zeros_like(weight)
        self._squares, self._steps = {}, 0

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        """Move the anchor, and average the scores of the body and of the trained heads."""
        if self._steps:
            self._close()
        for name, score in self._walked.items():
            self.score[name] = (self.score[name] + score) / 2 if name in self.score else score
        fisher, walked = normalised(self.fisher), normalised(self.score)
        weights = self.trained_parameters()
        scale = 2 * task.points
        self.past.replace(
            weights, {name: scale * (fisher[name] + walked[name]) for name in weights}
        )
        self._in_task = False

    def state_dict(self) -> dict[str, Any]:
        """The network, its past, Fisher and scores; in the middle of a task its sums so far too."""
        state = super().state_dict() | {"fisher": dict(self.fisher), "score": dict(self.score)}
        if self._in_task:
            sums = {"walked": self._walked, "squares": self._squares, "start": self._start}
            state["interval"] = {"steps": self._steps} | {k: dict(v) for k, v in sums.items()}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        self.fisher, self.score = self._placed(state["fisher"]), self._placed(state["score"])
        if "interval" in state:
            sums = state["interval"]
            self._steps = sums["steps"]
            self._walked, self._squares = (
                self._placed(sums["walked"]),
                self._placed(sums["squares"]),
            )
            self._start = self._placed(sums["start"])

    def _placed(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: value.to(self.device, copy=True) for name, value in tensors.items()}


def normalised(importances: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """(x - min) / (max - min) over all weights; 0 where all are equal."""
    if not importances:
        return {}
    least = min(float(x.min()) for x in importances.values())
    most = max(float(x.max()) for x in importances.values())
    return {name: (x - least) / (most - least + 1e-32) for name, x in importances.items()}
