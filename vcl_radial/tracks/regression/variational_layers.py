"""Layers of lanes with a variational posterior: a location-scale family, or radius and direction.

The families are those of `vcl_radial.posteriors`, which take leading axes: here the first one is
the lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import normalize

from vcl_radial.nn.closed_form import native_divergence
from vcl_radial.nn.grouping import grouping
from vcl_radial.nn.rdp import RDPBlock, RDPSettings
from vcl_radial.nn.weights import inverse_softplus, softplus
from vcl_radial.posteriors import FAMILIES, Gaussian, Posterior
from vcl_radial.posteriors.log_normal_radius import LogNormal
from vcl_radial.posteriors.rdp import HalfCauchyPrior
from vcl_radial.posteriors.vmf_angle import draw_angle
from vcl_radial.posteriors.von_mises_fisher import VonMisesFisher
from vcl_radial.tracks.regression.layers import CompiledLayer, Drawn, LaneLayer


class LocationScaleLayer(LaneLayer):
    """w = mean + softplus(rho) * noise of a family, in groups that share a radius.

    Args:
        weight: the initial means, `[R, out, in]`.
        bias: those of the biases, `[R, out]`.
        prior_scale: the first prior is N(0, prior_scale^2), `[R]`.
        family: a name of `vcl_radial.posteriors.FAMILIES`.
        group_by: a name of `vcl_radial.nn.grouping.GROUPINGS`.
        initial_noise: the standard deviation of one weight's noise at the start.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor,
        prior_scale: Tensor,
        family: str,
        group_by: str,
        initial_noise: float,
    ) -> None:
        super().__init__(weight, bias, prior_scale)
        self.family: type[Posterior] = FAMILIES[family]
        self.grouping = grouping(group_by)
        lanes = [self.grouping.join(w, b) for w, b in zip(weight, bias, strict=True)]
        self._means = [torch.stack(blocks) for blocks in zip(*lanes, strict=True)]
        self.block_shapes = [block.shape[1:] for block in self._means]
        self._rhos = [
            inverse_softplus(self.family.scale_for_weight_noise(initial_noise, shape[-1]))
            for shape in self.block_shapes
        ]
        self.priors: list[Posterior] = [
            Gaussian(torch.zeros_like(m), prior_scale[:, None, None].expand_as(m).contiguous())
            for m in self._means
        ]

    def initial(self) -> Tensor:
        """The means of all blocks, then their rhos."""
        rhos = [torch.full_like(m, rho) for m, rho in zip(self._means, self._rhos, strict=True)]
        return torch.cat([block.flatten(1) for block in [*self._means, *rhos]], dim=1)

    def posteriors(self, parameters: Tensor) -> list[Posterior]:
        """q(w) of each block, groups `[R, groups, D]`."""
        mean, rho = parameters.chunk(2, dim=1)
        scale = softplus(rho)
        sizes = [shape.numel() for shape in self.block_shapes]
        return [
            self.family(m.view(-1, *shape), s.view(-1, *shape))
            for m, s, shape in zip(
                torch.split(mean, sizes, dim=1),
                torch.split(scale, sizes, dim=1),
                self.block_shapes,
                strict=True,
            )
        ]

    def noise(self, n: int, rows: int, lane: int, generator: torch.Generator) -> Sequence[Tensor]:
        """The family's standard noise of each block, `[n, groups, D]`."""
        one = [torch.ones(shape) for shape in self.block_shapes]
        return [self.family(ones, ones).noise(n, generator) for ones in one]

    def draw(self, parameters: Tensor, noise: Sequence[Tensor]) -> Drawn:
        """A draw mean + scale * noise."""
        blocks = [
            torch.addcmul(q.mean.unsqueeze(1), q.scale.unsqueeze(1), epsilon)
            for q, epsilon in zip(self.posteriors(parameters), noise, strict=True)
        ]
        weight, bias = self.grouping.split(blocks, self.shape)
        assert bias is not None
        return Drawn(weight, bias)

    def draw_with_kl(
        self, parameters: Tensor, noise: Sequence[Tensor], factor: Tensor
    ) -> tuple[Drawn, Tensor | float]:
        """`draw`, with the gradient of factor * KL in its own where that has a closed form."""
        if self.family.kl_gradients(type(self.priors[0]), []) is None:
            return super().draw_with_kl(parameters, noise, factor)
        blocks = _DrawWithKL.apply(parameters, self, noise, factor)
        weight, bias = self.grouping.split(blocks, self.shape)
        assert bias is not None
        return Drawn(weight, bias), 0.0

    def kl(self, parameters: Tensor) -> Tensor:
        """KL(q || p) summed over the groups, `[R]`."""
        pairs = zip(self.posteriors(parameters), self.priors, strict=True)
        return torch.stack([q.kl(p).sum(-1) for q, p in pairs]).sum(0)

    def compiled(self) -> CompiledLayer | None:
        """Where the library has the KL to the prior."""
        blocks = [(p, native_divergence(self.family, type(p))) for p in self.priors]
        known = [(p, divergence) for p, divergence in blocks if divergence is not None]
        if len(known) < len(blocks):
            return None
        # Where the grouping puts each weight and bias.
        outputs, inputs = self.shape
        names = torch.arange(outputs * (inputs + 1))
        joined = self.grouping.join(names[:-outputs].view(self.shape), names[-outputs:])
        place = torch.cat([block.flatten() for block in joined]).argsort().tolist()
        weights, biases = place[:-outputs], place[-outputs:]
        row = weights[inputs] - weights[0] if outputs > 1 else inputs
        step = biases[1] - biases[0] if outputs > 1 else 1
        return CompiledLayer(inputs, outputs, row, biases[0], step, known)

    def carry(self, parameters: Tensor) -> None:
        """Make the posterior the prior."""
        self.priors = [q.to_prior() for q in self.posteriors(parameters)]


