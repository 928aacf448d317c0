"""Training of a Bayesian network as in the suite's runs, one epoch at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vcl_radial.errors import Diverged
from vcl_radial.likelihoods.objectives import categorical_nll
from vcl_radial.nn import ClosedFormGradients, PosteriorBlock, posterior_blocks


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
    optimizer = torch.optim.Adam(
        [{"params": [getattr(b, name) for b in blocks], "lr": lr} for name, lr in rates.items()]
    )
    for epoch in range(1, recipe.epochs + 1):
        _train_epoch(network, blocks, optimizer, x, y, recipe)
        yield epoch


def _train_epoch(
    network: nn.Module,
    blocks: list[PosteriorBlock],
    optimizer: torch.optim.Optimizer,
    x: Tensor,
    y: Tensor,
    recipe: Recipe,
) -> None:
    closed_form = ClosedFormGradients(network)
    order = torch.randperm(len(x))
    loss = torch.zeros(())
    try:
        for start in range(0, len(x) - recipe.batch_size + 1, recipe.batch_size):
            rows = order[start : start + recipe.batch_size]
            logits = torch.stack([network(x[rows]) for _ in range(recipe.samples)])
            loss = categorical_nll(logits, y[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            closed_form.before_step(optimizer, blocks, 1 / len(x))
            optimizer.step()
    finally:
        closed_form.release()
    if not math.isfinite(loss.item()):
        raise Diverged("the loss is no longer a finite number: lower the learning rate")
