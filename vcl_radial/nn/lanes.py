"""Many networks of one shape as lanes of one program, with a leading axis on all tensors.

`Lanes` stacks the parameters that a task uses, body and head, of R networks into tensors
`[R, ...]`, makes layers from draws, and maps inputs to outputs `[R, B, C]` by batched products.
`write_back` copies the learned parameters to the single networks, which carry, store and score
their posteriors.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import normalize

from vcl_radial.errors import UserError
from vcl_radial.nn.blocks import PosteriorBlock, softplus
from vcl_radial.nn.carry import posterior_blocks, variational_weights
from vcl_radial.nn.dropout import MCDropout
from vcl_radial.nn.heads import adapt_heads
from vcl_radial.nn.parameters import parameters_in_use
from vcl_radial.nn.rdp import RDPBlock, RDPWeights, angles_of_key, rdp
from vcl_radial.nn.weights import VariationalWeights
from vcl_radial.posteriors import Posterior
from vcl_radial.posteriors.families import name_of
from vcl_radial.posteriors.log_normal_radius import LogNormal
from vcl_radial.posteriors.rdp import RDP, HalfCauchyPrior, RDPNoise

_CHUNK = 2**22
"""Largest number of hidden values (rows x draws x units) that `functions` computes at a time."""


class FactorNoise(NamedTuple):
    """The random numbers of an RDP's draws, without angles, which depend on the concentration."""

    factors: Tensor
    """standard normal noise of the factors, `[lanes, n, 2, groups + 1]`"""
    normal: Tensor
    """standard normal noise of the tangents, `[lanes, n, groups, D]`"""
    keys: Tensor
    """keys of the angles of each draw, `[lanes, n]`"""


class LaneNoise(NamedTuple):
    """The random numbers of the draws of every lane, drawn in advance."""

    blocks: Sequence[Tensor]
    """the family's noise of each block, `[lanes, n, groups, D]`"""
    masks: Sequence[Tensor]
    """masks of each dropout, `[lanes, n, B, features]`"""
    factors: Sequence[FactorNoise]
    """noise of each factor of an RDP"""

    def part(self, selected: slice) -> LaneNoise:
        """The noise of a slice of the draws."""
        return LaneNoise(
            [t[:, selected] for t in self.blocks],
            [t[:, selected] for t in self.masks],
            [FactorNoise(*(t[:, selected] for t in factor)) for factor in self.factors],
        )


@dataclass
class LaneBlock:
    """A `PosteriorBlock` of every lane; tensors `[R, groups, D]`."""

    family: type[Posterior]
    prior_family: type[Posterior]
    mean: Tensor
    rho: Tensor
    scale: Tensor
    prior_mean: Tensor
    prior_scale: Tensor
    carried: bool
    """Whether the prior is a carried posterior."""

    @classmethod
    def stacked(cls, blocks: Sequence[PosteriorBlock]) -> LaneBlock:
        """Stack the blocks of single networks.

        Raises:
            UserError: Their noise has more parameters than a scale.
        """
        if not blocks[0].family.uncorrelated:
            name = name_of(blocks[0].family)
            raise UserError(f"posterior = {name!r} has no lanes: train its networks one by one")
        if blocks[0].first_prior is not None and not blocks[0].carried:
            raise UserError(
                "has no lanes unless it is 'gaussian': train networks one by one", "prior"
            )
        mean, rho, prior_mean, prior_scale = (
            _stack(blocks, name) for name in ("mean", "rho", "prior_mean", "prior_scale")
        )
        families = blocks[0].family, blocks[0].prior_family
        carried = blocks[0].carried
        return cls(*families, mean, rho, softplus(rho), prior_mean, prior_scale, carried)

    def first(self, lanes: int) -> LaneBlock:
        """The first lanes, as views."""
        names = ("mean", "rho", "scale", "prior_mean", "prior_scale")
        return replace(self, **{name: getattr(self, name)[:lanes] for name in names})

    def noise(self, n: int, lane: int, generator: torch.Generator) -> Tensor:
        """The family's standard noise of n draws of a lane, `[n, groups, D]`."""
        return self.family(self.mean[lane], self.scale[lane]).noise(n, generator)


