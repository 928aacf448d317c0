"""VCL whose precision is computed from the curvature of the data, and not learned by steps.

The objective is the same as in `vcl_radial.methods.vcl`. At its minimum over Gaussians q, the
precision of q is the prior's precision plus the expected curvature of the data (Opper and
Archambeau 2009):

    P_t = P_(t-1) + hessian_weight / kl_weight * sum_n E_q[ Hessian of -log p(y_n | w) ]

Gradient steps learn the means alone, under draws of q. This equation sets the precision at the
beginning of a task, and again at its end, with the Gauss-Newton matrix at the means instead of the
expected Hessian. The gradient of one draw has little information about thousands of correlations;
one pass over the points gives all of them.

The weights of a unit share a factor (`posterior = "low-rank"`, `grouping = "unit"`). The block of
unit o is approximated by G_oo A, with A the mean product of the layer's inputs and G_oo the sum of
the squared gradients at the unit. These are the Kronecker factors of
`vcl_radial.curvature.kronecker`, without the products of two units. Let V'V + diag be the prior's
precision and E the `rank` largest directions of A. The method keeps the `rank` largest directions
of V'V + hessian_weight / kl_weight * G_oo E'E. The rest adds to the diagonal, so that the diagonal
is exactly that of the whole sum.

`hessian_weight` is the lambda of Ritter, Botev and Barber (2018); at 1 the precision is the optimum
of the objective.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn

from vcl_radial.config.ranges import Positive
from vcl_radial.curvature import kronecker_factors
from vcl_radial.curvature.fisher import is_plain_convolution
from vcl_radial.curvature.gauss_newton import point_layer
from vcl_radial.curvature.low_rank import largest_directions
from vcl_radial.errors import UserError
from vcl_radial.methods.tasks import Task
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import BayesianConv2d, BayesianLinear
from vcl_radial.nn.carry import variational_weights
from vcl_radial.nn.grouping import Layer
from vcl_radial.nn.low_rank import LowRankBlock
from vcl_radial.nn.weights import VariationalWeights, at_means
from vcl_radial.posteriors import LowRank, Posterior


class CurvatureVCL(VCL):
    """Carry a low-rank Gaussian forward whose means are trained and whose precision is computed.

    Args:
        hessian_weight: factor of each task's curvature; it does not multiply the first prior.
        settings: settings of `Method`.

    Raises:
        UserError: the weight is not above 0, the posterior is not low-rank with units as groups, or
            a layer
            is neither linear nor a plain convolution of images.
    """

    carries = "the mean, the scale and the low-rank factor of each unit's weights"
    posteriors = frozenset({"low-rank"})

    def __init__(
        self, network: nn.Module, *, hessian_weight: Positive = 1.0, **settings: Any
    ) -> None:
        super().__init__(network, **settings)
        if self.restart:
            raise UserError(
                "options.restart is of no use to curvature_vcl: the noise that a task begins with "
                "follows from its points"
            )
        if not self.kl_weight > 0:
            raise UserError("kl_weight = 0 leaves curvature_vcl no precision: set it above 0")
        self.hessian_weight = hessian_weight
        for name, module in network.named_modules():
            if isinstance(module, VariationalWeights):
                _check_by_units(module)
            elif any(isinstance(child, VariationalWeights) for child in module.children()):
                _check_layer(name, module)
        self._priors: list[LowRank] = []

    def begin_task(self, task: Task) -> None:
        """Set the precision from the task's points at the prior's means, and fix it."""
        super().begin_task(task)
        self._priors = [_low_rank(block.prior) for block in self._low_rank_blocks()]
        self._set_precision()
        for _, layer in self._layers():
            layer.weights.sampler = HeldNoise(layer.weights).sample

    def penalty(self) -> Tensor | float:
        """1/2 (m - m_p)' P_p (m - m_p) in nats: the part of KL(q || p) in the means."""
        parts = []
        for block, prior in zip(self._low_rank_blocks(), self._priors, strict=True):
            a = (block.mean - prior.mean) / prior.scale
            along = prior.factor @ a.unsqueeze(-1)
            parts.append(a.square().sum() + along.square().sum())
        return torch.stack(parts).sum() / 2

    def end_task(self, task: Task) -> None:
        """Set the precision again at the learned means, and make q the prior."""
        self._set_precision()
        super().end_task(task)

    def release(self) -> None:
        """Let the layers draw their weights again."""
        super().release()
        for module in self.network.modules():
            if isinstance(module, VariationalWeights):
                module.sampler = None

    def _low_rank_blocks(self) -> list[LowRankBlock]:
        return cast(list[LowRankBlock], self._blocks)

    def _layers(self) -> Iterator[tuple[str, BayesianLinear | BayesianConv2d]]:
        """The layers of the body and of the task's heads."""
        in_use = set(variational_weights(self.network, self.heads))
        for name, module in self.network.named_modules():
            if isinstance(module, BayesianLinear | BayesianConv2d) and module.weights in in_use:
                yield name, module

    def _set_precision(self) -> None:
        layers = dict(self._layers())
        with at_means(self.network):
            factors = kronecker_factors(
                self.network, layers, self.points(), self.likelihood.hessian_root
            )
        weight = self.hessian_weight / self.kl_weight
        for name, (inputs, gradients) in factors.items():
            (block,) = layers[name].weights.posterior_blocks()
            assert isinstance(block, LowRankBlock)
            add_curvature(block, inputs, gradients.diagonal() * weight)


