"""The functions of `step.c` on tensors.

They work in place, on contiguous float32 tensors on the CPU; `serves` checks this.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, addressof, c_float, c_int, c_ssize_t, c_void_p
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from vcl_radial.native.build import library


class Divergence(IntEnum):
    """The KL that a gradient belongs to; the values are the same as in step.c."""

    NONE = 0
    GAUSSIAN = 1
    """sum(a^2 + s^2 - 1 - 2 log s) / 2"""
    QUADRATIC = 2
    """-sum log s + (||a||^2 + mean(s^2)) / 2"""
    RADIAL = 3
    """radial to radial, corrected: see `vcl_radial.posteriors.radial_kl`"""


class Moments(NamedTuple):
    """Adam's moments of the gradient of a parameter, in its shape."""

    exp_avg: Tensor
    exp_avg_sq: Tensor
    max_exp_avg_sq: Tensor | None
    """the maximum of `exp_avg_sq`, for AMSGrad"""


class Gradient(NamedTuple):
    """The gradient of the mean NLL in the drawn weights and the scale of a block.

    The first weights of each group belong to one tensor and the rest to another, like the weight
    and the bias of a layer.
    """

    first: Tensor
    """gradient in the first weights of the groups, `[groups, ...]`"""
    second: Tensor | None
    """gradient in the other weights, `[groups, ...]`; None where there are none"""
    scale: Tensor | None
    """gradient in the scale, `[groups, D]`; None: the gradient in the weights times `noise`"""
    noise: Tensor | None
    """noise of the single draw, `[groups, D]`, where the gradient in the scale follows from it"""


class Adam(Structure):
    """A parameter with its moments; step.h documents the fields."""

    _fields_ = (
        ("value", c_void_p),
        ("exp_avg", c_void_p),
        ("exp_avg_sq", c_void_p),
        ("max_exp_avg_sq", c_void_p),
        ("step_size", c_float),
        ("root_correction", c_float),
    )

    @classmethod
    def pointing_to(cls, value: Tensor, moments: Moments) -> Adam:
        """Store the tensors' addresses; the caller keeps the tensors alive."""
        return cls(value.data_ptr(), *map(_address, moments))


class _Step(Structure):
    _fields_ = (
        ("mean", Adam),
        ("rho", Adam),
        ("scale", c_void_p),
        ("prior_mean", c_void_p),
        ("prior_scale", c_void_p),
        ("stretch", c_void_p),
        ("grad_first", c_void_p),
        ("grad_second", c_void_p),
        ("grad_scale", c_void_p),
        ("noise", c_void_p),
        ("sums", c_void_p),
        ("mean_count", c_void_p),
        ("rho_count", c_void_p),
        ("groups", c_ssize_t),
        ("D", c_ssize_t),
        ("D_first", c_ssize_t),
        ("divergence", c_int),
        ("sums_known", c_int),
        ("kl_factor", c_float),
        ("mean_kl_factor", c_float),
        ("beta1", c_float),
        ("beta2", c_float),
        ("epsilon", c_float),
    )


def serves(*tensors: Tensor) -> bool:
    """Whether there is a library that supports these tensors."""
    return library() is not None and all(
        t.dtype == torch.float32 and t.device.type == "cpu" and t.is_contiguous() for t in tensors
    )


def standard_normal(out: Tensor, generator: torch.Generator | None = None) -> None:
    """Fill a tensor with draws from N(0, 1), twice as fast as PyTorch.

    The draws depend on one number from the generator (None: the global one), the key of
    Philox4x32-10 (Salmon et al. 2011). The Box-Muller transform turns its output into normals.
    """
    native = library()
    assert native is not None
    key = torch.randint(2**62, (), generator=generator).item()
    native.vcl_normal(out.data_ptr(), out.numel(), key)


def draw(
    first: Tensor,
    second: Tensor | None,
    noise: Tensor,
    radius: Tensor | None,
    mean: Tensor,
    scale: Tensor,
) -> None:
    """Draw w <- mean + scale * noise, `[groups, D]`, into two tensors or one.

    The first weights of every group go to `first`, the rest to `second`. With a radius `[groups]`
    the noise, standard normal on entry, becomes direction times radius: noise_g <- noise_g /
    ||noise_g|| * radius_g.
    """
    DrawBuffer(first, second, noise, radius).draw(mean, scale)


