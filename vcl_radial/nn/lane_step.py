"""A training step of all lanes at once: draw, gradient in closed form, Adam.

The equations are those of `vcl_radial.nn.closed_form` with a leading axis; learning rates and the
factor of the KL may differ from lane to lane. Nothing in a step waits for the device, and it reads
and writes fixed tensors only, so that a GPU can replay it as one CUDA graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from vcl_radial import native
from vcl_radial.nn.closed_form import native_divergence
from vcl_radial.nn.lanes import LaneBlock, Lanes
from vcl_radial.nn.weights import softplus
from vcl_radial.posteriors import Radial

_BETAS, _EPSILON = (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class LaneSettings:
    """What a lane trains with.

    Attributes:
        learning_rate: of means and point estimates.
        rho_learning_rate: of the rhos.
        kl_factor: KL weight / N.
    """

    learning_rate: float
    rho_learning_rate: float
    kl_factor: float


class LaneStep:
    """Adam on `mean NLL + kl_factor * KL(q || p)` in every lane.

    Args:
        lanes: the networks.
        settings: of each lane.
        generators: of each lane, for its weight samples.
        x: the training inputs `[N, ...]` that all lanes draw their batches from.
        y: their labels `[N]`.
        samples: weight samples of a step.
        amsgrad: AMSGrad instead of Adam.
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
        amsgrad: bool,
    ) -> None:
        self.lanes, self.settings, self.generators = lanes, list(settings), list(generators)
        self.x, self.y, self.samples, self.amsgrad = x, y, samples, amsgrad
        self.parameters = [p for block in lanes.blocks for p in (block.mean, block.rho)]
        self.parameters += lanes.points.values()
        self.moments = [
            tuple(torch.zeros_like(p) for _ in range(3 if amsgrad else 2)) for p in self.parameters
        ]
        self.rate, self.rho_rate = x.new_zeros(len(settings)), x.new_zeros(len(settings))
        self.scale_rates([1.0] * len(settings))
        self.kl_factor = x.new_tensor([s.kl_factor for s in settings])
        self.number = torch.zeros((), device=x.device, dtype=torch.float64)
        """Steps made, where the device can count them."""
        self.steps = 0
        """The same, where Python can see them."""
        self._native = [self._native_lanes(k, block) for k, block in enumerate(lanes.blocks)]

    def scale_rates(self, factors: Sequence[float]) -> None:
        """Multiply the learning rates of the first lanes by these, from the next step on."""
        active = list(zip(self.settings, factors, strict=False))
        self.rates = [(f * s.learning_rate, f * s.rho_learning_rate) for s, f in active]
        rates = self.rate.new_tensor(self.rates)
        self.rate[: len(active)], self.rho_rate[: len(active)] = rates[:, 0], rates[:, 1]

    def __call__(self, rows: Tensor) -> Tensor:
        """Make a step of the first lanes on the rows `[lanes, B]`; their losses `[lanes]`."""
        active = len(rows)
        self.steps += 1
        self.number += 1
        blocks = [block.first(active) for block in self.lanes.blocks]
        points = {name: p[:active] for name, p in self.lanes.points.items()}
        x = self.x.index_select(0, rows.flatten()).view(*rows.shape, *self.x.shape[1:])
        y = self.y.index_select(0, rows.flatten())

        losses, grads, noises = self._gradients(blocks, points, x, y)
        count = len(blocks)
        with torch.no_grad():
            for k, block in enumerate(blocks):
                if native_lanes := self._native[k]:
                    self._native_step(native_lanes, block, grads[k], noises[k])
                else:
                    self._block_step(k, block, grads[k], noises[k])
            for k, point in enumerate(points.values()):
                self._adam(2 * count + k, point, grads[count + k][0], self.rate)
        return losses

    def state(self) -> tuple[list[Tensor], list[Tensor]]:
        """A copy of all that a step changes."""
        return [t.clone() for t in self._changing()], [g.get_state() for g in self.generators]

    def restore(self, state: tuple[list[Tensor], list[Tensor]]) -> None:
        """Go back to what `state` gave, in the same tensors."""
        tensors, generators = state
        for tensor, value in zip(self._changing(), tensors, strict=True):
            tensor.copy_(value)
        for generator, generator_state in zip(self.generators, generators, strict=True):
            generator.set_state(generator_state)

    def _changing(self) -> list[Tensor]:
        scales = [block.scale for block in self.lanes.blocks]
        return [*self.parameters, *scales, *(m for ms in self.moments for m in ms), self.number]

    def _gradients(
        self, blocks: list[LaneBlock], points: dict[str, Tensor], x: Tensor, y: Tensor
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor | None]], list[Tensor | None]]:
        """Losses, and for each block the gradients with respect to mean and scale.

        With one sample the latter is None, and the noise is given from which it follows.
        """
        lanes = len(x)
        total: list[tuple[Tensor, Tensor | None]] = []
        noises: list[Tensor | None] = []
        losses = torch.zeros(lanes, device=x.device, dtype=x.dtype)
        for _ in range(self.samples):
            weights, drawn = self._draw(blocks)
            leaves = [w.requires_grad_() for w in weights]
            fixed = {name: p.detach().requires_grad_() for name, p in points.items()}
            logits = self.lanes.logits(x, leaves, fixed, shared=False)
            nll = cross_entropy(logits.flatten(0, 1).float(), y, reduction="none")
            of_lane = nll.view(lanes, -1).mean(1) / self.samples
            grads = torch.autograd.grad(of_lane.sum(), [*leaves, *fixed.values()])
            losses += of_lane.detach()
            padded: list[Tensor | None] = [*drawn, *(None for _ in fixed)]
            if self.samples == 1:
                return losses, [(g, None) for g in grads], padded
            new = [(g, None if n is None else g * n) for g, n in zip(grads, padded, strict=True)]
            total = [_sum(a, b) for a, b in zip(total, new, strict=True)] if total else new
            noises = [None] * len(new)
        return losses, total, noises

    def _draw(self, blocks: list[LaneBlock]) -> tuple[list[Tensor], list[Tensor]]:
        """Weights and noise of every block; lane by lane as a network alone would draw them."""
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
                    noise.copy_(block.family(mean, scale).noise(1, generator)[0])
        for k, block in enumerate(blocks):
            if not self._native[k]:
                torch.addcmul(block.mean, block.scale, noises[k], out=weights[k])
        return weights, noises

    def _native_lanes(self, k: int, block: LaneBlock) -> list[native.AdamBlock]:
        """The compiled pass of each lane; none where it does not serve."""
        divergence = native_divergence(block.family, block.prior_family)
        arrays = (block.mean, block.rho, block.prior_mean, block.prior_scale)
        if divergence is None or not native.serves(*arrays):
            return []

        def moments(which: int, lane: int) -> native.Moments:
            own = [m[lane] for m in self.moments[2 * k + which]]
            return native.Moments(own[0], own[1], own[2] if self.amsgrad else None)

        return [
            native.AdamBlock(
                (block.mean[lane], moments(0, lane)),
                (block.rho[lane], moments(1, lane)),
                (block.prior_mean[lane], block.prior_scale[lane]),
                divergence,
            )
            for lane in range(len(block.mean))
        ]

    def _native_step(
        self,
        native_lanes: list[native.AdamBlock],
        block: LaneBlock,
        grad: tuple[Tensor, Tensor | None],
        noise: Tensor | None,
    ) -> None:
        given = [None if g is None else g.contiguous() for g in (*grad, noise)]
        for lane in range(len(block.mean)):
            mean, scale, own_noise = (None if g is None else g[lane] for g in given)
            assert mean is not None
            native_lanes[lane].step(
                (self.steps, self.steps),
                self.rates[lane],
                _BETAS,
                _EPSILON,
                self.settings[lane].kl_factor,
                block.scale[lane],
                native.Gradient(mean, None, scale, own_noise),
            )

    def _block_step(
        self,
        k: int,
        block: LaneBlock,
        grad: tuple[Tensor, Tensor | None],
        noise: Tensor | None,
    ) -> None:
        grad_mean, grad_scale = grad
        if grad_scale is None:
            assert noise is not None
            grad_scale = grad_mean * noise
        a = (block.mean - block.prior_mean).div_(block.prior_scale)
        pairs = [(a, block.scale / block.prior_scale)]
        gradients = block.family.kl_gradients(block.prior_family, pairs)
        assert gradients is not None
        ((kl_a, kl_s),) = gradients
        per_nat = _per_lane(self.kl_factor, block.mean) / block.prior_scale
        grad_rho = kl_s.mul_(per_nat).add_(grad_scale).mul_(block.rho.sigmoid())
        self._adam(2 * k, block.mean, kl_a.mul_(per_nat).add_(grad_mean), self.rate)
        self._adam(2 * k + 1, block.rho, grad_rho, self.rho_rate)
        block.scale.copy_(softplus(block.rho))

    def _adam(self, k: int, value: Tensor, grad: Tensor, rate: Tensor) -> None:
        """Kingma and Ba 2015, Algorithm 1; with AMSGrad, Reddi et al. 2018, Algorithm 2."""
        beta1, beta2 = _BETAS
        moments = [m[: len(value)] for m in self.moments[k]]
        exp_avg, exp_avg_sq = moments[:2]
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        highest = (
            torch.maximum(moments[2], exp_avg_sq, out=moments[2]) if self.amsgrad else exp_avg_sq
        )
        root_correction = (1 - beta2**self.number).sqrt()
        step_size = _per_lane(rate, value) / (1 - beta1**self.number)
        value.sub_(exp_avg.div(highest.sqrt().div_(root_correction).add_(_EPSILON)).mul_(step_size))


def _per_lane(values: Tensor, like: Tensor) -> Tensor:
    """One number for each of the first lanes, to multiply `[lanes, ...]` with."""
    return values[: len(like)].view(-1, *(1 for _ in like.shape[1:]))


def _sum(
    a: tuple[Tensor, Tensor | None], b: tuple[Tensor, Tensor | None]
) -> tuple[Tensor, Tensor | None]:
    (a_mean, a_scale), (b_mean, b_scale) = a, b
    return a_mean + b_mean, None if a_scale is None or b_scale is None else a_scale + b_scale