@torch.no_grad()
def add_curvature(block: LowRankBlock, inputs: Tensor, units: Tensor) -> None:
    """Set the precision of unit o to the prior's plus units[o] * inputs, up to the block's rank.

    Args:
        block: block whose groups are the units; a scale or factor that is frozen does not change.
        inputs: A, `[D, D]`.
        units: factor of A for each unit, `[groups]`.
    """
    if not (block.rho.requires_grad and block.factor.requires_grad):
        return
    prior, rank = _low_rank(block.prior), block.factor.shape[-2]
    directions = largest_directions(lambda Q: Q @ inputs, rank, len(inputs), inputs)
    rows = torch.cat(
        [prior.factor / prior.scale.unsqueeze(-2), directions * units.sqrt()[:, None, None]], dim=1
    )
    _, turn = torch.linalg.eigh((rows @ rows.mT).double())
    factor = turn.mT.flip(-2)[:, :rank].to(rows) @ rows
    rest = rows.square().sum(-2) - factor.square().sum(-2)
    rest += units[:, None] * (inputs.diagonal() - directions.square().sum(0))
    block.set_precision(prior.scale.square().reciprocal() + rest.clamp(min=0), factor)


class HeldNoise:
    """Draws of a layer with fixed scales and factors: only the means have a gradient."""

    def __init__(self, weights: VariationalWeights) -> None:
        self.weights = weights
        blocks = cast(list[LowRankBlock], weights.posterior_blocks())
        self.posteriors = [(block, block.posterior.to_prior()) for block in blocks]

    def sample(self) -> Layer:
        """Draw weight and bias, like the layer's sampler."""
        return self.weights.split(
            [
                torch.addcmul(block.mean, q.scale, q.noise(1).squeeze(0))
                for block, q in self.posteriors
            ]
        )


def _low_rank(prior: Posterior) -> LowRank:
    """A prior as a `LowRank`; the first one is Gaussian, of rank 0."""
    return prior if isinstance(prior, LowRank) else LowRank(prior.mean, prior.scale)


def _check_by_units(weights: VariationalWeights) -> None:
    """Raise `UserError` if a layer's posterior is not low-rank with units as groups."""
    blocks = weights.posterior_blocks()
    by_units = len(blocks) == 1 and len(blocks[0].mean) == weights.shape[0]
    if not by_units or blocks[0].family is not LowRank or blocks[0].first_prior is not None:
        raise UserError(
            "curvature_vcl computes the precision of a unit's weights: set "
            "posterior = 'low-rank', grouping = 'unit' and prior = 'gaussian'"
        )


def _check_layer(name: str, layer: nn.Module) -> None:
    """Raise `UserError` if the curvature per unit is not known for a layer with a posterior."""
    if not isinstance(layer, BayesianLinear) and not is_plain_convolution(point_layer(layer)):
        raise UserError(
            f"curvature_vcl knows the curvature of linear layers, and of convolutions of images in "
            f"one group that are padded by zeros: {name or 'the network'} is "
            f"{type(layer).__name__}"
        )
