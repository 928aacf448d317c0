"""The base class of SWAG and SGLD: the iterates of a task's last steps are its posterior.

After the first `collect_from` of a task's steps, every `collect_every`-th step leaves an iterate
w_s, s = 1..S. Over them, for each weight,

    mean_i = 1/S sum_s w_si,    var_i = 1/S sum_s (w_si - mean_i)^2

At the end of the task the network takes the means. Carried to the next task is the diagonal alone,
as the quadratic penalty

    R(w) = 1/2 sum_i P_i (w_i - mean_i)^2,    P_i = min(1 / var_i, N max_curvature)

in the loss mean NLL + kl_weight R / N, N the task's number of points. P replaces the last precision
and is not added to it, because the last penalty held the iterates too. A weight that no gradient
moved (var = 0) keeps its last precision. Gradient steps of rate r need r P_i kl_weight / N < 2 in
the next task, which `max_curvature` ensures where tasks have equally many points: the iterates of a
task without errors hardly vary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.optim import Optimizer

from vcl_radial.config.ranges import Count, Positive, ShareBelowOne
from vcl_radial.methods.quadratic import QuadraticMethod
from vcl_radial.methods.tasks import Task


class Iterates:
    """The moments of a sequence of weights, and its last K members.

    Args:
        kept: K, the number of iterates to keep.

    Attributes:
        count: S by parameter name.
        mean: the mean by parameter name.
        squares: sum of squared deviations from the mean by parameter name.
        last: the last K iterates by parameter name, `[K, *shape]`; iterate s is in row s mod K.
    """

    def __init__(self, kept: int) -> None:
        self.kept = kept
        self.count: dict[str, int] = {}
        self.mean: dict[str, Tensor] = {}
        self.squares: dict[str, Tensor] = {}
        self.last: dict[str, Tensor] = {}

    @torch.no_grad()
    def add(self, weights: Mapping[str, Tensor]) -> None:
        """Add one iterate, by Welford's update."""
        for name, weight in weights.items():
            if name not in self.count:
                self.count[name] = 0
                self.mean[name] = torch.zeros_like(weight)
                self.squares[name] = torch.zeros_like(weight)
                self.last[name] = weight.new_zeros(self.kept, *weight.shape)
            self.last[name][self.count[name] % self.kept] = weight
            self.count[name] += 1
            deviation = weight - self.mean[name]
            self.mean[name].add_(deviation / self.count[name])
            self.squares[name].addcmul_(deviation, weight - self.mean[name])

    def variance(self, name: str) -> Tensor:
        """Var of a weight, of the parameter's shape."""
        return self.squares[name] / self.count[name]

    def rows(self, name: str) -> Tensor:
        """The iterates that are kept of a weight, `[min(S, K), *shape]`."""
        return self.last[name][: self.count[name]]

    def state_dict(self) -> dict[str, Any]:
        """The moments and the last iterates, as plain tensors and numbers."""
        return {key: dict(value) for key, value in vars(self).items() if key != "kept"}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore what `state_dict` returned, on a device."""
        self.count = dict(state["count"])
        for key in ("mean", "squares", "last"):
            copies = {name: part.to(device, copy=True) for name, part in state[key].items()}
            setattr(self, key, copies)


class IterateMethod(QuadraticMethod):
    """A method that predicts by draws from the iterates, and carries their diagonal Gaussian.

    Subclasses define `draw`. The heads of other tasks are drawn from their diagonal Gaussians.
    Before the first iterate of a task, its predictions take the weights as they are. Batch norms
    keep the averages of training.

    Args:
        kept: number of iterates that are kept for predictions, the last ones.
        collect_from: share of a task's steps before the first iterate.
        collect_every: steps from one iterate to the next.
        max_curvature: largest carried precision per point of the task, above 0.
        settings: settings of `Method`.

    Attributes:
        iterates: the iterates of the current task, or of the last one.
        resting: variances of the heads of other tasks, by parameter name.

    Raises:
        UserError: an option is out of its range, or the weights have a posterior.
    """

    carries = "the mean of the last iterates and their diagonal precision; iterates to predict"
    recipe_keys = frozenset({"eval_samples"})

    def __init__(
        self,
        network: nn.Module,
        *,
        kept: Count = 20,
        collect_from: ShareBelowOne = 0.5,
        collect_every: Count = 4,
        max_curvature: Positive = 5.0,
        **settings: Any,
    ) -> None:
        super().__init__(network, **settings)
        self.collect_from, self.collect_every = collect_from, collect_every
        self.kept, self.max_curvature = kept, max_curvature
        self.iterates = Iterates(kept)
        self.resting: dict[str, Tensor] = {}
        self._steps = 0
        self._drawing = False

    def begin_task(self, task: Task) -> None:
        """Start with no iterates."""
        super().begin_task(task)
        variances = {name: self.iterates.variance(name) for name in self.iterates.count}
        in_use = self.parameters_in_use()
        self.resting = {n: v for n, v in (self.resting | variances).items() if n not in in_use}
        self.iterates, self._steps = Iterates(self.kept), 0

    def step(self, optimizer: Optimizer) -> None:
        """Update the weights, and collect them where an iterate is due."""
        super().step(optimizer)
        since = self._steps - int(self.collect_from * self.task.steps)
        self._steps += 1
        if since >= 0 and since % self.collect_every == 0:
            self.iterates.add(self.trained_parameters())

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        """Move the weights and the anchor to the means, and carry the precision."""
        weights = {n: w for n, w in self.trained_parameters().items() if n in self.iterates.count}
        precisions = {}
        for name, weight in weights.items():
            weight.copy_(self.iterates.mean[name])
            variance = self.iterates.variance(name)
            last = self.past.precision.get(name, torch.zeros_like(variance))
            precision = variance.reciprocal().clamp(max=self.max_curvature * task.points)
            precisions[name] = torch.where(variance > 0, precision, last)
        self.past.replace(weights, precisions)

    def draw(self) -> dict[str, Tensor]:
        """Draw the weights that have iterates, by parameter name."""
        raise NotImplementedError

    def output(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """The outputs `[B, C]`, under a draw of the weights inside `draws`."""
        if not self._drawing:
            return super().output(x, task)
        weights = self.draw() if self.iterates.count else {}
        for name, weight in self.network.named_parameters():
            if name in self.resting:
                weights[name] = weight + self.resting[name].sqrt() * torch.randn_like(weight)
        output: Tensor = functional_call(
            self.network, weights, (x, task) if self.with_task else (x,)
        )
        return output

    def draws(self, x: Tensor, task: int | Tensor = 0, **settings: Any) -> Tensor:
        """Outputs `[S, B, C]` under draws from the iterates."""
        self._drawing = True
        try:
            return super().draws(x, task, **settings)
        finally:
            self._drawing = False

    def state_dict(self) -> dict[str, Any]:
        """The network, its past, and the iterates."""
        return super().state_dict() | {
            "iterates": self.iterates.state_dict(),
            "resting": dict(self.resting),
            "steps": self._steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        self.iterates.load_state_dict(state["iterates"], self.device)
        self.resting = {name: v.to(self.device) for name, v in state["resting"].items()}
        self._steps = int(state["steps"])
