"""Steps of `LaneStep` by the compiled library, which makes many of a lane's in one call.

It has those of a small `MLP` with one output, Gaussian noise of a precision that is learned, and
one learning rate for means and rhos.
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
    """The lanes of a step, as the compiled library sees them.

    Args:
        step: whose tensors are changed in place.
        noise: changed in place.
    """

    def __init__(self, step: LaneStep, noise: NoisePrecision) -> None:
        self.step, self.noise = step, noise  # whose memory the addresses are of
        noise.rate = noise.rate.contiguous()
        lanes = range(len(step.lanes))
        for block in step.lanes.blocks:
            # What is left at the end of vector instructions is rounded otherwise: lane by lane, a
            # lane starts to the last bit where it does alone.
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
    def of(cls, step: LaneStep, noise: NoisePrecision) -> CompiledLanes | None:
        """None where the library has no such steps, or there is none."""
        lanes, settings = step.lanes, step.settings
        known = (
            type(lanes.template) is MLP
            and isinstance(lanes.template.head, SingleHead)
            and not lanes.template.in_bfloat16
            and not step.adam.amsgrad
            and all(s.learning_rate == s.rho_learning_rate for s in settings)
            and all(native_divergence(b.family, b.prior_family) is not None for b in lanes.blocks)
            and native.serves(step.x, step.y, *step.adam.parameters)
        )
        return cls(step, noise) if known else None

    def steps(self, rows: Tensor, noise: LaneNoise, shares: Sequence[float]) -> None:
        """As many steps as there are shares.

        Args:
            rows: of each step's batch, `[steps, R, B]`; there may be more steps than are made.
            noise: of all draws, `[R, steps S, ...]`.
            shares: of the learning rates, of each step.
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
    """The layers of a lane, without what is random."""
    template = step.lanes.template
    assert isinstance(template, MLP)
    k = factors = 0
    modules = [(f"body.{place}", layer) for place, layer in enumerate(template.body)]
    for name, module in [*modules, ("head.output", template.head.output)]:
        if isinstance(module, BayesianLinear):
            count = len(module.weights.posterior_blocks())
            blocks = [_drawn(step, k + block, lane) for block in range(count)]
            layer = _placed(module.weights)
            k += count
        else:
            blocks = [_point(step, f"{name}.{part}", lane) for part in ("weight", "bias")]
            assert isinstance(module, PointLinear)
            outputs, inputs = module.weight.shape
            layer = _row_by_row(inputs, outputs)
        start = 0
        if isinstance(module, BayesianLinear) and isinstance(module.weights, RDPWeights):
            start = layer.inputs * layer.outputs
            for factor_name in module.weights.factor_blocks():
                layer.factor[layer.factors] = _factor(step, factors, lane, factor_name == "columns")
                layer.factors, factors = layer.factors + 1, factors + 1
        layer.blocks = len(blocks)
        for place, block in enumerate(blocks):
            block.at, start = start, start + block.groups * block.D
            layer.block[place] = block
        layer.weights = start
        yield layer


def _placed(weights: VariationalWeights) -> c.Layer:
    """Where the grouping puts every weight and bias."""
    outputs, inputs = weights.shape
    if isinstance(weights, RDPWeights):
        return _row_by_row(inputs, outputs)
    names = torch.arange(outputs * (inputs + 1))
    joined = weights.grouping.join(names[:-outputs].view(weights.shape), names[-outputs:])
    place = torch.cat([block.flatten() for block in joined]).argsort().tolist()
    of_weights, of_biases = place[:-outputs], place[-outputs:]
    row = of_weights[inputs] - of_weights[0] if outputs > 1 else inputs
    step = of_biases[1] - of_biases[0] if outputs > 1 else 1
    return c.Layer(inputs, outputs, row=row, bias=of_biases[0], bias_step=step)


def _row_by_row(inputs: int, outputs: int) -> c.Layer:
    """Rows of weights, and behind them the biases."""
    return c.Layer(inputs, outputs, row=inputs, bias=outputs * inputs, bias_step=1)


def _drawn(step: LaneStep, k: int, lane: int) -> c.Block:
    """A block of a location-scale family."""
    block = step.lanes.blocks[k]
    _, groups, D = block.mean.shape
    divergence = native_divergence(block.family, block.prior_family)
    assert divergence is not None
    return c.Block(
        groups=groups,
        D=D,
        mean=Adam.pointing_to(*step.adam.of_lane(2 * k, lane)),
        rho=Adam.pointing_to(*step.adam.of_lane(2 * k + 1, lane)),
        scale=_address(block.scale, lane),
        prior_mean=_address(block.prior_mean, lane),
        prior_scale=_address(block.prior_scale, lane),
        divergence=divergence,
    )


def _factor(step: LaneStep, k: int, lane: int, columns: bool) -> Factor:
    """The k-th factor of an RDP."""
    factor, first = step.lanes.factors[k], step.adam_of_factor(k)
    _, groups, D = factor.parameters[0].shape
    parameters = [Adam.pointing_to(*step.adam.of_lane(first + part, lane)) for part in range(4)]
    made = Factor(groups, D, columns, *parameters)
    if factor.carried is None:
        made.prior_scale = factor.first_prior.scale
        made.prior_concentration = factor.first_prior.concentration(D)
    else:
        (
            made.prior_direction,
            made.prior_log_concentration,
            made.prior_loc,
            made.prior_rho,
        ) = (_address(parameter, lane) for parameter in factor.carried)
    return made


def _point(step: LaneStep, name: str, lane: int) -> c.Block:
    """Point estimates."""
    value, moments = step.adam.of_lane(step.adam_of(name), lane)
    precision = step.prior_precision.get(name)
    return c.Block(
        groups=1,
        D=value.numel(),
        mean=Adam.pointing_to(value, moments),
        precision=0.0 if precision is None else float(precision[lane]),
    )


def _address(tensor: Tensor, lane: int) -> int:
    """The address of a lane's part."""
    assert tensor.is_contiguous()
    assert tensor.dtype in (torch.float32, torch.int64)
    return tensor.data_ptr() + lane * tensor.stride(0) * tensor.element_size()
