"""The functions of `step.c` on tensors.

All of them work in place, on contiguous float32 tensors on the CPU; `serves` tells. Addresses are
taken anew at every call, so that a tensor which moved is found.
"""

from __future__ import annotations

from ctypes import Structure, byref, c_float, c_int, c_ssize_t, c_void_p
from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from vcl_radial.native.build import library


class Divergence(IntEnum):
    """Which KL the gradient is of; the values are those of step.c."""

    NONE = 0
    GAUSSIAN = 1
    """sum(a^2 + s^2 - 1 - 2 log s) / 2"""
    QUADRATIC = 2
    """-sum log s + (||a||^2 + mean(s^2)) / 2"""
    RADIAL = 3
    """radial to radial, corrected: see `vcl_radial.posteriors.radial_kl`"""


class AdamState(NamedTuple):
    """A parameter, and Adam's moments of its gradient, in the shape of the parameter."""

    value: Tensor
    exp_avg: Tensor
    exp_avg_sq: Tensor
    max_exp_avg_sq: Tensor | None
    """of AMSGrad"""
    step: int
    """the number of this step, from 1"""
    learning_rate: float


class StepSettings(NamedTuple):
    """What all weights of a step share."""

    kl_factor: float
    """KL weight / N"""
    beta1: float
    beta2: float
    epsilon: float


class _Adam(Structure):
    _fields_ = (
        ("value", c_void_p),
        ("exp_avg", c_void_p),
        ("exp_avg_sq", c_void_p),
        ("max_exp_avg_sq", c_void_p),
        ("step_size", c_float),
    )


class _Step(Structure):
    _fields_ = (
        ("mean", _Adam),
        ("rho", _Adam),
        ("scale", c_void_p),
        ("prior_mean", c_void_p),
        ("prior_scale", c_void_p),
        ("grad_mean", c_void_p),
        ("grad_scale", c_void_p),
        ("noise", c_void_p),
        ("groups", c_ssize_t),
        ("D", c_ssize_t),
        ("divergence", c_int),
        ("kl_factor", c_float),
        ("beta1", c_float),
        ("beta2", c_float),
        ("root_correction", c_float),
        ("epsilon", c_float),
    )


def serves(*tensors: Tensor) -> bool:
    """Whether there is a library, and it can work on tensors like these."""
    return library() is not None and all(
        t.dtype == torch.float32 and t.device.type == "cpu" and t.is_contiguous() for t in tensors
    )


def draw(w: Tensor, noise: Tensor, radius: Tensor | None, mean: Tensor, scale: Tensor) -> None:
    """W <- mean + scale * noise, all `[groups, D]`.

    With a radius `[groups]` the noise, standard normal on entry, becomes direction times radius
    first: noise_g <- noise_g / ||noise_g|| * radius_g.
    """
    native = library()
    assert native is not None
    groups, D = mean.shape
    native.vcl_draw(
        *(c_void_p(_address(t)) for t in (w, noise, radius, mean, scale)),
        c_ssize_t(groups),
        c_ssize_t(D),
    )


def adam_step(
    mean: AdamState,
    rho: AdamState,
    scale: Tensor,
    prior: tuple[Tensor, Tensor],
    gradient: tuple[Tensor, Tensor | None, Tensor | None],
    divergence: Divergence,
    settings: StepSettings,
) -> None:
    """One step of Adam (or AMSGrad) on the mean and rho of a block of groups, `[groups, D]` each.

    The gradient is that of the mean NLL + kl_factor * KL(q || p), with scale = softplus(rho).

    Args:
        mean: the means.
        rho: the rhos.
        scale: softplus(rho) on entry and on return.
        prior: mean and scale of the prior.
        gradient: that of the mean NLL with respect to the weights drawn; then either that with
            respect to the scale, or the noise of the one draw, from which it follows.
        divergence: whose gradient is added.
        settings: those of the KL and of Adam.
    """
    native = library()
    assert native is not None
    groups, D = mean.value.shape
    grad_mean, grad_scale, noise = gradient
    native.vcl_step(
        byref(
            _Step(
                _adam(mean, settings.beta1),
                _adam(rho, settings.beta1),
                *(_address(t) for t in (scale, *prior, grad_mean, grad_scale, noise)),
                groups,
                D,
                divergence,
                settings.kl_factor,
                settings.beta1,
                settings.beta2,
                (1 - settings.beta2**mean.step) ** -0.5,
                settings.epsilon,
            )
        )
    )


def _adam(state: AdamState, beta1: float) -> _Adam:
    moments = (state.value, state.exp_avg, state.exp_avg_sq, state.max_exp_avg_sq)
    step_size = state.learning_rate / (1 - beta1**state.step)
    return _Adam(*(_address(t) for t in moments), step_size)


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
