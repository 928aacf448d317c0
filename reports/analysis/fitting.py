"""Training of a Bayesian network by the suite's trainer, one epoch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from torch import Tensor, nn
from torch.optim import Adam

import vcl_radial as vr
from vcl_radial.nn import posterior_blocks
from vcl_radial.training.source import Tasks


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        epochs: passes over the data.
        batch_size: images in a step; an incomplete batch is left out.
        learning_rate: Adam's learning rate for the means.
        rho_learning_rate: Adam's learning rate for rho, where sigma = softplus(rho).
        samples: draws of the weights in a step.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    rho_learning_rate: float
    samples: int


def fit(network: nn.Module, x: Tensor, y: Tensor, recipe: Recipe) -> Iterator[int]:
    """Minimise the mean NLL + KL(q || p) / N; yield the number of each finished epoch.

    Between two epochs the network is an ordinary network: it draws weights and can be measured.
    Random numbers come from PyTorch's global generator.

    Args:
        network: maps inputs `[B, ...]` to logits `[B, C]` under a fresh draw of the weights.
        x: inputs `[N, ...]`.
        y: labels `[N]`.
        recipe: how to train.

    Raises:
        Diverged: the loss is no longer a finite number.
    """
    blocks = posterior_blocks(network, [0])
    rates = {"mean": recipe.learning_rate, "rho": recipe.rho_learning_rate}
    groups = [{"params": [getattr(b, name) for b in blocks], "lr": r} for name, r in rates.items()]
    method = vr.VCL(network, train_samples=recipe.samples, loss_value=False)
    # The task does not end: its end would make the posterior the prior.
    endless = recipe.epochs + 1
    trainer = vr.Trainer(
        method, optimizer=lambda _: Adam(groups), epochs=endless, seed=None, measure=False
    )
    task = Tasks([(x, y)], batch_size=recipe.batch_size, drop_last=True)
    for epoch in islice(trainer.steps(task), recipe.epochs):
        method.release()
        yield epoch.epoch
        method.take_over(vr.VCL)
