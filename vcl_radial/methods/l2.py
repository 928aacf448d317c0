"""L2 to the old weights: a pull of equal strength on all of them.

    R_t(w) = 1/2 sum_i (w_i - w*_i)^2

with w* the weights at the end of the last task: the reference of Kirkpatrick et al. (2017, Fig. 2)
and of Hsu et al. (2018, Table 2), where all importances are 1. As a prior it is N(w*, 1/lambda)
for every weight, lambda = `penalty_weight`.

The loss is mean NLL + lambda R / N. Code that adds lambda' ||w - w*||^2 to the mean NLL, as that of
Hsu et al. does, has lambda' = lambda / (2 N). Avalanche has no such plugin.
"""

from __future__ import annotations

import torch

from vcl_radial.methods.quadratic import QuadraticMethod
from vcl_radial.methods.tasks import Task


class L2(QuadraticMethod):
    """loss = mean NLL + penalty_weight / 2 ||w - w_old||^2 / N."""

    def end_task(self, task: Task) -> None:
        """Anchor the body and the trained heads where they are now."""
        weights = self.trained_parameters()
        self.past.replace(weights, {name: torch.ones_like(w) for name, w in weights.items()})
