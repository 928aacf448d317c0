"""Elastic weight consolidation with a penalty for each task (Kirkpatrick et al. 2017, Eq. 3).

    R_t(w) = sum_{s < t} 1/2 sum_i F_{s,i} (w_i - w*_{s,i})^2

with w*_s the weights at the end of task s and F_s the diagonal Fisher information there, summed
over the N_s points of the task. The sum is stored as one quadratic, so that neither memory nor a
step grows with the number of tasks. Huszár (2018) notes that the anchors w*_s after the first
already depend on the penalties before them, so that early tasks count more than once;
`vcl_radial.methods.ewc` has one anchor instead.

The module `ewc` explains lambda = `kl_weight` and how Avalanche's plugin differs; the same holds
for the plugin's `mode="separate"`. The implementation of van de Ven et al. (2022) uses the Fisher
under the model's predictive distribution by default: `fisher = "predictive"` here.
"""

from __future__ import annotations

from typing import Any, Literal

from torch import nn

from vcl_radial.curvature import diagonal_fisher
from vcl_radial.methods.quadratic import QuadraticMethod
from vcl_radial.methods.tasks import Task


class SeparateEWC(QuadraticMethod):
    """Keep an anchor and a diagonal Fisher information for each finished task.

    Args:
        fisher: "empirical" takes the labels of the data, "predictive" the expectation under the
            model's predictive distribution; see `vcl_radial.curvature.diagonal_fisher`.
        settings: settings of `Method`.
    """

    carries = "an anchor and a diagonal Fisher information for each finished task"
    grows = True

    def __init__(
        self,
        network: nn.Module,
        *,
        fisher: Literal["empirical", "predictive"] = "empirical",
        **settings: Any,
    ) -> None:
        super().__init__(network, **settings)
        self.fisher = fisher

    def end_task(self, task: Task) -> None:
        """Add the finished task's penalty on the body and on the trained heads."""
        weights = self.trained_parameters()
        fisher = diagonal_fisher(self.network, weights, self.points(), self.fisher, self.likelihood)
        self.past.add(weights, fisher)
