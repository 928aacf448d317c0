"""Variational continual learning (Nguyen, Li, Bui and Turner 2018).

Each task's approximate posterior is the next task's prior:

    q_t = argmin_q  E_q[ -log p(D_t | w) ] + KL(q || q_{t-1}),    q_0 = N(0, I)

With a Gaussian family this is Gaussian VCL (Eq. 4 there, without a coreset). With a radial one
(Farquhar, Osborne and Gal 2020, section 4.2) the KL holds the Jacobian term that their Eq. 44 is
missing, in closed form: see `vcl_radial.posteriors.radial_kl`.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from vcl_radial.nn import consolidate, kl_divergence
from vcl_radial.strategies.base import ContinualStrategy


class VCL(ContinualStrategy):
    """Carry the posterior of the body and of the trained heads forward as their prior.

    `penalty_weight` is the factor of the KL: at 1 the loss is the negative evidence lower bound
    over N, below 1 it is tempered.
    """

    def penalty(self) -> Tensor:
        """KL(q || p) of the body and the heads in use, in nats (or its gradient only)."""
        return kl_divergence(self.network, self.tasks, self.loss_value)

    def consolidate(self, experience: Any) -> None:
        """Make the posterior the prior; heads of other tasks keep theirs."""
        consolidate(self.network, experience.task_labels)
