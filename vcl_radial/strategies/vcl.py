"""Variational continual learning (Nguyen, Li, Bui and Turner 2018).

Each task's approximate posterior is the next task's prior:

    q_t = argmin_q  E_q[ -log p(D_t | w) ] + KL(q || q_{t-1}),    q_0 = N(0, I)

With a Gaussian family this is Gaussian VCL (Eq. 4 there, without a coreset). With a radial one
(Farquhar, Osborne and Gal 2020, section 4.2) the KL holds the Jacobian term that their Eq. 44 is
missing, in closed form: see `vcl_radial.posteriors.radial_kl`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from avalanche.training.plugins import EvaluationPlugin, LRSchedulerPlugin
from avalanche.training.plugins.clock import Clock
from avalanche.training.templates.base_sgd import PeriodicEval
from torch import Tensor

from vcl_radial.errors import UserError
from vcl_radial.nn import (
    ClosedFormGradients,
    PosteriorBlock,
    consolidate,
    kl_divergence,
    posterior_blocks,
)
from vcl_radial.nn.movement import movement
from vcl_radial.nn.weights import VariationalWeights
from vcl_radial.strategies.base import ContinualStrategy
from vcl_radial.strategies.callbacks import listens


class VCL(ContinualStrategy):
    """Carry the posterior of the body and of the trained heads forward as their prior.

    `penalty_weight` is the factor of the KL: at 1 the loss is the negative evidence lower bound
    over N, below 1 it is tempered.

    Where it can, training takes the gradient in closed form, which costs little more than a
    network with point estimates (see `vcl_radial.nn.closed_form`); the loss then holds the KL's
    value only if `loss_value` asks for it. Plain autograd serves by itself where a plugin may add
    to the loss or read the parameters' `.grad`, a subclass has a penalty, a criterion or a step of
    its own, or a family or a layer has no closed form of its own.
    """

    _closed_form: ClosedFormGradients | None = None
    _blocks: list[PosteriorBlock]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if not any(isinstance(m, VariationalWeights) for m in self.network.modules()):
            raise UserError(
                f"{type(self).__name__} carries a posterior forward, and the network has none: set "
                "posterior = 'radial', 'gaussian' or 'rdp'"
            )

    def penalty(self) -> Tensor | float:
        """KL(q || p) of the body and the heads in use, in nats."""
        if self._closed_form is None:
            return kl_divergence(self.network, self.tasks)
        if not self.loss_value:
            return 0.0
        with torch.no_grad():
            return kl_divergence(self.network, self.tasks)

    def consolidate(self, experience: Any) -> None:
        """Make the posterior the prior; heads of other tasks keep theirs."""
        self.movement = movement(self.network, experience.task_labels)
        consolidate(self.network, experience.task_labels)

    def optimizer_step(self) -> None:
        """Step along the gradient of NLL and KL."""
        if self._closed_form is not None:
            self._closed_form.before_step(
                self.optimizer, self._blocks, self.penalty_weight / len(self.adapted_dataset)
            )
        super().optimizer_step()

    def _before_training_exp(self, **kwargs: Any) -> None:
        super()._before_training_exp(**kwargs)
        self._blocks = posterior_blocks(self.network, self.tasks)
        if (
            all(getattr(type(self), step) is getattr(VCL, step) for step in _STEPS)
            and not _reads_gradients(self.plugins)
            and ClosedFormGradients.serves(self.model)
        ):
            self._closed_form = ClosedFormGradients(self.model)

    def _after_training_exp(self, **kwargs: Any) -> None:
        if self._closed_form is not None:
            self._closed_form.release()
            self._closed_form = None
        super()._after_training_exp(**kwargs)


_STEPS = ("penalty", "criterion", "backward", "optimizer_step")
"""What of a step a subclass may have of its own, which the closed form would pass by."""

_WITH_GRADIENTS = (
    "before_training_iteration",
    "before_forward",
    "after_forward",
    "before_backward",
    "after_backward",
    "before_update",
    "after_update",
    "after_training_iteration",
)
"""Callbacks in which a plugin may add to the loss, or make or find gradients."""


def _reads_gradients(plugins: Iterable[Any]) -> bool:
    """Whether a plugin has a callback that may want `.grad` of means and rhos."""
    known = (Clock, EvaluationPlugin, LRSchedulerPlugin, PeriodicEval)
    return any(
        listens(plugin, event)
        for plugin in plugins
        if not isinstance(plugin, known)
        for event in _WITH_GRADIENTS
    )
