"""The steps of `fit` by the compiled library, which makes many of a lane's in one call."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Array

import torch
from torch import Tensor

from vcl_radial import native
from vcl_radial.native import network as c
from vcl_radial.noise_precision import NoisePrecision
from vcl_radial.tracks.regression.adam import BETAS, EPSILON, LaneAdam
from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.layers import CompiledLayer
from vcl_radial.tracks.regression.network import LaneNetwork

_FLOAT, _LONG = 4, 8


class CompiledLanes:
    """The lanes of a program, as the compiled library sees them.

    Args:
        network: whose parameters are changed in place.
        layers: what its layers say of themselves.
        adam: its optimiser.
        noise: changed in place.
        data: the training data.
        kl_factor: of the KL in a step's loss, `[R]`.
        noise_step: of the noise's updates.
    """

    def __init__(
        self,
        network: LaneNetwork,
        layers: Sequence[CompiledLayer],
        adam: LaneAdam,
        noise: NoisePrecision,
        data: LaneData,
        kl_factor: Tensor,
        noise_step: float,
    ) -> None:
        self.adam, self.noise = adam, noise
        # Everything that the structures point to.
        self._kept = [network.parameters, adam.first, adam.second, data.x, data.y, *layers]
        noise.rate = noise.rate.contiguous()
        self._layers = [_structures(layers, network.sizes, lane) for lane in range(network.lanes)]
        self._lanes = [
            c.Network(
                layers=structures,
                depth=len(layers),
                values=_row(network.parameters, lane),
                exp_avg=_row(adam.first, lane),
                exp_avg_sq=_row(adam.second, lane),
                x=_row(data.x, lane),
                y=_row(data.y, lane),
                kl_factor=factor,
                beta1=BETAS[0],
                beta2=BETAS[1],
                epsilon=EPSILON,
                noise_rate=_row(noise.rate, lane),
                noise_shape=float(noise.shape[lane]),
                prior_rate=float(noise.prior_rate[lane]),
                half_points=points / 2,
                noise_step=noise_step,
            )
            for lane, (structures, points, factor) in enumerate(
                zip(self._layers, data.points.tolist(), kl_factor.tolist(), strict=True)
            )
        ]
        self._scratch = torch.zeros(c.scratch(self._lanes[0]))
        for each in self._lanes:
            each.scratch = self._scratch.data_ptr()

    @classmethod
    def of(
        cls,
        network: LaneNetwork,
        adam: LaneAdam,
        noise: NoisePrecision,
        data: LaneData,
        kl_factor: Tensor,
        noise_step: float,
    ) -> CompiledLanes | None:
        """None where there is no library, or a layer is none that it has."""
        layers = [layer.compiled() for layer in network.layers]
        known = [layer for layer in layers if layer is not None]
        if len(known) < len(layers) or not native.serves(network.parameters, data.x, data.y):
            return None
        return cls(network, known, adam, noise, data, kl_factor, noise_step)

    def steps(
        self,
        rows: Tensor,
        random: Sequence[Sequence[Tensor]],
        shares: Sequence[float],
        samples: int,
    ) -> None:
        """As many steps as there are shares.

        Args:
            rows: of each step's batch, `[steps, R, B]`; there may be more steps than are made.
            random: of each layer, as from `LaneNetwork.random`, `[R, steps S, ...]` each.
            shares: of the learning rates, of each step.
            samples: weight samples of a step, S.
        """
        assert rows.is_contiguous()
        rates = (self.adam.rates * torch.tensor(shares)).contiguous()
        for lane, (each, layers) in enumerate(zip(self._lanes, self._layers, strict=True)):
            batch = rows.shape[2]
            each.rows, each.stride = rows.data_ptr() + lane * batch * _LONG, rows.shape[1] * batch
            each.batch, each.samples, each.steps = batch, samples, len(shares)
            each.rates, each.done = _row(rates, lane), self.adam.steps
            for layer, parts in zip(layers, random, strict=True):
                if layer.blocks:
                    for block, part in zip(layer.block, parts, strict=False):
                        block.noise = _row(part, lane)
                elif parts:
                    layer.mask = _row(parts[0], lane)
            c.train(each)
        self.adam.steps += len(shares)


def _structures(layers: Sequence[CompiledLayer], sizes: Sequence[int], lane: int) -> Array[c.Layer]:
    found, at = (c.Layer * len(layers))(), 0
    for structure, layer, size in zip(found, layers, sizes, strict=True):
        structure.inputs, structure.outputs = layer.inputs, layer.outputs
        structure.row, structure.bias, structure.bias_step = layer.row, layer.bias, layer.bias_step
        structure.weights = layer.outputs * (layer.inputs + 1)
        structure.at, structure.blocks, at = at, len(layer.blocks), at + size
        if layer.precision is not None:
            structure.precision = _row(layer.precision, lane)
        start = 0
        for k, (prior, divergence) in enumerate(layer.blocks):
            groups, D = prior.mean.shape[1:]
            structure.block[k] = c.Block(
                at=start,
                groups=groups,
                D=D,
                prior_mean=_row(prior.mean, lane),
                prior_scale=_row(prior.scale, lane),
                divergence=divergence,
            )
            start += groups * D
    return found


def _row(tensor: Tensor, lane: int) -> int:
    """The address of a lane's part."""
    assert tensor.is_contiguous()
    assert tensor.dtype == torch.float32
    return tensor.data_ptr() + lane * tensor.stride(0) * _FLOAT