@dataclass
class LaneFactor:
    """An `RDPBlock` of every lane: its parameters `[R, ...]`, and its prior.

    All lanes share the first prior; a carried prior has its own parameters per lane.
    """

    parameters: list[Tensor]
    first_prior: HalfCauchyPrior
    carried: list[Tensor] | None

    @classmethod
    def stacked(cls, blocks: Sequence[RDPBlock]) -> LaneFactor:
        """Stack the blocks of single networks, which must share their first prior."""
        if any(block.radius != LogNormal.name for block in blocks):
            raise ValueError("lanes of an RDP have log-normal radii")
        prior, carried = blocks[0].first_prior, None
        if blocks[0].carried:
            carried = [_stack(blocks, f"prior_{name}") for name in RDPBlock.PARAMETERS]
        elif any(block.first_prior != prior for block in blocks):
            raise ValueError("lanes of an RDP must have one half-Cauchy prior")
        return cls([_stack(blocks, name) for name in RDPBlock.PARAMETERS], prior, carried)

    def prior(self, lanes: int) -> RDP | HalfCauchyPrior:
        """The prior of the first lanes."""
        if self.carried is None:
            return self.first_prior
        return rdp(parameter[:lanes] for parameter in self.carried)

    @staticmethod
    def posterior(parameters: Sequence[Tensor]) -> RDP:
        """The approximate posterior of these parameters."""
        direction, *rest = parameters
        return rdp([normalize(direction, dim=-1), *rest])

    def noise(self, n: int, generators: Sequence[torch.Generator]) -> FactorNoise:
        """Draw the noise of n draws for one lane per generator."""
        direction, _, loc, _ = self.parameters
        lanes = [
            (
                torch.randn(n, *loc.shape[1:], generator=generator),
                torch.randn(n, *direction.shape[1:], generator=generator),
                torch.randint(2**62, (n,), generator=generator),
            )
            for generator in generators
        ]
        return FactorNoise(*(torch.stack(parts) for parts in zip(*lanes, strict=True)))


