"""Gaussian VCL as one would write it on stock Avalanche today: layer by layer, plain autograd."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from avalanche.models import MultiTaskModule
from avalanche.training.templates import SupervisedTemplate
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, relu, softplus


class PlainBayesianLinear(nn.Module):
    """A mean-field Gaussian layer whose weights are drawn anew at every call."""

    prior_mean: Tensor
    prior_scale: Tensor

    def __init__(self, in_features: int, out_features: int, rho: float) -> None:
        super().__init__()
        shape = (out_features, in_features + 1)  # the bias is the last column
        self.mean = nn.Parameter(torch.randn(shape) * math.sqrt(2 / in_features))
        self.rho = nn.Parameter(torch.full(shape, rho))
        self.register_buffer("prior_mean", torch.zeros(shape))
        self.register_buffer("prior_scale", torch.ones(shape))

    def forward(self, x: Tensor) -> Tensor:
        """Apply one draw of the layer."""
        w = self.mean + softplus(self.rho) * torch.randn_like(self.mean)
        return linear(x, w[:, :-1], w[:, -1])

    def kl(self) -> Tensor:
        """KL(q || p) in nats."""
        ratio = softplus(self.rho) / self.prior_scale
        shift = (self.mean - self.prior_mean) / self.prior_scale
        return 0.5 * (ratio.square() + shift.square() - 1 - 2 * ratio.log()).sum()

    @torch.no_grad()
    def consolidate(self) -> None:
        """Make the posterior the prior."""
        self.prior_mean.copy_(self.mean)
        self.prior_scale.copy_(softplus(self.rho))


class PlainMultiHeadMLP(MultiTaskModule):  # type: ignore[misc]
    """Hidden layers and a head for every task, with Avalanche's own way to the heads."""

    def __init__(
        self,
        layers: Sequence[tuple[int, int]],
        tasks: int,
        layer: Callable[[int, int], nn.Module],
    ) -> None:
        super().__init__()
        self.body = nn.ModuleList(layer(*sizes) for sizes in layers[:-1])
        self.heads = nn.ModuleList(layer(*layers[-1]) for _ in range(tasks))

    def forward_single_task(self, x: Tensor, task_label: int) -> Tensor:
        """Logits of one task's head."""
        x = x.flatten(1)
        for apply in self.body:
            x = relu(apply(x))
        logits: Tensor = self.heads[task_label](x)
        return logits


class PlainVCL(SupervisedTemplate):  # type: ignore[misc]
    """VCL on Avalanche's own loaders: loss = mean NLL + KL / N."""

    def _layers(self) -> list[PlainBayesianLinear]:
        heads = [self.model.heads[task] for task in self.experience.task_labels]
        return [*self.model.body, *heads]

    def criterion(self) -> Tensor:
        """The negative evidence lower bound over N."""
        kl = torch.stack([layer.kl() for layer in self._layers()]).sum()
        return cross_entropy(self.mb_output, self.mb_y) + kl / len(self.adapted_dataset)

    def _after_training_exp(self, **kwargs: Any) -> None:
        for layer in self._layers():
            layer.consolidate()
        super()._after_training_exp(**kwargs)
