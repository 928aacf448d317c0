"""A training step of all lanes at once: draw, gradient in closed form, Adam.

The equations are the same as in `vcl_radial.nn.closed_form`, with a leading axis; learning rates
and the factor of the KL may differ between lanes. For the factors of an RDP, autograd
differentiates draws and KL. A step never waits for the device, and reads and writes fixed tensors
only, so that a GPU can replay it as one CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from vcl_radial import native
from vcl_radial.nn.blocks import softplus
from vcl_radial.nn.drawn_layer import native_divergence
from vcl_radial.nn.lane_adam import BETAS, EPSILON, LaneAdam, per_lane
from vcl_radial.nn.lanes import LaneBlock, LaneFactor, LaneNoise, Lanes, draw_factor
from vcl_radial.posteriors import Radial
from vcl_radial.posteriors.rdp import RDP


@dataclass(frozen=True)
class LaneSettings:
    """The training settings of a lane.

    Attributes:
        learning_rate: learning rate of means and point estimates.
        rho_learning_rate: learning rate of the rhos.
        kl_factor: factor of the KL, KL weight / N.
    """

    learning_rate: float
    rho_learning_rate: float
    kl_factor: float


Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Maps outputs `[lanes, B, C]` and targets `[lanes, B]` to each lane's mean NLL, `[lanes]`."""


