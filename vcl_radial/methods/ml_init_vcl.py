"""Variational continual learning from a maximum-likelihood start (Nguyen et al. 2018).

Before the first task's variational training the posterior's means are trained as point estimates,

    m_1 <- argmin_m  -log p(D_1 | w = m)

while the scales keep their (small) initial value and the prior stays N(0, I). The mean-field bound
with a wide posterior is hard to optimise from random means; here the optimisation starts at means
that already fit the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from vcl_radial.config.ranges import CountOrZero
from vcl_radial.methods.tasks import WarmUp
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.nn.rdp import RDPBlock, RDPWeights
from vcl_radial.nn.weights import drawn_by

_NO_NOISE = -30.0
"""A rho whose scale, 1e-13, is below the rounding of relevant means."""


class MLInitVCL(VCL):
    """VCL whose means start at the maximum-likelihood solution.

    Args:
        ml_epochs: passes over a task that train the means alone; by default the number of epochs.
        every_task: train the means before every task, from the last means, and not only before the
            first.
        settings: settings of `Method`.

    Raises:
        UserError: `ml_epochs` is below 0.
    """

    grows = True

    def __init__(
        self,
        network: nn.Module,
        *,
        ml_epochs: CountOrZero | None = None,
        every_task: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(network, **settings)
        self.ml_epochs, self.every_task = ml_epochs, every_task
        self.started = False

    def warm_up(self) -> WarmUp | None:
        """Train the means on the task as point estimates, with fixed scales."""
        if self.started and not self.every_task:
            return None
        epochs = self.task.epochs if self.ml_epochs is None else self.ml_epochs
        return WarmUp(epochs, self._maximum_likelihood())

    @contextmanager
    def _maximum_likelihood(self) -> Iterator[None]:
        """Make the loss the NLL at the means, inside the context."""
        weight, self.kl_weight = self.kl_weight, 0.0
        try:
            with _without_noise(self.network), _directions_at_means(self.network):
                yield
        finally:
            self.kl_weight, self.started = weight, True

    def state_dict(self) -> dict[str, Any]:
        """The state of every method, and whether the first task is over."""
        return super().state_dict() | {"started": self.started}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        self.started = state["started"]


@contextmanager
def _without_noise(network: nn.Module) -> Iterator[None]:
    """Make blocks of a location-scale family draw their means; restore the noise at the end."""
    blocks = [m for m in network.modules() if isinstance(m, PosteriorBlock)]
    noises = [
        [(name, p.detach().clone()) for name, p in block.named_parameters() if name != "mean"]
        for block in blocks
    ]
    with torch.no_grad():
        for block in blocks:
            block.rho.fill_(_NO_NOISE)
    try:
        yield
    finally:
        with torch.no_grad():
            for block, noise in zip(blocks, noises, strict=True):
                for name, value in noise:
                    block.get_parameter(name).copy_(value)


@contextmanager
def _directions_at_means(network: nn.Module) -> Iterator[None]:
    """Use radii and directions at their means, inside the context.

    The length of a mean also depends on the concentration and on the scale of the radius. Both are
    frozen, so that the trained mean is the mean of the posterior afterwards.
    """
    layers = [m for m in network.modules() if isinstance(m, RDPWeights)]
    blocks = [m for m in network.modules() if isinstance(m, RDPBlock)]
    frozen = [p for m in blocks for p in (m.log_concentration, m.rho) if p.requires_grad]
    for parameter in frozen:
        parameter.requires_grad_(False)
    try:
        with drawn_by(layers, lambda layer: layer.mean):
            yield
    finally:
        for parameter in frozen:
            parameter.requires_grad_(True)
