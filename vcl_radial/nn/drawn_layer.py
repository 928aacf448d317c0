"""The draws of a layer as leaves of the graph.

With one draw w = mean + scale * noise per forward pass, g = d NLL / dw and scale = softplus(rho),

    d NLL / d mean = g,    d NLL / d rho = g * noise * sigmoid(rho)

so that autograd only has to go as far as the weights that were drawn.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vcl_radial import native
from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.nn.grouping import Layer
from vcl_radial.nn.weights import VariationalWeights
from vcl_radial.posteriors import Gaussian, Posterior, Radial, RadialEq44
from vcl_radial.posteriors.transforms import transformed

_NATIVE: dict[tuple[type[Posterior], type[Posterior]], native.Divergence] = {
    (Gaussian, Gaussian): native.Divergence.GAUSSIAN,
    (Radial, Gaussian): native.Divergence.QUADRATIC,
    (Radial, Radial): native.Divergence.RADIAL,
    (RadialEq44, Gaussian): native.Divergence.QUADRATIC,
    (RadialEq44, RadialEq44): native.Divergence.QUADRATIC,
}


def native_divergence(
    family: type[Posterior], prior_family: type[Posterior]
) -> native.Divergence | None:
    """What `vcl_radial.native` calls the KL of a family to a prior's family, where it has it."""
    return _NATIVE.get((family, prior_family))


class DrawnLayer:
    """Draws the weights of a layer, whose one block, or two of weight and bias, it knows.

    Weight and bias of a draw are tensors of their own, and so are their gradients: neither is cut
    out of a block or put together again on the way.
    """

    def __init__(self, weights: VariationalWeights) -> None:
        self.weights = weights
        self.drawn = [DrawnBlock(block) for block in weights.posterior_blocks()]
        self.compiled = all(d.divergence is not None for d in self.drawn)
        self._lent: list[_Draw] = []
        self._free: list[_Draw] = []
        weights.sampler = self.sample

    def sample(self) -> Layer:
        """Weight and bias of a draw, whose `.grad` will be those with respect to the draw."""
        if transformed():  # the parameters are those of the transform
            return self.weights.split([d.block.sample() for d in self.drawn])
        if not self.compiled:
            draw = self._draw_in_torch()
        else:
            draw = self._free.pop() if self._free else self._new_draw()
            for drawn, buffer in zip(self.drawn, draw.buffers, strict=True):
                drawn.draw(buffer)
        trained = any(d.trained for d in self.drawn)
        for leaf in draw.leaves:
            leaf.requires_grad_(trained)
        self._lent.append(draw)
        return draw.weight, draw.bias

    @torch.no_grad()
    def _draw_in_torch(self) -> _Draw:
        noises = [d.block.family(d.block.mean, d.scale).noise(1).squeeze(0) for d in self.drawn]
        blocks = [
            torch.addcmul(d.block.mean, d.scale, noise)
            for d, noise in zip(self.drawn, noises, strict=True)
        ]
        return _Draw(*self.weights.split(blocks), noises)

    def _new_draw(self) -> _Draw:
        """Memory for a draw, which is used again after the step."""
        mean = self.drawn[0].block.mean
        bias = sum(d.block.mean.numel() for d in self.drawn) - self.weights.shape.numel()
        draw = _Draw(
            mean.new_empty(self.weights.shape),
            mean.new_empty(bias) if bias else None,
            [torch.empty_like(d.block.mean) for d in self.drawn],
        )
        draw.buffers = [
            native.DrawBuffer(*part, noise, torch.empty(len(noise), 1) if drawn.is_radial else None)
            for drawn, part, noise in zip(self.drawn, draw.parts, draw.noises, strict=True)
        ]
        return draw

    def gradients(self) -> list[native.Gradient | None]:
        """Of every block, by the draws since the last step; None where nothing went back."""
        gradients: list[native.Gradient | None] = [None] * len(self.drawn)
        for draw in self._lent:
            for k, gradient in enumerate(draw.gradients()):
                before = gradients[k]
                gradients[k] = _sum(before, gradient) if before and gradient else before or gradient
        return gradients

    def forget(self) -> list[Tensor]:
        """Begin a new step; the weights whose draws have ended."""
        leaves = [leaf for draw in self._lent for leaf in draw.leaves]
        for leaf in leaves:
            leaf.grad = None
        if self.compiled:
            self._free += self._lent
        self._lent = []
        return leaves


