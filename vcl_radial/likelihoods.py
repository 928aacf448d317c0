"""What a network's outputs say about targets: the likelihoods of the suite.

A likelihood turns outputs f(x; w) under draws of the weights into a loss, a predictive
distribution, and the directions in which the outputs' negative log-likelihood curves.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid, one_hot

from vcl_radial.objectives import categorical_nll


class Likelihood(ABC):
    """p(y | f), f the outputs of a network."""

    name: ClassVar[str]
    """By which methods say what they serve."""

    @abstractmethod
    def nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """-log p(y | f) averaged over samples and points, a scalar in nats.

        Shapes: outputs `[S, B, C]` (one slice per weight sample) or `[B, C]`, targets `[B]`.
        """

    @abstractmethod
    def mean_output(self, outputs: Tensor) -> Tensor:
        """What several samples of outputs `[S, B, C]` say together, `[B, C]`."""

    @abstractmethod
    def predictive(self, outputs: Tensor) -> Any:
        """p(y | x) of outputs under draws of the weights, `[S, B, C]`."""

    @abstractmethod
    def hessian_root(self, outputs: Tensor, targets: Tensor) -> list[Tensor]:
        """Columns of S with S S' = Hessian of -log p(y | f) in f; outputs and columns `[B, C]`."""

    @abstractmethod
    def residual(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """D -log p(y | f) / df, `[B, C]`."""


class Categorical(Likelihood):
    """One of C classes: p(y | f) = softmax(f)_y, with f the logits."""

    name = "categorical"

    def nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy."""
        return categorical_nll(outputs, targets)

    def mean_output(self, outputs: Tensor) -> Tensor:
        """The log of the mean probability over the samples, nats."""
        return outputs.log_softmax(-1).logsumexp(0) - math.log(len(outputs))

    def predictive(self, outputs: Tensor) -> Tensor:
        """Log 1/S sum_s softmax(f_s), `[B, C]` in nats."""
        return self.mean_output(outputs)

    def hessian_root(self, outputs: Tensor, targets: Tensor) -> list[Tensor]:
        """Column c is sqrt(p_c) (p - e_c), of S S' = diag(p) - p p'."""
        p, unit = outputs.softmax(-1), torch.eye(outputs.shape[-1]).to(outputs)
        return [p[:, c, None].sqrt() * (p - unit[c]) for c in range(len(unit))]

    def residual(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """P - e_y."""
        return outputs.softmax(-1) - one_hot(targets, outputs.shape[-1])


class Bernoulli(Likelihood):
    """Yes or no: p(y = 1 | f) = sigmoid(f), with one output f `[B, 1]`."""

    name = "bernoulli"

    def nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean binary cross-entropy."""
        logits = outputs.squeeze(-1)
        return binary_cross_entropy_with_logits(logits, targets.to(logits).expand_as(logits))

    def mean_output(self, outputs: Tensor) -> Tensor:
        """The logit of the mean probability over the samples."""
        yes, no = logsigmoid(outputs).logsumexp(0), logsigmoid(-outputs).logsumexp(0)
        return yes - no

    def predictive(self, outputs: Tensor) -> Tensor:
        """Log 1/S sum_s p_s of 0 and of 1, `[B, 2]` in nats."""
        both = torch.cat([logsigmoid(-outputs), logsigmoid(outputs)], dim=-1)
        return both.logsumexp(0) - math.log(len(outputs))

    def hessian_root(self, outputs: Tensor, targets: Tensor) -> list[Tensor]:
        """sqrt(p (1 - p))."""
        p = outputs.sigmoid()
        return [(p * (1 - p)).sqrt()]

    def residual(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """P - y."""
        return outputs.sigmoid() - targets.to(outputs).unsqueeze(-1)
