"""Variational continual learning (Nguyen, Li, Bui and Turner 2018).

Each task's approximate posterior is the next task's prior:

    q_t = argmin_q  E_q[ -log p(D_t | w) ] + KL(q || q_{t-1}),    q_0 = N(0, I)

With a Gaussian family this is Gaussian VCL (Eq. 4 there, without a coreset). With a radial one
(Farquhar, Osborne and Gal 2020, section 4.2) the KL holds the Jacobian term that their Eq. 44 is
missing, in closed form: see `vcl_radial.posteriors.radial_kl`.

Swaroop, Nguyen, Bui and Turner (2019) start the optimisation of each task with little noise, as
`restart` does. q_(t-1) itself has much noise in every weight that no task has needed. The objective
is the same; only the start of its optimisation differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vcl_radial.methods.base import STEP, Method
from vcl_radial.methods.tasks import Task
from vcl_radial.nn import (
    ClosedFormGradients,
    PosteriorBlock,
    consolidate,
    kl_divergence,
    posterior_blocks,
    restart_noise,
)
from vcl_radial.nn.lane_step import LaneStep
from vcl_radial.nn.movement import movement


class VCL(Method):
    """Carry the posterior of the body and of the trained heads forward as their prior.

    `kl_weight` is the factor of the KL: at 1 the loss is the negative evidence lower bound
    over N, below 1 it is tempered.

    Where possible, training takes the gradient in closed form, which costs little more than a
    network with point estimates (see `vcl_radial.nn.closed_form`); the loss then includes the KL's
    value only if `loss_value` is set. Plain autograd is used where other code adds to the loss or
    reads `.grad`, a subclass overrides the penalty, the loss or the step, or a family or a layer
    has no closed form.

    Args:
        restart: begin every task with the initial noise of the first task, at the means of the last
            posterior.
        settings: settings of `Method`.

    Raises:
        UserError: the network has no posterior.
    """

    carries = "the posterior (mean, scale, and a factor if correlated), which becomes the prior"
    grows = True

    posteriors = frozenset({"any"})
    lane_step = LaneStep
    lane_options: ClassVar[frozenset[str]] = frozenset({"restart"})

    _closed_form: ClosedFormGradients | None = None
    _blocks: list[PosteriorBlock]

    def __init__(self, network: nn.Module, *, restart: bool = False, **settings: Any) -> None:
        super().__init__(network, **settings)
        self.restart = restart

    def begin_task(self, task: Task) -> None:
        """Restart the noise, if the option is set; prepare the closed-form gradients, if any."""
        if self.restart:
            restart_noise(self.network, task.heads)
        super().begin_task(task)
        self.release()  # an interrupted task has not ended
        self._blocks = posterior_blocks(self.network, self.heads)
        self.take_over(VCL)

    def take_over(self, like: type[VCL]) -> None:
        """Prepare the closed-form gradients if they exist and that class defines the step."""
        if (
            all(getattr(type(self), part) is getattr(like, part) for part in _PARTS)
            and not self.gradients_are_read
            and ClosedFormGradients.serves(self.network)
        ):
            self._closed_form = ClosedFormGradients(self.network)

    @property
    def gradient_elsewhere(self) -> bool:
        """Whether the step of a subclass may add the gradient, or the closed form adds it."""
        overridden = any(getattr(type(self), part) is not getattr(VCL, part) for part in STEP)
        return overridden or self._closed_form is not None

    def penalty(self) -> Tensor | float:
        """KL(q || p) of the body and the heads in use, in nats."""
        if self._closed_form is None:
            return kl_divergence(self.network, self.heads)
        if not self.loss_value:
            return 0.0
        with torch.no_grad():
            return kl_divergence(self.network, self.heads)

    def step(self, optimizer: Optimizer) -> None:
        """Take a step along the gradient of NLL and KL."""
        self.step_along(optimizer, ())

    def step_along(self, optimizer: Optimizer, free_means: Sequence[PosteriorBlock]) -> None:
        """Take a step; in closed form it leaves out the KL's gradient in `free_means`."""
        if self._closed_form is not None:
            factor = self.kl_weight / self.task.points
            if not self._closed_form.before_step(optimizer, self._blocks, factor, free_means):
                return
        super().step(optimizer)

    def end_task(self, task: Task) -> None:
        """Make the posterior the prior; the priors of other tasks' heads do not change."""
        self.release()
        self.movement = movement(self.network, task.heads)
        consolidate(self.network, task.heads)

    def forget_caches(self) -> None:
        """Drop the scales that the compiled pass keeps; it computes them from the rhos again."""
        if self._closed_form is not None:
            self._closed_form.release()
            self._closed_form = ClosedFormGradients(self.network)

    def release(self) -> None:
        """Let the layers draw their weights again."""
        if self._closed_form is not None:
            self._closed_form.release()
            self._closed_form = None


_PARTS = ("penalty", "loss", "backward", "step")
"""Methods of a step whose overrides in a subclass the closed form would skip."""