class _Draw:
    """A draw of a layer, and the noise `[groups, D]` of each block in it."""

    def __init__(self, weight: Tensor, bias: Tensor | None, noises: list[Tensor]) -> None:
        self.weight = weight.detach()
        self.bias = None if bias is None else bias.detach()
        self.leaves = [t for t in (self.weight, self.bias) if t is not None]
        self.noises = noises
        self.parts: list[Layer] = [(self.weight, self.bias)]
        """Of weight and bias, what belongs to each block."""
        if len(noises) > 1:
            self.parts = [(leaf, None) for leaf in self.leaves]
        self.buffers: list[native.DrawBuffer] = []

    def gradients(self) -> list[native.Gradient | None]:
        """Of each block, where anything went back."""
        return [
            native.Gradient(_gradient_of(first), _gradient_of(second), None, noise)
            if first.grad is not None or (second is not None and second.grad is not None)
            else None
            for (first, second), noise in zip(self.parts, self.noises, strict=True)
        ]


def _gradient_of(leaf: Tensor | None) -> Any:
    """Of a weight or a bias that was drawn, in its order in memory; zeros where nothing went."""
    if leaf is None:
        return None
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad.contiguous()


class DrawnBlock:
    """A block, its scale, and how it is drawn by the compiled pass."""

    def __init__(self, block: PosteriorBlock) -> None:
        self.block = block
        self.is_radial = issubclass(block.family, Radial)
        self.divergence = (
            native_divergence(block.family, block.prior_family)
            if native.serves(block.mean, block.rho, block.prior_mean, block.prior_scale)
            else None
        )
        self._known_scale: tuple[tuple[int, int], Tensor] | None = None

    @property
    def trained(self) -> bool:
        """Whether mean or rho is trainable: without them no gradient of the draw is needed."""
        return self.block.mean.requires_grad or self.block.rho.requires_grad

    @property
    def scale(self) -> Tensor:
        """softplus(rho), kept up to date by the compiled pass where that has made the last step."""
        rho = self.block.rho
        # PyTorch counts what it writes, but for fused optimisers: see `forget_scale`.
        state = rho.data_ptr(), rho._version
        if self._known_scale is None or self._known_scale[0] != state:
            self._known_scale = state, self.block.scale()
        return self._known_scale[1]

    def forget_scale(self) -> None:
        """An optimiser is going to change rho."""
        self._known_scale = None

    def draw(self, buffer: native.DrawBuffer) -> None:
        """Draw into existing memory."""
        native.standard_normal(buffer.noise)
        if buffer.radius is not None:
            buffer.radius.normal_()
        buffer.draw(self.block.mean, self.scale)


def _sum(one: native.Gradient, other: native.Gradient) -> native.Gradient:
    """Over two draws."""
    mean, scale = (torch.add(*pair) for pair in zip(whole(one), whole(other), strict=True))
    return native.Gradient(mean, None, scale, None)


def whole(gradient: native.Gradient) -> tuple[Tensor, Tensor]:
    """With respect to mean and scale, `[groups, D]` each."""
    noise, scale = gradient.noise, gradient.scale
    like = noise if scale is None else scale
    assert like is not None
    parts = [part.reshape(len(like), -1) for part in gradient[:2] if part is not None]
    mean = torch.cat(parts, dim=1)
    return mean, (mean * like if scale is None else scale)
