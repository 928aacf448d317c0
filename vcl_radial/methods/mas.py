"""Memory aware synapses (Aljundi et al. 2018).

The importance of a weight is the sensitivity of the squared norm of the *outputs* to it; no label
is needed:

    Omega_i = 1/N sum_n | d ||f(x_n, w)||^2 / dw_i |
    loss = L + lambda sum_i Omega_i (w_i - w*_i)^2

(Eq. 2 and 3 and section 4.1 there), with f the logits of the head of the task, one gradient and one
absolute value per point, Omega summed over the finished tasks, and w* the weights at the end of the
last task.

On the suite's scale R = 1/2 sum_i P_i (w_i - w*_i)^2 in the loss mean NLL + lambda R / N, with
P = 2 sum_s N_s Omega_s: lambda = `kl_weight` is the paper's lambda, with a mean NLL as L, if all
tasks have equally many points.

Avalanche's `MASPlugin` differs: it takes the absolute value of the mean gradient of a mini-batch,
in which points of opposite sign cancel, and a moving average over tasks.
"""

from __future__ import annotations

from vcl_radial.curvature import output_sensitivity
from vcl_radial.methods.quadratic import QuadraticMethod
from vcl_radial.methods.tasks import Task


class MAS(QuadraticMethod):
    """Keep one anchor, and the sum of all tasks' output sensitivities."""

    grows = True

    def end_task(self, task: Task) -> None:
        """Move the anchor and add the sensitivity of the body and of the trained heads."""
        weights = self.trained_parameters()
        sensitivity = output_sensitivity(self.network, weights, self.points())
        self.past.carry(weights, {name: 2 * omega for name, omega in sensitivity.items()})