class Lanes:
    """The parts of R networks of one shape that a task uses.

    Args:
        networks: the networks to stack, equal except for their parameters' values.
        task: the task whose head is used.

    Raises:
        UserError: A weight is frozen, or as in `LaneBlock.stacked`.
    """

    def __init__(self, networks: Sequence[nn.Module], task: int) -> None:
        for network in networks:
            adapt_heads(network, [task])
            if not all(parameter.requires_grad for parameter in network.parameters()):
                raise UserError(
                    "lanes train all weights, but some of a network are frozen: train it alone"
                )
        self.networks, self.task = networks, task
        self.blocks = [LaneBlock.stacked(group) for group in zip(*self._blocks(), strict=True)]
        """The blocks in the order in which a forward pass draws them."""
        self.factors = [LaneFactor.stacked(group) for group in zip(*self._factors(), strict=True)]
        points = [point_estimates(network, task) for network in networks]
        self.points = {
            name: torch.stack([lane[name].detach() for lane in points]) for name in points[0]
        }
        self.template = copy.deepcopy(networks[0]).requires_grad_(False)
        self.template_layers = list(variational_weights(self.template, [task]))
        self._template_dropout = _dropouts(self.template)

    def __len__(self) -> int:
        """The number of lanes R."""
        return len(self.networks)

    def layers(self, blocks: Sequence[Tensor], factors: Sequence[Tensor]) -> list[list[Tensor]]:
        """Weight and bias of every layer, `[lanes, ...]`, from draws of all blocks and factors.

        Shapes: `[lanes, groups, D]`; the first axis may also be draws.
        """
        block_iter, factor_iter, result = iter(blocks), iter(factors), []
        for layer in self.template_layers:
            draws = [*islice(block_iter, len(layer.posterior_blocks()))]
            if isinstance(layer, RDPWeights):
                parts = {name: next(factor_iter) for name in layer.factor_blocks()}
                result.append([layer.join(parts), *(bias.squeeze(-2) for bias in draws)])
            else:
                result.append([part for part in layer.split(draws) if part is not None])
        return result

    def outputs(
        self,
        x: Tensor,
        layers: list[list[Tensor]],
        points: dict[str, Tensor],
        masks: Sequence[Tensor] = (),
        *,
        shared: bool,
    ) -> Tensor:
        """Outputs `[lanes, B, C]` for all lanes, for the first lanes, or for draws of one lane.

        Shapes: x `[lanes, B, ...]`, or `[B, ...]` where it is `shared`; layers as from `layers`;
        points `[lanes, ...]`; masks of each dropout `[lanes, B or 1, features]`.
        """
        per_lane = None if shared else 0
        # Layers use the weights of their sampler only where gradients are enabled.
        with torch.set_grad_enabled(True):
            mapped: Tensor = torch.vmap(self._outputs_of_one, in_dims=(per_lane, 0, 0, 0))(
                x, layers, points, list(masks)
            )
        return mapped

    def noise(self, n: int, rows: int, generators: Sequence[torch.Generator]) -> LaneNoise:
        """Draw the noise of n draws in passes over `rows` rows."""
        blocks, masks = zip(
            *(self._noise(lane, n, rows, g) for lane, g in enumerate(generators)), strict=True
        )
        return LaneNoise(
            [torch.stack(noises) for noises in zip(*blocks, strict=True)],
            [torch.stack(lane_masks) for lane_masks in zip(*masks, strict=True)],
            [factor.noise(n, generators) for factor in self.factors],
        )

    def _noise(
        self, lane: int, n: int, rows: int, generator: torch.Generator
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Draw the noise of a lane's blocks and the masks of its dropouts, `[n, ...]`."""
        return (
            [block.noise(n, lane, generator) for block in self.blocks],
            [m.draw_mask(n, rows, generator) for m in _dropouts(self.networks[lane])],
        )

    @torch.no_grad()
    def functions(
        self, x: Tensor, samples: int, generators: Sequence[torch.Generator]
    ) -> Iterator[Tensor]:
        """Outputs under draws that all rows share, in chunks of draws, `[S, R, n, C]`.

        Each lane is computed separately. Otherwise its last bits would depend on the other lanes:
        the remainder after vector instructions and the address of a matrix change the rounding.

        Args:
            x: inputs of each lane, `[R, n, ...]`.
            samples: number of draws.
            generators: generator of each lane.
        """
        draws = [self._draw_layers(lane, samples, g) for lane, g in enumerate(generators)]
        shapes = [layer.shape for layer in self.template_layers]
        shapes += [p.shape[1:] for p in self.points.values()]
        chunk = max(1, _CHUNK // (x.shape[1] * max(shape[0] for shape in shapes)))
        for start in range(0, samples, chunk):
            selected, chunk_outputs = slice(start, min(start + chunk, samples)), []
            count = selected.stop - start
            for lane, (layers, masks) in enumerate(draws):
                # Without randomness all draws are equal, so one is enough.
                n = count if layers or masks else 1
                f = self.outputs(
                    x[lane].clone(),
                    [[part[selected] for part in layer] for layer in layers],
                    {
                        name: p[lane].clone().expand(n, *p.shape[1:])
                        for name, p in self.points.items()
                    },
                    [mask[selected] for mask in masks],
                    shared=True,
                )
                chunk_outputs.append(f.expand(count, *f.shape[1:]))
            yield torch.stack(chunk_outputs, dim=1)

    def _draw_layers(
        self, lane: int, samples: int, generator: torch.Generator
    ) -> tuple[list[list[Tensor]], list[Tensor]]:
        """Draw the layers of a lane, `[samples, ...]`, and masks that all rows share."""
        noises, masks = self._noise(lane, samples, 1, generator)
        blocks = [
            torch.addcmul(b.mean[lane].clone(), b.scale[lane].clone(), noise)
            for b, noise in zip(self.blocks, noises, strict=True)
        ]
        posteriors = [f.posterior([p[lane].clone() for p in f.parameters]) for f in self.factors]
        factors = [q.sample(samples, generator) for q in posteriors]
        return self.layers(blocks, factors), masks

    @torch.no_grad()
    def write_back(self) -> None:
        """Copy each lane's parameters to its network."""
        parts = zip(self.networks, self._blocks(), self._factors(), strict=True)
        for lane, (network, blocks, factors) in enumerate(parts):
            for stacked, block in zip(self.blocks, blocks, strict=True):
                block.mean.copy_(stacked.mean[lane])
                block.rho.copy_(stacked.rho[lane])
            for stacked_factor, factor in zip(self.factors, factors, strict=True):
                for name, value in zip(RDPBlock.PARAMETERS, stacked_factor.parameters, strict=True):
                    getattr(factor, name).copy_(value[lane])
            for name, point in point_estimates(network, self.task).items():
                point.copy_(self.points[name][lane])

    def _blocks(self) -> list[list[PosteriorBlock]]:
        return [posterior_blocks(network, [self.task]) for network in self.networks]

    def _factors(self) -> list[list[RDPBlock]]:
        return [
            [
                block
                for weights in variational_weights(network, [self.task])
                if isinstance(weights, RDPWeights)
                for block in weights.factor_blocks().values()
            ]
            for network in self.networks
        ]

    def _outputs_of_one(
        self,
        x: Tensor,
        layers: list[list[Tensor]],
        points: dict[str, Tensor],
        masks: list[Tensor],
    ) -> Tensor:
        for weights, (weight, *bias) in zip(self.template_layers, layers, strict=True):
            draw = weight, (bias[0] if bias else None)
            weights.sampler = lambda draw=draw: draw
        for dropout, mask in zip(self._template_dropout, masks, strict=bool(masks)):
            dropout.mask = mask
        outputs: Tensor = functional_call(self.template, points, (x, self.task))
        return outputs


def draw_factor(posterior: RDP, noise: FactorNoise, sample: int) -> Tensor:
    """A draw of the lanes' groups for this sample, `[lanes, groups, D]`."""
    direction = posterior.direction
    groups, D = direction.mean_direction.shape[-2:]
    angle = torch.stack(
        [
            angles_of_key(groups, kappa, D, int(key))
            for kappa, key in zip(direction.concentration, noise.keys[:, sample], strict=True)
        ]
    )
    return posterior.at(RDPNoise(noise.factors[:, sample], angle, noise.normal[:, sample].clone()))


def _stack(blocks: Sequence[nn.Module], name: str) -> Tensor:
    return torch.stack([getattr(block, name).detach() for block in blocks])


def _dropouts(network: nn.Module) -> list[MCDropout]:
    return [module for module in network.modules() if isinstance(module, MCDropout)]


def point_estimates(network: nn.Module, task: int) -> dict[str, nn.Parameter]:
    """The point estimates that a task uses, by name."""
    in_posteriors = {
        id(parameter)
        for module in network.modules()
        if isinstance(module, VariationalWeights)
        for parameter in module.parameters()
    }
    return {
        name: parameter
        for name, parameter in parameters_in_use(network, [task]).items()
        if id(parameter) not in in_posteriors
    }
