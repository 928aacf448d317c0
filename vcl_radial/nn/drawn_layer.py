"""A layer's drawn weights as leaves of the graph.

With one draw w = mean + scale * noise per forward pass, g = d NLL / dw and scale = softplus(rho),

    d NLL / d mean = g,    d NLL / d rho = g * noise * sigmoid(rho)

so that autograd is only needed for the gradient in the drawn weights.
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
    """The compiled KL of a family to a prior's family, by its native name; None without one."""
    return _NATIVE.get((family, prior_family))


class DrawnLayer:
    """Draw the weights of a layer with one block, or with one block for weight and one for bias.

    Weight and bias of a draw are separate tensors, and so are their gradients: no block has to be
    split or joined.
    """

    def __init__(self, weights: VariationalWeights) -> None:
        self.weights = weights
        self.blocks = [DrawnBlock(block) for block in weights.posterior_blocks()]
        self.compiled = all(d.divergence is not None for d in self.blocks)
        self._used: list[_Draw] = []
        self._free: list[_Draw] = []
        weights.sampler = self.sample

    def sample(self) -> Layer:
        """Draw weight and bias; a backward pass sets their `.grad`."""
        if transformed():  # the parameters belong to the transform
            return self.weights.split([d.block.sample() for d in self.blocks])
        if not self.compiled:
            draw = self._draw_in_torch()
        else:
            draw = self._free.pop() if self._free else self._new_draw()
            for drawn_block, buffer in zip(self.blocks, draw.buffers, strict=True):
                drawn_block.draw(buffer)
        needs_gradient = any(d.needs_gradient for d in self.blocks)
        for leaf in draw.leaves:
            leaf.requires_grad_(needs_gradient)
        self._used.append(draw)
        return draw.weight, draw.bias

    @torch.no_grad()
    def _draw_in_torch(self) -> _Draw:
        noises = [d.block.family(d.block.mean, d.scale).noise(1).squeeze(0) for d in self.blocks]
        blocks = [
            torch.addcmul(d.block.mean, d.scale, noise)
            for d, noise in zip(self.blocks, noises, strict=True)
        ]
        return _Draw(*self.weights.split(blocks), noises)

    def _new_draw(self) -> _Draw:
        """Allocate a draw whose memory is reused after the step."""
        mean = self.blocks[0].block.mean
        bias = sum(d.block.mean.numel() for d in self.blocks) - self.weights.shape.numel()
        draw = _Draw(
            mean.new_empty(self.weights.shape),
            mean.new_empty(bias) if bias else None,
            [torch.empty_like(d.block.mean) for d in self.blocks],
        )
        draw.buffers = [
            native.DrawBuffer(*part, noise, torch.empty(len(noise), 1) if d.is_radial else None)
            for d, part, noise in zip(self.blocks, draw.parts, draw.noises, strict=True)
        ]
        return draw

    def gradients(self) -> list[native.Gradient | None]:
        """The gradients of the blocks over the draws since the last step; None for no gradient."""
        gradients: list[native.Gradient | None] = [None] * len(self.blocks)
        for draw in self._used:
            for k, gradient in enumerate(draw.gradients()):
                last = gradients[k]
                gradients[k] = _sum(last, gradient) if last and gradient else last or gradient
        return gradients

    def forget(self) -> list[Tensor]:
        """Begin a new step, and return the drawn weights of the last one."""
        leaves = [leaf for draw in self._used for leaf in draw.leaves]
        for leaf in leaves:
            leaf.grad = None
        if self.compiled:
            self._free += self._used
        self._used = []
        return leaves


class _Draw:
    """A draw of a layer, and the noise `[groups, D]` of each block in it."""

    def __init__(self, weight: Tensor, bias: Tensor | None, noises: list[Tensor]) -> None:
        self.weight = weight.detach()
        self.bias = None if bias is None else bias.detach()
        self.leaves = [t for t in (self.weight, self.bias) if t is not None]
        self.noises = noises
        self.parts: list[Layer] = [(self.weight, self.bias)]
        """The parts of weight and bias that belong to each block."""
        if len(noises) > 1:
            self.parts = [(leaf, None) for leaf in self.leaves]
        self.buffers: list[native.DrawBuffer] = []

    def gradients(self) -> list[native.Gradient | None]:
        """The gradient of each block that received one; None for the others."""
        return [
            native.Gradient(_gradient_of(first), _gradient_of(second), None, noise)
            if first.grad is not None or (second is not None and second.grad is not None)
            else None
            for (first, second), noise in zip(self.parts, self.noises, strict=True)
        ]


def _gradient_of(leaf: Tensor | None) -> Any:
    """The gradient of a drawn weight or bias, contiguous; zeros if it received none."""
    if leaf is None:
        return None
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad.contiguous()


class DrawnBlock:
    """A block with its scale, and its draws by the compiled pass."""

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
    def needs_gradient(self) -> bool:
        """Whether mean or rho is trainable, so that the draw needs a gradient."""
        return self.block.mean.requires_grad or self.block.rho.requires_grad

    @property
    def scale(self) -> Tensor:
        """softplus(rho); the compiled pass updates it if it made the last step."""
        rho = self.block.rho
        # PyTorch counts writes to a tensor, except by fused optimisers: see `forget_scale`.
        state = rho.data_ptr(), rho._version
        if self._known_scale is None or self._known_scale[0] != state:
            self._known_scale = state, self.block.scale()
        return self._known_scale[1]

    def forget_scale(self) -> None:
        """Drop the cached scale, because an optimiser is going to change rho."""
        self._known_scale = None

    def draw(self, buffer: native.DrawBuffer) -> None:
        """Draw into existing memory."""
        native.standard_normal(buffer.noise)
        if buffer.radius is not None:
            buffer.radius.normal_()
        buffer.draw(self.block.mean, self.scale)


def _sum(a: native.Gradient, b: native.Gradient) -> native.Gradient:
    """The sum of the gradients of two draws."""
    mean, scale = (torch.add(*pair) for pair in zip(joint(a), joint(b), strict=True))
    return native.Gradient(mean, None, scale, None)


def joint(gradient: native.Gradient) -> tuple[Tensor, Tensor]:
    """The gradients in mean and scale, both `[groups, D]`."""
    noise, scale = gradient.noise, gradient.scale
    like = noise if scale is None else scale
    assert like is not None
    parts = [part.reshape(len(like), -1) for part in gradient[:2] if part is not None]
    mean = torch.cat(parts, dim=1)
    return mean, (mean * like if scale is None else scale)
