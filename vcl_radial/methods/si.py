"""Synaptic intelligence (Zenke, Poole and Ganguli 2017).

The importance of a weight is its contribution to the decrease of the task's loss along the path of
training, relative to its squared total change (Eq. 3 to 5 there):

    omega_i = - sum_steps g_i (w_i' - w_i)
    Omega_i = sum_{s < t} omega_{s,i} / (Delta_{s,i}^2 + xi)
    loss = L + c sum_i Omega_i (w_i - w*_i)^2

with w -> w' a step of the optimiser, g the gradient of the mini-batch before it, Delta_s the total
change of the weight in task s, xi the damping, w* the weights at the end of the last task.

g is the gradient of the task's loss *without* the penalty, so that the omegas sum to the decrease
of the mean NLL, as in the code of the paper and the code of Hsu et al. (2018). The code of van de
Ven et al. (2022) takes the gradient with the penalty. As in the code of the paper, the sum Omega is
clamped at 0 from below.

On the suite's scale R = 1/2 sum_i P_i (w_i - w*_i)^2 in the loss mean NLL + lambda R / N, with
P = 2 sum_s N_s omega_s / (Delta_s^2 + xi): lambda = `kl_weight` is the paper's c, if all tasks have
equally many points.

Avalanche's `SynapticIntelligencePlugin` differs: on a CPU, its copy of the weights before a step is
a view of the weights, so that all its importances stay 0; it takes the gradient with the penalty,
has a factor 1/2, and clamps Omega at 0.001 from above.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vcl_radial.config.ranges import Positive
from vcl_radial.methods.quadratic import QuadraticMethod
from vcl_radial.methods.tasks import Task


class SI(QuadraticMethod):
    """Keep one anchor, and the sum of all tasks' damped path integrals.

    A step takes four more passes over the weights. Between tasks only the penalty is kept; in the
    middle of a task the state includes the path integral.

    Args:
        xi: damping, in squared weights, above 0.
        settings: settings of `Method`.
    """

    grows = True

    def __init__(self, network: nn.Module, *, xi: Positive = 0.1, **settings: Any) -> None:
        super().__init__(network, **settings)
        self.xi = xi
        self.omega: dict[str, Tensor] = {}
        """The path integral of the current task so far, in nats per training point."""
        self._start: dict[str, Tensor] = {}
        self._in_task = False
        self._step: list[tuple[str, nn.Parameter, Tensor, Tensor]] = []

    def end_task(self, task: Task) -> None:
        """Move the anchor and add the importances of the body and of the trained heads."""
        weights = self.trained_parameters()
        importances = {
            name: 2 * task.points * self.omega[name] / ((w - self._start[name]).square() + self.xi)
            for name, w in weights.items()
        }
        self.past.carry(weights, importances)
        self._in_task = False

    @torch.no_grad()
    def begin_task(self, task: Task) -> None:
        """Store the weights at the start of the task."""
        super().begin_task(task)
        in_use = self.parameters_in_use()
        self._start = {name: weight.detach().clone() for name, weight in in_use.items()}
        self.omega = {name: torch.zeros_like(weight) for name, weight in in_use.items()}
        self._in_task = True

    def backward(self, loss: Tensor) -> Tensor:
        """Compute the gradients, and store the gradients of the task's loss without the penalty."""
        loss = super().backward(loss)
        with torch.no_grad():
            in_use = self.parameters_in_use()
            slopes = self.past.gradient(in_use)
            scale = self.kl_weight / self.task.points
            self._step = []
            for name, weight in in_use.items():
                if weight.grad is not None:
                    if name not in self.omega:  # frozen where the task began
                        self.omega[name] = torch.zeros_like(weight)
                        self._start[name] = weight.detach().clone()
                    gradient = weight.grad.clone()
                    if name in slopes:
                        gradient.sub_(slopes[name], alpha=scale)
                    self._step.append((name, weight, gradient, weight.detach().clone()))
        return loss

    def step(self, optimizer: Optimizer) -> None:
        """Update the weights, and add the step to the path integral."""
        super().step(optimizer)
        with torch.no_grad():
            for name, weight, gradient, start in self._step:
                self.omega[name].addcmul_(gradient, start.sub_(weight))

    def state_dict(self) -> dict[str, Any]:
        """The network and its past; in the middle of a task, the path integral so far too."""
        return super().state_dict() | ({"omega": self.omega} if self._in_task else {})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        if "omega" in state:
            self.omega = {
                name: path.to(self.device, copy=True) for name, path in state["omega"].items()
            }
