"""Whitened patches of images as filters (Coates, Ng and Lee 2011, sections 3 and 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, conv2d

from vcl_radial.errors import UserError
from vcl_radial.features.base import Features, InputsOf

IMAGES = 4_000
"""Number of images of the first task that patches come from."""

PATCHES = 100_000
"""Number of patches that the whitening uses."""

_CHUNK = 32
"""Number of images at a time; their responses fit into the CPU's caches."""

_CONTRAST = 0.3
_RIDGE = 0.1
_THRESHOLD = 0.5


class Patches(Features):
    """phi(x) = sqrt(mean over a cell of max(0, f'u - 1/2)) for whitened patches u of an image.

    u = V (p / std(p) - mean) for a patch p minus its mean, with 0.3 added to its deviation; V is
    the inverse root of the covariance of such patches plus 0.1 (ZCA). The filters f are random
    patches of the first task's images in these coordinates, scaled to length 1; no label is used.
    An image has `pool` x `pool` cells. With `mirror`, phi is the mean over an image and its mirror
    image, for classes that do not change under reflection.

    Args:
        shape: shape of an input: an image (C, H, W), or (n,) for a flat square of one or three
            colours.
        filters: number of filters.
        patch: side of a patch in pixels.
        pool: number of cells along a side.
        mirror: whether left and right are equivalent.

    Raises:
        UserError: Inputs are not images, or an option is out of its range.
    """

    filters: Tensor
    offset: Tensor
    shift: Tensor
    scale: Tensor
    seed: Tensor

    def __init__(
        self,
        shape: Sequence[int],
        filters: int = 400,
        patch: int = 6,
        pool: int = 4,
        mirror: bool = False,
    ) -> None:
        super().__init__()
        if patch < 2:
            raise UserError(f"options.patch = {patch} must be at least 2")
        self.shape = _image(shape)
        if (side := min(self.shape[1:])) < patch:
            raise UserError(
                f"options.patch = {patch} is too large for images of {side} pixels: choose a "
                "smaller one"
            )
        self.patch, self.pool, self.mirror = patch, pool, mirror
        self.size = filters * pool**2
        self.register_buffer("seed", torch.randint(2**31, ()))
        self.register_buffer("filters", torch.zeros(self.shape[0] * patch**2, filters))
        self.register_buffer("offset", torch.zeros(filters))
        self.register_buffer("shift", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def fit(self, inputs: InputsOf) -> None:
        """Select filters from the images, with the seed that was drawn at the start."""
        images = torch.cat([x.cpu() for x in inputs()]).float().reshape(-1, *self.shape)
        draw = torch.Generator().manual_seed(int(self.seed))
        images = images[torch.randperm(len(images), generator=draw)[:IMAGES]]
        shift, scale = images.mean(), images.std().clamp(min=1e-6)
        # This is a view of all patches; only the selected ones are copied.
        views = ((images - shift) / scale).unfold(2, self.patch, 1).unfold(3, self.patch, 1)
        views = views.permute(0, 2, 3, 1, 4, 5)
        n, height, width = views.shape[:3]
        index = torch.randperm(n * height * width, generator=draw)[:PATCHES]
        patches = views[index // (height * width), index // width % height, index % width]
        patches = _normalised(patches.flatten(1))
        count = self.filters.shape[1]
        if len(patches) < count:
            raise UserError(
                f"options.filters = {count} are more than the {len(patches)} patches of the first "
                "task: choose fewer"
            )
        mean = patches.mean(0)
        values, vectors = torch.linalg.eigh(torch.cov(patches.T).double())
        whiten = ((vectors * (values.clamp(min=0) + _RIDGE).rsqrt()) @ vectors.T).float()
        selected = patches[torch.randperm(len(patches), generator=draw)[:count]]
        selected = (selected - mean) @ whiten
        # f'V(p - mean) = (V f)'p - (V f)'mean
        filters = whiten @ (selected / selected.norm(dim=1, keepdim=True)).T
        self.filters.copy_(filters)
        self.offset.copy_(mean @ filters)
        self.shift.copy_(shift)
        self.scale.copy_(scale)

    def forward(self, x: Tensor) -> Tensor:
        """The features `[B, filters * pool^2]`; 0 before the filters are known."""
        images = (x.float().reshape(-1, *self.shape) - self.shift) / self.scale
        return torch.cat([self._features(part) for part in torch.split(images, _CHUNK)])

    def _features(self, images: Tensor) -> Tensor:
        if self.mirror:
            return (self._pooled(images) + self._pooled(images.flip(-1))) / 2
        return self._pooled(images)

    def _pooled(self, images: Tensor) -> Tensor:
        # f'(p - mean p) / (sd p + c) for all patches p is a convolution over the deviation in a
        # box, since whitened filters have the mean 0.
        colours, side = self.shape[0], self.patch
        filters = self.filters.T.reshape(-1, colours, side, side)
        mean = avg_pool2d(images.mean(1, keepdim=True), side, 1)
        square = avg_pool2d(images.square().mean(1, keepdim=True), side, 1)
        count = colours * side**2
        variance = (square - mean.square()).clamp_(min=0) * (count / (count - 1))
        responses = conv2d(images, filters).div_(variance.sqrt() + _CONTRAST)
        responses = responses.sub_((self.offset + _THRESHOLD)[:, None, None]).relu_()
        return adaptive_avg_pool2d(responses, self.pool).flatten(1).sqrt_()


def _image(shape: Sequence[int]) -> tuple[int, int, int]:
    """The image shape (C, H, W) of an input of this shape."""
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


def _normalised(patches: Tensor) -> Tensor:
    """Subtract each patch's mean, divide by its deviation plus `_CONTRAST`; `[n, values]`."""
    centred = patches - patches.mean(1, keepdim=True)
    return centred / (centred.std(1, keepdim=True) + _CONTRAST)
