"""Whitened patches of images as filters (Coates, Ng and Lee 2011, sections 3 and 4)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, unfold

from vcl_radial.errors import UserError
from vcl_radial.features.base import Features, InputsOf, a_seed

IMAGES = 4_000
"""Images of the first task that patches are taken from."""

PATCHES = 100_000
"""Patches that are whitened."""

_CHUNK = 128
_CONTRAST = 0.3
_RIDGE = 0.1
_THRESHOLD = 0.5


class Patches(Features):
    """phi(x) = sqrt(mean over a cell of max(0, f'u - 1/2)), of whitened patches u of an image.

    u = V (p / std(p) - mean), of a patch p less its mean, with 0.3 added to its deviation; V is the
    inverse root of the covariance of such patches plus 0.1 (ZCA). The filters f are patches of the
    first task's images in these coordinates, of length 1, drawn at random without a look at labels.
    A cell is one of `pool` x `pool` of the image.

    Args:
        filters: how many patches.
        patch: their side in pixels.
        pool: cells along a side.

    Raises:
        UserError: an option is out of its range.
    """

    filters: Tensor
    offset: Tensor
    shift: Tensor
    scale: Tensor
    seed: Tensor

    def __init__(self, filters: int = 400, patch: int = 6, pool: int = 4) -> None:
        super().__init__()
        for name, value, least in (("filters", filters, 1), ("patch", patch, 2), ("pool", pool, 1)):
            if value < least:
                raise UserError(f"options.{name} = {value} must be at least {least}")
        self.patch, self.pool = patch, pool
        self.size = filters * pool**2
        self.register_buffer("seed", a_seed())
        self.register_buffer("filters", torch.zeros(0, filters))
        self.register_buffer("offset", torch.zeros(filters))
        self.register_buffer("shift", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def fit(self, inputs: InputsOf) -> None:
        """Take filters from the images; which ones follows from a seed of the start."""
        images = self._images(torch.cat([x.cpu() for x in inputs()]))
        draw = torch.Generator().manual_seed(int(self.seed))
        images = images[torch.randperm(len(images), generator=draw)[:IMAGES]]
        shift, scale = images.mean(), images.std().clamp(min=1e-6)
        patches = unfold((images - shift) / scale, self.patch).transpose(1, 2).flatten(0, 1)
        patches = _normalised(patches[torch.randperm(len(patches), generator=draw)[:PATCHES]], 1)
        count = self.filters.shape[1]
        if len(patches) < count:
            raise UserError(
                f"options.filters = {count} are more than the {len(patches)} patches of the first "
                "task: choose fewer"
            )
        mean = patches.mean(0)
        values, vectors = torch.linalg.eigh(torch.cov(patches.T).double())
        whiten = ((vectors * (values.clamp(min=0) + _RIDGE).rsqrt()) @ vectors.T).float()
        chosen = patches[torch.randperm(len(patches), generator=draw)[:count]]
        chosen = (chosen - mean) @ whiten
        # f'V(p - mean) = (V f)'p - (V f)'mean
        filters = whiten @ (chosen / chosen.norm(dim=1, keepdim=True)).T
        self.filters, self.offset = filters.to(self.offset), (mean @ filters).to(self.offset)
        self.shift, self.scale = shift.to(self.offset), scale.to(self.offset)

    def _images(self, x: Tensor) -> Tensor:
        """Inputs as images `[B, C, H, W]`: flat ones are squares of one colour, or of three.

        Raises:
            UserError: they are none, or too small.
        """
        if x.dim() == 2:
            for colours in (1, 3):
                side = math.isqrt(x.shape[1] // colours)
                if colours * side**2 == x.shape[1]:
                    x = x.unflatten(1, (colours, side, side))
                    break
        if x.dim() != 4:
            raise UserError(
                "options.features = 'patches' wants images, and these inputs are "
                f"{list(x.shape[1:])}: choose 'random-relu'"
            )
        if (side := min(x.shape[2:])) < self.patch:
            raise UserError(
                f"options.patch = {self.patch} is too large for images of {side} pixels: choose a "
                "smaller one"
            )
        return x.float()

    def forward(self, x: Tensor) -> Tensor:
        """`[B, filters * pool^2]`; 0 before they are fitted."""
        if not len(self.filters):
            return self.offset.new_zeros(len(x), self.size)
        # Some images at a time: their patches take much memory.
        return torch.cat([self._features(part) for part in x.split(_CHUNK)])

    def _features(self, x: Tensor) -> Tensor:
        images = (self._images(x) - self.shift) / self.scale
        rows, columns = (side - self.patch + 1 for side in images.shape[2:])
        patches = _normalised(unfold(images, self.patch), 1)
        responses = torch.einsum("bpn,pf->bfn", patches, self.filters)
        responses = (responses - (self.offset + _THRESHOLD)[:, None]).relu_()
        pooled = adaptive_avg_pool2d(responses.unflatten(2, (rows, columns)), self.pool)
        return pooled.flatten(1).sqrt_()


def _normalised(patches: Tensor, along: int) -> Tensor:
    """Less their mean, over their standard deviation and a little, along an axis."""
    centred = patches - patches.mean(along, keepdim=True)
    return centred / (centred.std(along, keepdim=True) + _CONTRAST)