class _DrawWithKL(torch.autograd.Function):
    """The blocks w = mean + scale * noise, whose gradient is that of an objective + factor * KL.

    With g = d objective / d w and a = (mean - mean_p) / scale_p, s = scale / scale_p:

        d / d mean = g + factor / scale_p dKL/da,
        d / d rho  = (g * noise + factor / scale_p dKL/ds) sigmoid(rho)
    """

    @staticmethod
    def forward(
        ctx: Any,
        parameters: Tensor,
        layer: LocationScaleLayer,
        noise: Sequence[Tensor],
        factor: Tensor,
    ) -> tuple[Tensor, ...]:
        posteriors = layer.posteriors(parameters)
        ctx.layer, ctx.noise, ctx.factor, ctx.posteriors = layer, noise, factor, posteriors
        ctx.rho = parameters.chunk(2, dim=1)[1]
        return tuple(
            torch.addcmul(q.mean.unsqueeze(1), q.scale.unsqueeze(1), epsilon)
            for q, epsilon in zip(posteriors, noise, strict=True)
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        layer, priors = ctx.layer, ctx.layer.priors
        pairs = [
            ((q.mean - p.mean).div_(p.scale), q.scale / p.scale)
            for q, p in zip(ctx.posteriors, priors, strict=True)
        ]
        of_kl = layer.family.kl_gradients(type(priors[0]), pairs)
        means, scales = [], []
        for g, epsilon, p, (kl_a, kl_s) in zip(grads, ctx.noise, priors, of_kl, strict=True):
            per_unit = ctx.factor[:, None, None] / p.scale
            means.append(torch.addcmul(g.sum(1), per_unit, kl_a).flatten(1))
            scales.append(torch.addcmul((g * epsilon).sum(1), per_unit, kl_s).flatten(1))
        of_rho = torch.cat(scales, dim=1).mul_(ctx.rho.sigmoid())
        return torch.cat([*means, of_rho], dim=1), None, None, None


class _Factor(NamedTuple):
    """Parameters of an RDP over groups: those of `vcl_radial.nn.rdp.RDPBlock`, of all lanes."""

    direction: Tensor
    """`[R, groups, D]`"""
    log_concentration: Tensor
    """`[R]`"""
    loc: Tensor
    """`[R, 2, groups + 1]`"""
    rho: Tensor
    """`[R, 2, groups + 1]`"""

    def posterior(self) -> tuple[VonMisesFisher, LogNormal]:
        """The directions, and the factors of the squared radii."""
        concentration = self.log_concentration.double().exp().unsqueeze(-1)
        mu = normalize(self.direction, dim=-1)
        return VonMisesFisher(mu, concentration), LogNormal(self.loc, softplus(self.rho))


class DirectionalLayer(LaneLayer):
    """Radius and direction (RDP) with double grouping, W = A * B of rows A and columns B.

    As `vcl_radial.nn.rdp.RDPWeights`, from which it starts, with a Gaussian posterior for the
    biases. The angle of a von Mises-Fisher direction takes as many random numbers as it needs: what
    is random in a draw made beforehand is the seed of a generator for them.

    Args:
        weight: the initial means, `[R, out, in]`.
        bias: those of the biases, `[R, out]`.
        prior_scale: gamma of the half-Cauchy prior, `[R]`, equal in all lanes.
        initial_noise: the standard deviation of one weight's noise at the start.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor,
        prior_scale: Tensor,
        initial_noise: float,
    ) -> None:
        super().__init__(weight, bias, prior_scale)
        self.gamma = float(prior_scale[0])
        settings = RDPSettings("double", initial_noise, self.gamma)
        single = [settings.make_weights(w, b) for w, b in zip(weight, bias, strict=True)]
        start = [_stacked([_block(s.rows) for s in single])]
        start.append(_stacked([_block(s.columns) for s in single]))
        self.biases = torch.cat([bias, torch.full_like(bias, inverse_softplus(initial_noise))], 1)
        self.sizes = [tensor.shape[1:] for factor in start for tensor in factor]
        self._initial = torch.cat(
            [tensor.reshape(self.lanes, -1) for factor in start for tensor in factor], dim=1
        )
        self.first_prior = HalfCauchyPrior(self.gamma)
        self.carried: list[tuple[VonMisesFisher, LogNormal]] | None = None
        ones = torch.ones_like(bias)
        self.bias_prior: Posterior = Gaussian(torch.zeros_like(bias), ones)

    def initial(self) -> Tensor:
        """Rows, columns, and the biases' means and rhos."""
        return torch.cat([self._initial, self.biases], dim=1)

    def factors(self, parameters: Tensor) -> tuple[list[_Factor], Posterior]:
        """Rows and columns, and the posterior of the biases."""
        sizes = [shape.numel() for shape in self.sizes]
        *parts, bias = torch.split(parameters, [*sizes, 2 * self.shape[0]], dim=1)
        shaped = [p.reshape(-1, *shape) for p, shape in zip(parts, self.sizes, strict=True)]
        mean, rho = bias.chunk(2, dim=1)
        return [_Factor(*shaped[:4]), _Factor(*shaped[4:])], Gaussian(mean, softplus(rho))

    def noise(self, n: int, rows: int, lane: int, generator: torch.Generator) -> Sequence[Tensor]:
        """Of the biases `[n, out]`; and of rows and columns each radii, tangents and a seed."""
        parts = [torch.randn(n, self.shape[0], generator=generator)]
        for direction, _, loc, _ in (self.sizes[:4], self.sizes[4:]):
            parts += [torch.randn(n, *shape, generator=generator) for shape in (loc, direction)]
            parts.append(torch.randint(2**62, (n,), generator=generator))
        return parts

    def draw(self, parameters: Tensor, noise: Sequence[Tensor]) -> Drawn:
        """W = A * B, with the biases' draws."""
        epsilon, *others = noise
        factors, bias = self.factors(parameters)
        rows = _draw_factor(factors[0], *others[:3])
        columns = _draw_factor(factors[1], *others[3:])
        weight = (rows * columns.transpose(-1, -2)).transpose(0, 1)
        biases = torch.addcmul(bias.mean.unsqueeze(1), bias.scale.unsqueeze(1), epsilon)
        return Drawn(weight, biases)

    def kl(self, parameters: Tensor) -> Tensor:
        """KL(q || p) of rows, columns and biases, `[R]`."""
        factors, bias = self.factors(parameters)
        total = bias.kl(self.bias_prior)
        for k, factor in enumerate(factors):
            direction, squares = factor.posterior()
            if self.carried is None:
                prior = VonMisesFisher(direction.mean_direction, torch.zeros(self.lanes, 1))
                radii = _to_half_cauchy(squares, self.first_prior.scale)
            else:
                prior, carried = self.carried[k]
                radii = squares.kl(carried).flatten(1).sum(-1)
            total = total + direction.kl(prior).expand(self.lanes, -1).sum(-1) + radii
        return total

    @torch.no_grad()
    def carry(self, parameters: Tensor) -> None:
        """Make the posterior the prior."""
        factors, bias = self.factors(parameters.clone())
        self.carried = [factor.posterior() for factor in factors]
        self.bias_prior = bias.to_prior()


def _draw_factor(factor: _Factor, radii: Tensor, normal: Tensor, seeds: Tensor) -> Tensor:
    """Radius times direction, `[S, R, groups, D]`.

    Args:
        factor: of rows or columns.
        radii: normal noise of the logarithms of the squared radii, `[R, S, 2, groups + 1]`.
        normal: that of the tangents, `[R, S, groups, D]`.
        seeds: of the angles; the first one of a lane is that of all its S draws, `[R, S]`.
    """
    direction, squares = factor.posterior()
    samples, (groups, D) = seeds.shape[1], normal.shape[2:]
    generators = [torch.Generator().manual_seed(seed) for seed in seeds[:, 0].tolist()]
    concentration = direction.concentration.unsqueeze(-1)
    angle = draw_angle((len(seeds), samples, groups), concentration, D, generators)
    log_squares = torch.addcmul(squares.loc, squares.scale, radii.transpose(0, 1))
    log_radius = log_squares.sum(-2) / 2
    radius = (log_radius[..., :-1] + log_radius[..., -1:]).exp()
    tangents = normal.transpose(0, 1).clone()
    return radius.unsqueeze(-1) * direction.at(angle.transpose(0, 1), tangents)


def _block(block: RDPBlock | None) -> _Factor:
    assert block is not None
    names = ("direction", "log_concentration", "loc", "rho")
    return _Factor(*(getattr(block, name).detach() for name in names))


def _stacked(lanes: Sequence[_Factor]) -> _Factor:
    return _Factor(*(torch.stack(tensors) for tensors in zip(*lanes, strict=True)))


def _to_half_cauchy(squares: LogNormal, scale: float) -> Tensor:
    """KL of the factors of every lane's squared radii to those of the prior, `[R]`."""

    def part(rows: int | slice, columns: slice) -> LogNormal:
        return LogNormal(squares.loc[:, rows, columns], squares.scale[:, rows, columns])

    return (
        part(0, slice(-1)).kl_to_gamma(0.5, 1.0).sum(-1)
        + part(0, slice(-1, None)).kl_to_gamma(0.5, scale**2).sum(-1)
        + part(1, slice(None)).kl_to_inverse_gamma(0.5, 1.0).sum(-1)
    )
