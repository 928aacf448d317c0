"""Fully connected layers of R networks of one shape as lanes: point estimates and dropout here.

All parameters of all layers lie in one tensor `[R, P]`, a row for each lane, of which a layer is
handed its own columns. What is random in a draw is made beforehand, lane by lane, from the lane's
own generator: so a lane ends as the same run alone does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vcl_radial.native import Divergence
from vcl_radial.posteriors import Posterior


class Drawn(NamedTuple):
    """A layer under S draws in each of R lanes.

    Attributes:
        weight: `[R, S, out, in]`.
        bias: `[R, S, out]`.
        mask: a factor of the layer's inputs, `[R, S, B or 1, in]`, or None.
    """

    weight: Tensor
    bias: Tensor
    mask: Tensor | None = None


class CompiledLayer(NamedTuple):
    """What `vcl_radial.tracks.regression.compiled` has to know of a layer.

    Among its weights, biases included, weight (j, k) is at j row + k and bias j at bias +
    j bias_step. Where there are blocks the parameters are all means and then all rhos; else they
    are the weights.
    """

    inputs: int
    outputs: int
    row: int
    bias: int
    bias_step: int
    blocks: Sequence[tuple[Posterior, Divergence]] = ()
    """The prior of each block of groups, `[R, groups, D]`, and what the KL to it is called."""
    precision: Tensor | None = None
    """The prior precision of point estimates, `[R, p]`."""


class LaneLayer(ABC):
    """A layer's parameters, draws and divergence.

    Args:
        weight: the initial means of the weights, `[R, out, in]`.
        bias: those of the biases, `[R, out]`.
        prior_scale: of each lane's first prior N(0, prior_scale^2), `[R]`.
    """

    def __init__(self, weight: Tensor, bias: Tensor, prior_scale: Tensor) -> None:
        self.lanes, *shape = weight.shape
        self.shape = torch.Size(shape)
        self.prior_scale = prior_scale

    @abstractmethod
    def initial(self) -> Tensor:
        """The parameters to start from, `[R, p]`."""

    def noise(self, n: int, rows: int, lane: int, generator: torch.Generator) -> Sequence[Tensor]:
        """What is random in n draws of a lane, `[n, ...]` each.

        Args:
            n: how many draws.
            rows: of the batch; 1 where all rows of a prediction share what is drawn.
            lane: which.
            generator: the lane's own.
        """
        return ()

    @abstractmethod
    def draw(self, parameters: Tensor, noise: Sequence[Tensor]) -> Drawn:
        """The layer under S draws.

        Args:
            parameters: `[R, p]`; the draw is differentiable in them.
            noise: what `noise` gave, of all lanes: `[R, S, ...]` each.
        """

    @abstractmethod
    def kl(self, parameters: Tensor) -> Tensor:
        """KL(q || p) of each lane, `[R]` in nats; of a point estimate -log p(w) + constant."""

    def draw_with_kl(
        self, parameters: Tensor, noise: Sequence[Tensor], factor: Tensor
    ) -> tuple[Drawn, Tensor | float]:
        """`draw`, and what to add to the objective for factor * KL, `[R]`.

        A layer that knows the gradient of its KL in closed form has it in the gradient of the draw,
        and adds nothing.
        """
        return self.draw(parameters, noise), factor * self.kl(parameters)

    def compiled(self) -> CompiledLayer | None:
        """The layer as the compiled library knows it; None where it does not."""
        return None

    def carry(self, parameters: Tensor) -> None:
        """Make the posterior the prior.

        Raises:
            NotImplementedError: there is no posterior that could become one.
        """
        raise NotImplementedError(f"{type(self).__name__} has no posterior to carry")


class PointLayer(LaneLayer):
    """Point estimates: the divergence is ||w||^2 / (2 prior_scale^2), minus the log prior."""

    def __init__(self, weight: Tensor, bias: Tensor, prior_scale: Tensor) -> None:
        super().__init__(weight, bias, prior_scale)
        self._initial = torch.cat([weight.flatten(1), bias], dim=1)
        self.precision = (prior_scale**-2)[:, None].expand_as(self._initial).contiguous()
        """Of the prior of every parameter, `[R, p]`."""

    def initial(self) -> Tensor:
        """Weights and biases."""
        return self._initial

    def draw(self, parameters: Tensor, noise: Sequence[Tensor]) -> Drawn:
        """The one network there is, S = 1."""
        weight, bias = self._cut(parameters)
        return Drawn(weight.unsqueeze(1), bias.unsqueeze(1))

    def kl(self, parameters: Tensor) -> Tensor:
        """Half the sum of precision * w^2, `[R]`."""
        return (self.precision * parameters.square()).sum(-1) / 2

    def compiled(self) -> CompiledLayer:
        """Weights, then biases."""
        outputs, inputs = self.shape
        return CompiledLayer(inputs, outputs, inputs, outputs * inputs, 1, precision=self.precision)

    def _cut(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        weight, bias = torch.split(parameters, [self.shape.numel(), self.shape[0]], dim=1)
        return weight.view(-1, *self.shape), bias


class DropoutLayer(PointLayer):
    """Weights whose inputs are dropped at random, in training and in prediction (MC dropout).

    q(w) has columns M_j z_j / keep with z_j ~ Bernoulli(keep). Its divergence from the prior is,
    up to constants (Gal and Ghahramani 2016, supplement, section 4.2),

        ||M||^2 / (2 keep prior_scale^2) + ||b||^2 / (2 prior_scale^2)

    Args:
        weight: the initial M, `[R, out, in]`.
        bias: b, `[R, out]`.
        prior_scale: `[R]`.
        rate: the share of inputs that is dropped, 1 - keep, `[R]`.
    """

    def __init__(self, weight: Tensor, bias: Tensor, prior_scale: Tensor, rate: Tensor) -> None:
        super().__init__(weight, bias, prior_scale)
        self.keep = 1 - rate
        self.precision[:, : self.shape.numel()] /= self.keep[:, None]

    def noise(self, n: int, rows: int, lane: int, generator: torch.Generator) -> Sequence[Tensor]:
        """The masks z / keep: for every row of a batch its own, `[n, rows, in]`."""
        keep = float(self.keep[lane])
        z = torch.empty(n, rows, self.shape[1]).bernoulli_(keep, generator=generator)
        return (z.div_(keep),)

    def draw(self, parameters: Tensor, noise: Sequence[Tensor]) -> Drawn:
        """One M under S masks."""
        weight, bias = self._cut(parameters)
        (mask,) = noise
        samples = mask.shape[1]
        return Drawn(
            weight.unsqueeze(1).expand(-1, samples, -1, -1),
            bias.unsqueeze(1).expand(-1, samples, -1),
            mask,
        )