class LaneStep:
    """Adam on `mean NLL + kl_factor * KL(q || p)` in every lane.

    A point estimate w with a prior N(0, 1 / precision) adds kl_factor * precision / 2 * w^2.

    Args:
        lanes: the networks.
        settings: settings of each lane.
        generators: generator of each lane's weight samples.
        x: the training inputs `[N, ...]` of all lanes.
        y: the training targets `[N]`.
        samples: number of weight samples per step.
        loss: the mean NLL.
        amsgrad: whether to use AMSGrad instead of Adam.
        prior_precision: precisions of point estimates by name, `[R]`; others have no prior.
    """

    def __init__(
        self,
        lanes: Lanes,
        settings: Sequence[LaneSettings],
        generators: Sequence[torch.Generator],
        x: Tensor,
        y: Tensor,
        *,
        samples: int,
        loss: Loss,
        amsgrad: bool = False,
        prior_precision: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.lanes, self.settings, self.generators = lanes, list(settings), list(generators)
        self.x, self.y, self.samples, self.loss = x, y, samples, loss
        self.prior_precision = dict(prior_precision or {})
        parameters = [p for block in lanes.blocks for p in (block.mean, block.rho)]
        parameters += [p for factor in lanes.factors for p in factor.parameters]
        self.adam = LaneAdam([*parameters, *lanes.points.values()], amsgrad=amsgrad)
        self._first_point = len(parameters)
        self.rate, self.rho_rate = x.new_zeros(len(settings)), x.new_zeros(len(settings))
        self.scale_rates([1.0] * len(settings))
        self.kl_factor = x.new_zeros(len(settings))
        self.scale_kl([1.0] * len(settings))
        self._native = [self._native_lanes(k, block) for k, block in enumerate(lanes.blocks)]

    def scale_rates(self, factors: Sequence[float]) -> None:
        """Scale the learning rates of the first lanes from the next step on."""
        active = list(zip(self.settings, factors, strict=False))
        self.rates = [(f * s.learning_rate, f * s.rho_learning_rate) for s, f in active]
        rates = self.rate.new_tensor(self.rates)
        self.rate[: len(active)], self.rho_rate[: len(active)] = rates[:, 0], rates[:, 1]

    def scale_kl(self, factors: Sequence[float]) -> None:
        """Scale the factors of the KL of the first lanes from the next step on."""
        self.kl_factors = [f * s.kl_factor for s, f in zip(self.settings, factors, strict=False)]
        self.kl_factor[: len(factors)] = self.kl_factor.new_tensor(self.kl_factors)

    def __call__(self, rows: Tensor, noise: LaneNoise | None = None) -> Tensor:
        """Take a step of the first lanes on the rows `[lanes, B]`; return the losses `[lanes]`.

        Without `noise`, each lane draws the same noise as a single network.
        """
        active = len(rows)
        self.adam.count()
        blocks = [block.first(active) for block in self.lanes.blocks]
        x = self.x.index_select(0, rows.flatten()).view(*rows.shape, *self.x.shape[1:])
        y = self.y.index_select(0, rows.flatten()).view(rows.shape)

        losses, grads, noises = self._gradients(blocks, x, y, noise)
        count = len(blocks)
        with torch.no_grad():
            for k, block in enumerate(blocks):
                grad_mean, grad_scale = grads[k]
                self.step_block(k, block, native.Gradient(grad_mean, None, grad_scale, noises[k]))
            for k, (grad, _) in enumerate(grads[count:], start=2 * count):
                self.adam.step(k, grad, self.rate)
        return losses

    def state(self) -> tuple[list[Tensor], list[Tensor]]:
        """Copies of all tensors and generators that a step changes."""
        return [t.clone() for t in self._state_tensors()], [g.get_state() for g in self.generators]

    def restore(self, state: tuple[list[Tensor], list[Tensor]]) -> None:
        """Restore the values of `state` in the same tensors."""
        tensors, generators = state
        for tensor, value in zip(self._state_tensors(), tensors, strict=True):
            tensor.copy_(value)
        for generator, generator_state in zip(self.generators, generators, strict=True):
            generator.set_state(generator_state)

    def adam_index_of_factor(self, k: int) -> int:
        """The index in Adam's parameters of the first parameter of the k-th factor."""
        before = sum(len(factor.parameters) for factor in self.lanes.factors[:k])
        return 2 * len(self.lanes.blocks) + before

    def adam_index(self, name: str) -> int:
        """The index in Adam's parameters of the point estimates of that name."""
        return self._first_point + list(self.lanes.points).index(name)

    def _state_tensors(self) -> list[Tensor]:
        scales = [block.scale for block in self.lanes.blocks]
        moments = [m for ms in self.adam.moments for m in ms]
        return [*self.adam.parameters, *scales, *moments, self.adam.number]

    def _gradients(
        self, blocks: list[LaneBlock], x: Tensor, y: Tensor, noise: LaneNoise | None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor | None]], list[Tensor | None]]:
        """Losses, and for each block the gradients in mean and scale.

        With one sample, the gradient in the scale is None, and follows from the returned noise. The
        parameters of factors and the point estimates follow after the blocks.
        """
        lanes = len(x)
        total: list[tuple[Tensor, Tensor | None]] = []
        noises: list[Tensor | None] = []
        losses = torch.zeros(lanes, device=x.device, dtype=x.dtype)
        for sample in range(self.samples):
            weights, sample_noises = self._draw(blocks, noise, sample)
            masks = [] if noise is None else [mask[:, sample] for mask in noise.masks]
            leaves = [w.requires_grad_() for w in weights]
            extra = [
                p[:lanes].detach().requires_grad_() for p in self.adam.parameters[2 * len(blocks) :]
            ]
            posteriors, points = self._from_values(extra)
            if noise is None:
                factors = [q.sample(1, self.generators[:lanes]).squeeze(0) for q in posteriors]
            else:
                pairs = zip(posteriors, noise.factors, strict=True)
                factors = [draw_factor(q, factor_noise, sample) for q, factor_noise in pairs]
            layers = self.lanes.layers(leaves, factors)
            outputs = self.lanes.outputs(x, layers, points, masks, shared=False)
            lane_losses = self.loss(outputs, y) / self.samples
            # The KL of blocks has a closed form; the loss of the first sample includes all other KL
            # terms.
            terms = [] if sample else self._divergences(lanes, posteriors, points)
            grads = torch.autograd.grad([t.sum() for t in (lane_losses, *terms)], [*leaves, *extra])
            losses += lane_losses.detach()
            padded: list[Tensor | None] = [*sample_noises, *(None for _ in extra)]
            if self.samples == 1:
                return losses, [(g, None) for g in grads], padded
            new = [(g, None if n is None else g * n) for g, n in zip(grads, padded, strict=True)]
            total = [_sum(a, b) for a, b in zip(total, new, strict=True)] if total else new
            noises = [None] * len(new)
        return losses, total, noises

    def _from_values(self, values: Sequence[Tensor]) -> tuple[list[RDP], dict[str, Tensor]]:
        """The posteriors of factors and the point estimates by name, from parameter values."""
        remaining = iter(values)
        posteriors = [
            LaneFactor.posterior([next(remaining) for _ in factor.parameters])
            for factor in self.lanes.factors
        ]
        return posteriors, dict(zip(self.lanes.points, remaining, strict=True))

    def _divergences(
        self, lanes: int, posteriors: Sequence[RDP], points: Mapping[str, Tensor]
    ) -> list[Tensor]:
        """kl_factor * KL of everything that is not a block; each has the shape `[lanes]`."""
        pairs = zip(posteriors, self.lanes.factors, strict=True)
        terms = [q.kl(factor.prior(lanes)) for q, factor in pairs]
        for name, precision in self.prior_precision.items():
            squares = points[name].square().flatten(1).sum(1)
            terms.append(precision[:lanes] / 2 * squares)
        return [self.kl_factor[:lanes] * term for term in terms]

    def _draw(
        self, blocks: list[LaneBlock], lane_noise: LaneNoise | None, sample: int
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Draw weights and noise of every block, lane by lane, as in a single network."""
        if lane_noise is not None:
            noises = [noise[:, sample] for noise in lane_noise.blocks]
            pairs = zip(blocks, noises, strict=True)
            return [torch.addcmul(b.mean, b.scale, noise) for b, noise in pairs], noises
        weights = [torch.empty_like(block.mean) for block in blocks]
        noises = [torch.empty_like(block.mean) for block in blocks]
        active = len(blocks[0].mean) if blocks else 0
        for lane, generator in enumerate(self.generators[:active]):
            for k, block in enumerate(blocks):
                mean, scale, noise = block.mean[lane], block.scale[lane], noises[k][lane]
                if self._native[k]:
                    native.standard_normal(noise, generator)
                    radius = None
                    if issubclass(block.family, Radial):
                        radius = torch.randn(len(mean), 1, generator=generator)
                    native.draw(weights[k][lane], None, noise, radius, mean, scale)
                else:
                    noise.copy_(block.noise(1, lane, generator)[0])
        for k, block in enumerate(blocks):
            if not self._native[k]:
                torch.addcmul(block.mean, block.scale, noises[k], out=weights[k])
        return weights, noises

    def _native_lanes(self, k: int, block: LaneBlock) -> list[native.AdamBlock]:
        """The compiled pass of each lane; empty if it is not supported."""
        divergence = native_divergence(block.family, block.prior_family)
        arrays = (block.mean, block.rho, block.prior_mean, block.prior_scale)
        if divergence is None or not native.serves(*arrays):
            return []

        return [
            native.AdamBlock(
                self.adam.lane_part(2 * k, lane),
                self.adam.lane_part(2 * k + 1, lane),
                (block.prior_mean[lane], block.prior_scale[lane]),
                divergence,
            )
            for lane in range(len(block.mean))
        ]

    def _native_step(
        self, native_lanes: list[native.AdamBlock], block: LaneBlock, gradient: native.Gradient
    ) -> None:
        first, *rest = (None if part is None else part.contiguous() for part in gradient)
        assert first is not None
        free = self.means_are_free(block)
        for lane in range(len(block.mean)):
            factor = self.kl_factors[lane]
            native_lanes[lane].prepare(
                (self.adam.steps, self.adam.steps),
                self.rates[lane],
                BETAS,
                EPSILON,
                (0.0 if free else factor, factor),
                block.scale[lane],
                native.Gradient(first[lane], *(None if p is None else p[lane] for p in rest)),
            )
        native.make_steps(native_lanes[: len(block.mean)])

    def means_are_free(self, block: LaneBlock) -> bool:
        """Whether the KL has no gradient in the means of a block."""
        return False

    def step_block(self, k: int, block: LaneBlock, gradient: native.Gradient) -> None:
        """Update the means, rhos and scales of the first lanes of the k-th block.

        The gradient belongs to the NLL, `[lanes, groups, D]`.
        """
        if native_lanes := self._native[k]:
            self._native_step(native_lanes, block, gradient)
            return
        grad_mean, _, grad_scale, noise = gradient
        if grad_scale is None:
            assert noise is not None
            grad_scale = grad_mean * noise
        a = (block.mean - block.prior_mean).div_(block.prior_scale)
        pairs = [(a, block.scale / block.prior_scale)]
        gradients = block.family.kl_gradients(block.prior_family, pairs)
        assert gradients is not None
        ((kl_a, kl_s),) = gradients
        per_nat = per_lane(self.kl_factor, block.mean) / block.prior_scale
        grad_rho = kl_s.mul_(per_nat).add_(grad_scale).mul_(block.rho.sigmoid())
        if not self.means_are_free(block):
            grad_mean = kl_a.mul_(per_nat).add_(grad_mean)
        self.adam.step(2 * k, grad_mean, self.rate)
        self.adam.step(2 * k + 1, grad_rho, self.rho_rate)
        block.scale.copy_(softplus(block.rho))


def _sum(
    a: tuple[Tensor, Tensor | None], b: tuple[Tensor, Tensor | None]
) -> tuple[Tensor, Tensor | None]:
    (a_mean, a_scale), (b_mean, b_scale) = a, b
    return a_mean + b_mean, None if a_scale is None or b_scale is None else a_scale + b_scale
