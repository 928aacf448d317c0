"""Steps of `LaneStep` by the compiled library, which makes many steps of a lane in one call.

It supports a small `MLP` with one output, Gaussian noise of a learned precision, and one learning
rate for means and rhos.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import Array

import torch
from torch import Tensor

from vcl_radial import native
from vcl_radial.likelihoods.noise_precision import BATCH_STEP, NoisePrecision
from vcl_radial.native import network as c
from vcl_radial.native.rdp import Factor
from vcl_radial.native.step import Adam
from vcl_radial.nn.blocks import softplus
from vcl_radial.nn.drawn_layer import native_divergence
from vcl_radial.nn.heads import SingleHead
from vcl_radial.nn.lane_adam import BETAS, EPSILON
from vcl_radial.nn.lane_step import LaneStep
from vcl_radial.nn.lanes import LaneNoise
from vcl_radial.nn.linear import BayesianLinear, PointLinear
from vcl_radial.nn.mlp import MLP
from vcl_radial.nn.rdp import RDPWeights
from vcl_radial.nn.weights import VariationalWeights

_LONG = 8


class CompiledLanes:
    """The lanes of a step, in the structures of the compiled library.

    Args:
        step: the step of all lanes; its tensors change in place.
        noise: the noise precision; it changes in place.
    """

    def __init__(self, step: LaneStep, noise: NoisePrecision) -> None:
        self.step, self.noise = step, noise  # keeps the memory at the addresses alive
        noise.rate = noise.rate.contiguous()
        lanes = range(len(step.lanes))
        for block in step.lanes.blocks:
            # The remainder after vector instructions is rounded differently. If the scales are
            # computed lane by lane, they equal the scales of a single network to the last bit.
            block.scale.copy_(torch.stack([softplus(rho) for rho in block.rho]))
        self._layers = [_array(list(_layers(step, lane))) for lane in lanes]
        self._networks = [
            c.Network(
                layers=layers,
                depth=len(layers),
                x=step.x.data_ptr(),
                y=step.y.data_ptr(),
                kl_factor=step.settings[lane].kl_factor,
                beta1=BETAS[0],
                beta2=BETAS[1],
                epsilon=EPSILON,
                noise_rate=_address(noise.rate, lane),
                noise_shape=float(noise.shape[lane]),
                prior_rate=float(noise.prior_rate[lane]),
                half_points=float(noise.points[lane]) / 2,
                noise_step=BATCH_STEP,
            )
            for lane, layers in enumerate(self._layers)
        ]
        self._scratch = torch.zeros(c.scratch(self._networks[0]))
        for network in self._networks:
            network.scratch = self._scratch.data_ptr()

    @classmethod
    def if_supported(cls, step: LaneStep, noise: NoisePrecision) -> CompiledLanes | None:
        """The compiled lanes; None if there is no library or if it does not support the step."""
        lanes, settings = step.lanes, step.settings
        supported = (
            type(lanes.template) is MLP
            and isinstance(lanes.template.head, SingleHead)
            and not lanes.template.head.grown
            and not lanes.template.in_bfloat16
            and not step.adam.amsgrad
            and all(s.learning_rate == s.rho_learning_rate for s in settings)
            and all(native_divergence(b.family, b.prior_family) is not None for b in lanes.blocks)
            and native.serves(step.x, step.y, *step.adam.parameters)
        )
        return cls(step, noise) if supported else None

    def steps(self, rows: Tensor, noise: LaneNoise, shares: Sequence[float]) -> None:
        """Take one step per entry of `shares`.

        Args:
            rows: the rows of each step's batch, `[steps, R, B]`, for at least `len(shares)` steps.
            noise: the noise of all draws, `[R, steps S, ...]`.
            shares: the factors of the learning rates in each step.
        """
        rows, adam = rows.contiguous(), self.step.adam
        noise = LaneNoise(
            [t.contiguous() for t in noise.blocks],
            [t.contiguous() for t in noise.masks],
            noise.factors,
        )
        rates = torch.tensor([s.learning_rate for s in self.step.settings])[:, None]
        rates = rates * torch.tensor(shares)
        for lane, (network, layers) in enumerate(zip(self._networks, self._layers, strict=True)):
            network.rows = rows.data_ptr() + lane * rows.shape[2] * _LONG
            network.stride, network.batch = rows[0].numel(), rows.shape[2]
            network.samples, network.steps = self.step.samples, len(shares)
            network.rates, network.done = _address(rates, lane), adam.steps
            blocks, masks, factors = iter(noise.blocks), iter(noise.masks), iter(noise.factors)
            for layer in layers:
                for block in layer.block[: layer.blocks]:
                    if block.rho.value:
                        block.noise = _address(next(blocks), lane)
                for factor in layer.factor[: layer.factors]:
                    normals, tangents, keys = next(factors)
                    factor.factors = _address(normals, lane)
                    factor.tangents = _address(tangents, lane)
                    factor.keys = _address(keys, lane)
                if noise.masks:
                    layer.mask = _address(next(masks), lane)
            c.train(network)
        adam.count(len(shares))


def _array(layers: Sequence[c.Layer]) -> Array[c.Layer]:
    return (c.Layer * len(layers))(*layers)


def _layers(step: LaneStep, lane: int) -> Iterator[c.Layer]:
    """The layers of a lane, without their random numbers."""
    template = step.lanes.template
    assert isinstance(template, MLP)
    k = factors = 0
    modules = [(f"body.{index}", layer) for index, layer in enumerate(template.body)]
    for name, module in [*modules, ("head.output", template.head.output)]:
        if isinstance(module, BayesianLinear):
            count = len(module.weights.posterior_blocks())
            blocks = [_block(step, k + block, lane) for block in range(count)]
            layer = _grouped_layer(module.weights)
            k += count
        else:
            blocks = [_point(step, f"{name}.{part}", lane) for part in ("weight", "bias")]
            assert isinstance(module, PointLinear)
            outputs, inputs = module.weight.shape
            layer = _layer_of_rows(inputs, outputs)
        start = 0
        if isinstance(module, BayesianLinear) and isinstance(module.weights, RDPWeights):
            start = layer.inputs * layer.outputs
            for factor_name in module.weights.factor_blocks():
                layer.factor[layer.factors] = _factor(step, factors, lane, factor_name == "columns")
                layer.factors, factors = layer.factors + 1, factors + 1
        layer.blocks = len(blocks)
        for index, block in enumerate(blocks):
            block.at, start = start, start + block.groups * block.D
            layer.block[index] = block
        layer.weights = start
        yield layer


def _grouped_layer(weights: VariationalWeights) -> c.Layer:
    """A layer with the positions of weights and biases under its grouping."""
    outputs, inputs = weights.shape
    if isinstance(weights, RDPWeights):
        return _layer_of_rows(inputs, outputs)
    positions = torch.arange(outputs * (inputs + 1))
    blocks = weights.grouping.join(positions[:-outputs].view(weights.shape), positions[-outputs:])
    index = torch.cat([block.flatten() for block in blocks]).argsort().tolist()
    weight_places, bias_places = index[:-outputs], index[-outputs:]
    row = weight_places[inputs] - weight_places[0] if outputs > 1 else inputs
    step = bias_places[1] - bias_places[0] if outputs > 1 else 1
    return c.Layer(inputs, outputs, row=row, bias=bias_places[0], bias_step=step)


def _layer_of_rows(inputs: int, outputs: int) -> c.Layer:
    """A layer whose memory has the rows of weights first, then the biases."""
    return c.Layer(inputs, outputs, row=inputs, bias=outputs * inputs, bias_step=1)


def _block(step: LaneStep, k: int, lane: int) -> c.Block:
    """A block of a location-scale family."""
    block = step.lanes.blocks[k]
    _, groups, D = block.mean.shape
    divergence = native_divergence(block.family, block.prior_family)
    assert divergence is not None
    return c.Block(
        groups=groups,
        D=D,
        mean=Adam.pointing_to(*step.adam.lane_part(2 * k, lane)),
        rho=Adam.pointing_to(*step.adam.lane_part(2 * k + 1, lane)),
        scale=_address(block.scale, lane),
        prior_mean=_address(block.prior_mean, lane),
        prior_scale=_address(block.prior_scale, lane),
        divergence=divergence,
    )


def _factor(step: LaneStep, k: int, lane: int, columns: bool) -> Factor:
    """The k-th factor of an RDP."""
    factor, first = step.lanes.factors[k], step.adam_index_of_factor(k)
    _, groups, D = factor.parameters[0].shape
    parameters = [Adam.pointing_to(*step.adam.lane_part(first + part, lane)) for part in range(4)]
    factor_struct = Factor(groups, D, columns, *parameters)
    if factor.carried is None:
        factor_struct.prior_scale = factor.first_prior.scale
        factor_struct.prior_concentration = factor.first_prior.concentration(D)
    else:
        (
            factor_struct.prior_direction,
            factor_struct.prior_log_concentration,
            factor_struct.prior_loc,
            factor_struct.prior_rho,
        ) = (_address(parameter, lane) for parameter in factor.carried)
    return factor_struct


def _point(step: LaneStep, name: str, lane: int) -> c.Block:
    """A block of point estimates."""
    value, moments = step.adam.lane_part(step.adam_index(name), lane)
    precision = step.prior_precision.get(name)
    return c.Block(
        groups=1,
        D=value.numel(),
        mean=Adam.pointing_to(value, moments),
        precision=0.0 if precision is None else float(precision[lane]),
    )


def _address(tensor: Tensor, lane: int) -> int:
    """The address of a lane's part of a tensor."""
    assert tensor.is_contiguous()
    assert tensor.dtype in (torch.float32, torch.int64)
    return tensor.data_ptr() + lane * tensor.stride(0) * tensor.element_size()
