"""Many networks of one shape as lanes of one program: a leading axis on everything.

`Lanes` stacks the parameters that a task uses, body and head, of R networks into tensors
`[R, ...]`, makes layers of what is drawn, and maps inputs to outputs `[R, B, C]` by batched
products. `write_back` returns to each network what it has learnt: carrying a posterior forward,
storing it and scoring it are the business of single networks.
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
from vcl_radial.nn.carry import consolidate, variational_weights
from vcl_radial.nn.dropout import MCDropout
from vcl_radial.nn.heads import MultiHead
from vcl_radial.nn.rdp import RDPBlock, RDPWeights, angles_of_key, rdp
from vcl_radial.nn.weights import VariationalWeights
from vcl_radial.posteriors import Posterior
from vcl_radial.posteriors.families import name_of
from vcl_radial.posteriors.rdp import RDP, HalfCauchyPrior, RDPNoise

_AT_ONCE = 2**22
"""Hidden units of rows and draws that `functions` holds at a time."""


class FactorNoise(NamedTuple):
    """What is random in the draws of an RDP, but for angles, which depend on its concentration."""

    factors: Tensor
    """standard normal, `[lanes, n, 2, groups + 1]`"""
    normal: Tensor
    """standard normal, of the tangents, `[lanes, n, groups, D]`"""
    keys: Tensor
    """of the angles of each draw, `[lanes, n]`"""


class LaneNoise(NamedTuple):
    """What is random in the draws of every lane, made beforehand."""

    blocks: Sequence[Tensor]
    """the family's noise of each block, `[lanes, n, groups, D]`"""
    masks: Sequence[Tensor]
    """of each dropout, `[lanes, n, B, features]`"""
    factors: Sequence[FactorNoise]
    """of each factor of an RDP"""

    def part(self, some: slice) -> LaneNoise:
        """Some of the draws."""
        return LaneNoise(
            [t[:, some] for t in self.blocks],
            [t[:, some] for t in self.masks],
            [FactorNoise(*(t[:, some] for t in of_factor)) for of_factor in self.factors],
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
        """From those of single networks.

        Raises:
            UserError: their noise has more parameters than a scale.
        """
        if not blocks[0].family.uncorrelated:
            name = name_of(blocks[0].family)
            raise UserError(f"posterior = {name!r} has no lanes: train its networks one by one")
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


_FACTOR = ("direction", "log_concentration", "loc", "rho")


@dataclass
class LaneFactor:
    """An `RDPBlock` of every lane: its parameters `[R, ...]`, and its prior.

    The first prior is that of all lanes; a carried one is given by its parameters.
    """

    parameters: list[Tensor]
    first_prior: HalfCauchyPrior
    carried: list[Tensor] | None

    @classmethod
    def stacked(cls, blocks: Sequence[RDPBlock]) -> LaneFactor:
        """From those of single networks, whose first prior is one."""
        prior, carried = blocks[0].first_prior, None
        if blocks[0].carried:
            carried = [_stack(blocks, f"prior_{name}") for name in _FACTOR]
        elif any(block.first_prior != prior for block in blocks):
            raise ValueError("lanes of an RDP must have one half-Cauchy prior")
        return cls([_stack(blocks, name) for name in _FACTOR], prior, carried)

    def prior(self, lanes: int) -> RDP | HalfCauchyPrior:
        """That of the first lanes."""
        if self.carried is None:
            return self.first_prior
        return rdp(*(parameter[:lanes] for parameter in self.carried))

    @staticmethod
    def posterior(parameters: Sequence[Tensor]) -> RDP:
        """The approximate posterior of these parameters."""
        direction, *others = parameters
        return rdp(normalize(direction, dim=-1), *others)

    def noise(self, n: int, generators: Sequence[torch.Generator]) -> FactorNoise:
        """That of n draws of the lanes that these generators are of."""
        direction, _, loc, _ = self.parameters
        lanes = [
            (
                torch.randn(n, *loc.shape[1:], generator=generator),
                torch.randn(n, *direction.shape[1:], generator=generator),
                torch.randint(2**62, (n,), generator=generator),
            )
            for generator in generators
        ]
        return FactorNoise(*(torch.stack(of_lanes) for of_lanes in zip(*lanes, strict=True)))


class Lanes:
    """R networks of one shape, as far as a task uses them.

    Args:
        networks: those whose parameters are stacked; equal but for the values.
        task: whose head.

    Raises:
        UserError: a weight is frozen, or as in `LaneBlock.stacked`.
    """

    def __init__(self, networks: Sequence[nn.Module], task: int) -> None:
        for network in networks:
            for module in network.modules():
                if isinstance(module, MultiHead):
                    module.adapt([task])
            if not all(parameter.requires_grad for parameter in network.parameters()):
                raise UserError(
                    "lanes train all weights, and some of a network are frozen: train it alone"
                )
        self.networks, self.task = networks, task
        self.blocks = [LaneBlock.stacked(same) for same in zip(*self._blocks(), strict=True)]
        """In the order in which a forward pass draws them."""
        self.factors = [LaneFactor.stacked(same) for same in zip(*self._factors(), strict=True)]
        points = [_points(network, task) for network in networks]
        self.points = {
            name: torch.stack([lane[name].detach() for lane in points]) for name in points[0]
        }
        self.template = copy.deepcopy(networks[0]).requires_grad_(False)
        self.template_layers = list(variational_weights(self.template, [task]))
        self._template_dropout = _dropouts(self.template)

    def __len__(self) -> int:
        """R."""
        return len(self.networks)

    def layers(self, blocks: Sequence[Tensor], factors: Sequence[Tensor]) -> list[list[Tensor]]:
        """Weight and bias of every layer, `[lanes, ...]`, of the draws of all blocks and factors.

        Shapes: `[lanes, groups, D]`; the first axis may also be one of draws.
        """
        of_blocks, of_factors, made = iter(blocks), iter(factors), []
        for layer in self.template_layers:
            drawn = [*islice(of_blocks, len(layer.posterior_blocks()))]
            if isinstance(layer, RDPWeights):
                parts = {name: next(of_factors) for name in layer.factor_blocks()}
                made.append([layer.join(parts), *(bias.squeeze(-2) for bias in drawn)])
            else:
                made.append([part for part in layer.split(drawn) if part is not None])
        return made

    def outputs(
        self,
        x: Tensor,
        layers: list[list[Tensor]],
        points: dict[str, Tensor],
        masks: Sequence[Tensor] = (),
        *,
        shared: bool,
    ) -> Tensor:
        """Outputs `[lanes, B, C]`, of all lanes, the first ones, or as many draws of one.

        Shapes: x `[lanes, B, ...]`, or `[B, ...]` where it is `shared`; what `layers` gives; points
        `[lanes, ...]`; masks of each dropout `[lanes, B or 1, features]`.
        """
        per_lane = None if shared else 0
        # The layers hand out the weights that they are given only where gradients may be wanted.
        with torch.set_grad_enabled(True):
            mapped: Tensor = torch.vmap(self._outputs_of_one, in_dims=(per_lane, 0, 0, 0))(
                x, layers, points, list(masks)
            )
        return mapped

    def noise(self, n: int, rows: int, generators: Sequence[torch.Generator]) -> LaneNoise:
        """Of n draws in passes over so many rows."""
        blocks, masks = zip(
            *(self._noise(lane, n, rows, g) for lane, g in enumerate(generators)), strict=True
        )
        return LaneNoise(
            [torch.stack(of_lanes) for of_lanes in zip(*blocks, strict=True)],
            [torch.stack(of_lanes) for of_lanes in zip(*masks, strict=True)],
            [factor.noise(n, generators) for factor in self.factors],
        )

    def _noise(
        self, lane: int, n: int, rows: int, generator: torch.Generator
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Of the blocks of a lane, and of its dropouts, `[n, ...]`."""
        return (
            [block.noise(n, lane, generator) for block in self.blocks],
            [m.draw_mask(n, rows, generator) for m in _dropouts(self.networks[lane])],
        )

    @torch.no_grad()
    def functions(
        self, x: Tensor, samples: int, generators: Sequence[torch.Generator]
    ) -> Iterator[Tensor]:
        """Outputs under draws that all rows share, some draws at a time, `[S, R, n, C]`.

        They are computed lane by lane, so that they are the same to the last bit whichever lanes
        are beside one another: what is left at the end of vector instructions is rounded otherwise,
        and so are products of matrices that begin elsewhere in memory.

        Args:
            x: inputs of each lane, `[R, n, ...]`.
            samples: how many draws.
            generators: of each lane.
        """
        drawn = [self._drawn(lane, samples, g) for lane, g in enumerate(generators)]
        shapes = [layer.shape for layer in self.template_layers]
        shapes += [p.shape[1:] for p in self.points.values()]
        at_once = max(1, _AT_ONCE // (x.shape[1] * max(shape[0] for shape in shapes)))
        for start in range(0, samples, at_once):
            some, found = slice(start, min(start + at_once, samples)), []
            count = some.stop - start
            for lane, (layers, masks) in enumerate(drawn):
                # Where nothing is random, all draws are one.
                n = count if layers or masks else 1
                f = self.outputs(
                    x[lane].clone(),
                    [[part[some] for part in layer] for layer in layers],
                    {
                        name: p[lane].clone().expand(n, *p.shape[1:])
                        for name, p in self.points.items()
                    },
                    [mask[some] for mask in masks],
                    shared=True,
                )
                found.append(f.expand(count, *f.shape[1:]))
            yield torch.stack(found, dim=1)

    def _drawn(
        self, lane: int, samples: int, generator: torch.Generator
    ) -> tuple[list[list[Tensor]], list[Tensor]]:
        """Layers under draws of a lane, `[samples, ...]`, and masks that all rows share."""
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
        """Give every network its lane's parameters."""
        for lane, (network, blocks, factors) in enumerate(
            zip(self.networks, self._blocks(), self._factors(), strict=True)
        ):
            for stacked, block in zip(self.blocks, blocks, strict=True):
                block.mean.copy_(stacked.mean[lane])
                block.rho.copy_(stacked.rho[lane])
            for stacked_factor, factor in zip(self.factors, factors, strict=True):
                for name, value in zip(_FACTOR, stacked_factor.parameters, strict=True):
                    getattr(factor, name).copy_(value[lane])
            for name, point in _points(network, self.task).items():
                point.copy_(self.points[name][lane])

    def carried(self) -> Lanes:
        """The lanes when every posterior has become the prior."""
        self.write_back()
        for network in self.networks:
            consolidate(network, [self.task])
        return Lanes(self.networks, self.task)

    def _blocks(self) -> list[list[PosteriorBlock]]:
        return [
            [block for weights in of_lane for block in weights.posterior_blocks()]
            for of_lane in self._weights()
        ]

    def _factors(self) -> list[list[RDPBlock]]:
        return [
            [
                block
                for weights in of_lane
                if isinstance(weights, RDPWeights)
                for block in weights.factor_blocks().values()
            ]
            for of_lane in self._weights()
        ]

    def _weights(self) -> list[list[VariationalWeights]]:
        return [list(variational_weights(network, [self.task])) for network in self.networks]

    def _outputs_of_one(
        self,
        x: Tensor,
        layers: list[list[Tensor]],
        points: dict[str, Tensor],
        masks: list[Tensor],
    ) -> Tensor:
        for weights, (weight, *bias) in zip(self.template_layers, layers, strict=True):
            drawn = weight, (bias[0] if bias else None)
            weights.sampler = lambda drawn=drawn: drawn
        for dropout, mask in zip(self._template_dropout, masks, strict=bool(masks)):
            dropout.mask = mask
        outputs: Tensor = functional_call(self.template, points, (x, self.task))
        return outputs


def draw_factor(posterior: RDP, noise: FactorNoise, sample: int) -> Tensor:
    """The lanes' groups of this sample, `[lanes, groups, D]`."""
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


def _points(network: nn.Module, task: int) -> dict[str, nn.Parameter]:
    """The point estimates that a task uses, by name."""
    elsewhere = {
        id(parameter)
        for module in network.modules()
        if isinstance(module, MultiHead)
        for head_task, head in module.heads.items()
        if int(head_task) != task
        for parameter in head.parameters()
    }
    in_weights = {
        id(parameter)
        for module in network.modules()
        if isinstance(module, VariationalWeights)
        for parameter in module.parameters()
    }
    return {
        name: parameter
        for name, parameter in network.named_parameters()
        if id(parameter) not in elsewhere | in_weights
    }
