"""SWA-Gaussian (Maddox et al. 2019), carried forward.

The posterior of a task is a Gaussian around the mean of the optimiser's last iterates, low rank
plus diagonal (their section 3.3):

    q(w) = N(mean, (diag(var) + D D' / (K - 1)) / 2)

with the columns of D the deviations of the last K iterates from the mean. Their deviations are from
the running mean at each iterate; here they are from the mean of all. Predictions draw from q. The
next task's penalty takes mean and var alone, see `vcl_radial.methods.iterates`; the prior before
the first task is flat. The paper has no sequence of tasks. Its weight decay is the optimiser's, and
its new averages of batch norms are left out.

The variance of the iterates depends on the learning rate and the batch size: near a minimum of the
NLL it is about r / (2 B) under SGD, whatever the curvature (Mandt, Hoffman and Blei 2017). A
schedule should not end at a rate of 0, where iterates do not move.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.config.ranges import Count
from vcl_radial.methods.iterates import IterateMethod


class SWAG(IterateMethod):
    """Predict by draws from a Gaussian of the last iterates; carry its mean and diagonal.

    Args:
        rank: K, the number of deviations in addition to the diagonal.
        settings: settings of `IterateMethod`.
    """

    fixed_options = frozenset({"kept"})

    def __init__(self, network: nn.Module, *, rank: Count = 20, **settings: Any) -> None:
        super().__init__(network, kept=rank, **settings)

    def draw(self) -> dict[str, Tensor]:
        """Mean + sqrt(var / 2) z + D z' / sqrt(2 (K - 1)) of all weights, with one z'."""
        iterates, weights = self.iterates, {}
        along = torch.randn(self.kept, device=self.device)
        for name, mean in iterates.mean.items():
            rows = iterates.rows(name)
            noise = (iterates.variance(name) / 2).sqrt() * torch.randn_like(mean)
            scale = 1 / math.sqrt(2 * max(len(rows) - 1, 1))
            weights[name] = mean + noise
            weights[name] += scale * torch.tensordot(along[: len(rows)].to(mean), rows - mean, 1)
        return weights