class DrawBuffer:
    """Reusable memory for the draws of a block; arguments are as in `draw`."""

    def __init__(
        self, first: Tensor, second: Tensor | None, noise: Tensor, radius: Tensor | None
    ) -> None:
        native = library()
        assert native is not None
        self._draw = native.vcl_draw
        self.noise, self.radius = noise, radius
        self._tensors = first, second  # keeps the memory at the addresses alive
        self._addresses = [_address(t) for t in (first, second, noise, radius)]
        groups, D = noise.shape
        self._sizes = groups, D, first.numel() // groups

    def draw(self, mean: Tensor, scale: Tensor) -> None:
        """Draw w <- mean + scale * noise, as in `draw`."""
        self._draw(*self._addresses, mean.data_ptr(), scale.data_ptr(), *self._sizes)


class AdamBlock:
    """Adam (or AMSGrad) on the mean and rho of a block of groups, both `[groups, D]`.

    The objective is mean NLL + kl_factor * KL(q || p), with scale = softplus(rho).

    Args:
        mean: the means and their moments.
        rho: the rhos and their moments.
        prior: mean and scale of the prior.
        divergence: the KL whose gradient is added.
        stretch: factor of the means' distances from the prior's means in the KL; None: 1.
        counts: numbers of steps of mean and rho, float32 scalars that every step increases by one.
    """

    def __init__(
        self,
        mean: tuple[Tensor, Moments],
        rho: tuple[Tensor, Moments],
        prior: tuple[Tensor, Tensor],
        divergence: Divergence,
        stretch: Tensor | None = None,
        counts: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        self._tensors = (mean, rho, prior, stretch, counts)  # keeps the memory alive
        groups, D = mean[0].shape
        self._summed = mean[0], rho[0], *prior
        self._known_state: tuple[int, ...] | None = None
        self._settings: tuple[tuple[float, float], float, tuple[float, float]] | None = None
        # Sums per group that a radial KL needs; the previous step computes them.
        self._sums = torch.empty(groups, 4, dtype=torch.float64)
        radial = divergence is Divergence.RADIAL
        self._step = _Step(
            *(Adam.pointing_to(*part) for part in (mean, rho)),
            None,
            *map(_address, (*prior, stretch)),
            groups=groups,
            D=D,
            divergence=divergence,
            sums=self._sums.data_ptr() if radial else None,
        )
        if counts is not None:
            self._step.mean_count, self._step.rho_count = map(_address, counts)
        self.address = addressof(self._step)

    def points_to(self, mean: Tensor, rho: Tensor) -> bool:
        """Whether this block has the addresses of this mean and rho."""
        addresses = self._step.mean.value, self._step.rho.value
        return addresses == (mean.data_ptr(), rho.data_ptr())

    def prepare(
        self,
        numbers: tuple[int, int],
        rates: tuple[float, float],
        betas: tuple[float, float],
        epsilon: float,
        kl_factors: tuple[float, float],
        scale: Tensor,
        gradient: Gradient,
    ) -> None:
        """Set the next step: numbers (from 1), rates and KL factors of mean and rho."""
        step, settings = self._step, (betas, epsilon, kl_factors)
        if settings != self._settings:
            self._settings = settings
            (step.beta1, step.beta2), step.epsilon = betas, epsilon
            step.mean_kl_factor, step.kl_factor = kl_factors
        mean, rho = (_bias_correction(*pair, *betas) for pair in zip(numbers, rates, strict=True))
        step.mean.step_size, step.mean.root_correction = mean
        step.rho.step_size, step.rho.root_correction = rho
        step.scale = address = scale.data_ptr()
        # The sums are valid if, by PyTorch's counts, no tensor was written since the last step.
        state = (address, scale._version, *[t._version for t in self._summed])
        step.sums_known = state == self._known_state
        self._known_state = state
        first, second, grad_scale, noise = gradient
        step.D_first = first.numel() // step.groups
        step.grad_first, step.grad_second = first.data_ptr(), _address(second)
        step.grad_scale, step.noise = _address(grad_scale), _address(noise)
        self._gradient = gradient  # keeps the memory that the step reads alive


def make_steps(blocks: Sequence[AdamBlock]) -> None:
    """Take the prepared steps in one call; scale <- softplus(rho)."""
    native = library()
    assert native is not None
    addresses = (c_void_p * len(blocks))(*[block.address for block in blocks])
    native.vcl_steps(addresses, len(blocks))


@lru_cache(maxsize=8)
def _bias_correction(number: int, rate: float, beta1: float, beta2: float) -> tuple[float, float]:
    """Adam's step size at a step number, and the correction of its second moment's root."""
    return rate / (1 - beta1**number), (1 - beta2**number) ** -0.5


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
