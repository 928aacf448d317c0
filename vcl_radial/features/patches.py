"""Whitened patches of images as filters (Coates, Ng and Lee 2011, sections 3 and 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, unfold

from vcl_radial.errors import UserError
from vcl_radial.features.base import Features, InputsOf

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
        shape: of an input: an image (C, H, W), or (n,) for a flat square of one colour or of three.
        filters: how many patches.
        patch: their side in pixels.
        pool: cells along a side.

    Raises:
        UserError: inputs are no images, or an option is out of its range.
    """

    filters: Tensor
    offset: Tensor
    shift: Tensor
    scale: Tensor
    seed: Tensor

    def __init__(
        self, shape: Sequence[int], filters: int = 400, patch: int = 6, pool: int = 4
    ) -> None:
        super().__init__()
        for name, value, least in (("filters", filters, 1), ("patch", patch, 2), ("pool", pool, 1)):
            if value < least:
                raise UserError(f"options.{name} = {value} must be at least {least}")
        self.shape = _image(shape)
        if (side := min(self.shape[1:])) < patch:
            raise UserError(
                f"options.patch = {patch} is too large for images of {side} pixels: choose a "
                "smaller one"
            )
        self.patch, self.pool = patch, pool
        self.size = filters * pool**2
        self.register_buffer("seed", torch.randint(2**31, ()))
        self.register_buffer("filters", torch.zeros(self.shape[0] * patch**2, filters))
        self.register_buffer("offset", torch.zeros(filters))
        self.register_buffer("shift", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def fit(self, inputs: InputsOf) -> None:
        """Take filters from the images; which ones follows from a seed of the start."""
        images = torch.cat([x.cpu() for x in inputs()]).float().reshape(-1, *self.shape)
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
        self.filters.copy_(filters)
        self.offset.copy_(mean @ filters)
        self.shift.copy_(shift)
        self.scale.copy_(scale)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, filters * pool^2]`; 0 before the filters are known."""
        # Some images at a time: their patches take much memory.
        return torch.cat([self._features(part) for part in torch.split(x, _CHUNK)])

    def _features(self, x: Tensor) -> Tensor:
        images = (x.float().reshape(-1, *self.shape) - self.shift) / self.scale
        rows, columns = (side - self.patch + 1 for side in images.shape[2:])
        patches = _normalised(unfold(images, self.patch), 1)
        responses = torch.einsum("bpn,pf->bfn", patches, self.filters)
        responses = (responses - (self.offset + _THRESHOLD)[:, None]).relu_()
        pooled = adaptive_avg_pool2d(responses.view(*responses.shape[:2], rows, columns), self.pool)
        return pooled.flatten(1).sqrt_()


def _image(shape: Sequence[int]) -> tuple[int, int, int]:
    """(C, H, W) of an input of this shape."""
    if len(shape) == 3:
        return shape[0], shape[1], shape[2]
    for colours in (1, 3):
        side = math.isqrt(math.prod(shape) // colours)
        if len(shape) == 1 and colours * side**2 == shape[0]:
            return colours, side, side
    raise UserError(
        f"options.features = 'patches' wants images, and inputs are {list(shape)}: choose "
        "'random-relu'"
    )


def _normalised(patches: Tensor, along: int) -> Tensor:
    """Less their mean, over their standard deviation and a little, along an axis."""
    centred = patches - patches.mean(along, keepdim=True)
    return centred / (centred.std(along, keepdim=True) + _CONTRAST)
