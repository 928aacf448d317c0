"""Online elastic weight consolidation (Kirkpatrick et al. 2017; Schwarz et al. 2018).

A Gaussian around the last task's weights stands for all finished tasks, its precision the decayed
sum of their diagonal Fisher informations (online EWC in Schwarz et al.):

    R_t(w) = 1/2 sum_i P_i (w_i - w*_i)^2,    P = gamma F*_{t-1},    F*_t = gamma F*_{t-1} + F_t

with F_t summed over the N_t points of task t, at its end. At gamma = 1 this is the Laplace
approximation carried from task to task, with the one anchor that Huszár (2018) derives; the prior
before the first task is flat.

The loss is mean NLL + lambda R / N with lambda = `kl_weight`. It is the paper's lambda if the NLL
and the Fisher are both sums over the data, so that 1 is Bayes' rule. It is also the lambda of code
with a mean NLL and a mean Fisher, if all tasks have equally many points.

Avalanche's `EWCPlugin(mode="online")` differs: it squares the gradient of each mini-batch's mean
loss and takes the mean over mini-batches, so that its lambda depends on the batch size, it has no
factor 1/2, and its gamma decays the sum but not the penalty.
"""

from __future__ import annotations

from typing import Any, Literal

from torch import nn

from vcl_radial.config.ranges import Share
from vcl_radial.curvature import diagonal_fisher
from vcl_radial.methods.quadratic import QuadraticMethod
from vcl_radial.methods.tasks import Task


class EWC(QuadraticMethod):
    """Keep one anchor, and the decayed sum of all tasks' diagonal Fisher informations.

    Args:
        gamma: factor of the past's precision at each task, from 0 to 1.
        fisher: "empirical" takes the labels of the data, "predictive" the expectation under the
            model's predictive distribution, which van de Ven (2025) finds better; see
            `vcl_radial.curvature.diagonal_fisher`.
        settings: settings of `Method`.
    """

    grows = True

    def __init__(
        self,
        network: nn.Module,
        *,
        gamma: Share = 1.0,
        fisher: Literal["empirical", "predictive"] = "empirical",
        **settings: Any,
    ) -> None:
        super().__init__(network, **settings)
        self.gamma, self.fisher = gamma, fisher

    def end_task(self, task: Task) -> None:
        """Move the anchor and add the Fisher of the body and of the trained heads."""
        weights = self.trained_parameters()
        fisher = diagonal_fisher(self.network, weights, self.points(), self.fisher, self.likelihood)
        self.past.carry(weights, fisher, self.gamma)
