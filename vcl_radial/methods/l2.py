"""L2 to the old weights: a quadratic penalty of equal strength on all weights.

    R_t(w) = 1/2 sum_i (w_i - w*_i)^2

with w* the weights at the end of the last task: the reference of Kirkpatrick et al. (2017, Fig. 2)
and of Hsu et al. (2018, Table 2), where all importances are 1. As a prior it is N(w*, 1/lambda)
for every weight, lambda = `kl_weight`.

The loss is mean NLL + lambda R / N. Code that adds lambda' ||w - w*||^2 to the mean NLL, such as
the code of Hsu et al., has lambda' = lambda / (2 N). Avalanche has no such plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.methods.quadratic import QuadraticMethod
from vcl_radial.methods.tasks import Task
from vcl_radial.nn.parameters import parameters_of_heads


class L2(QuadraticMethod):
    """loss = mean NLL + kl_weight / 2 ||w - w_old||^2 / N.

    Args:
        heads: whether the penalty includes the heads.
        from_start: whether the first task has a penalty too, around the network's initial weights.
        settings: settings of `Method`.
    """

    carries = "one anchor, the last task's weights"
    grows = True

    def __init__(
        self, network: nn.Module, *, heads: bool = True, from_start: bool = False, **settings: Any
    ) -> None:
        super().__init__(network, **settings)
        self.pulls_heads, self.from_start = heads, from_start

    def begin_task(self, task: Task) -> None:
        """Anchor the first task at the initial weights, if `from_start` is set."""
        super().begin_task(task)
        if self.from_start and not self.past.precision:
            self._anchor(self.parameters_in_use())

    def end_task(self, task: Task) -> None:
        """Anchor the body and the trained heads at their current weights."""
        self._anchor(self.trained_parameters())

    def _anchor(self, weights: Mapping[str, Tensor]) -> None:
        if not self.pulls_heads:
            free = parameters_of_heads(self.network)
            weights = {name: w for name, w in weights.items() if id(w) not in free}
        self.past.replace(weights, {name: torch.ones_like(w) for name, w in weights.items()})
