"""The functions of `network.c`: the training steps of a small network, many in one call.

Arrays are float32, contiguous and on the CPU; the caller that fills the structures must keep the
arrays alive.
"""

from __future__ import annotations

from ctypes import POINTER, Structure, byref, c_float, c_int, c_ssize_t, c_void_p

from vcl_radial.native.build import library
from vcl_radial.native.rdp import Factor
from vcl_radial.native.step import Adam

MAX_BLOCKS = MAX_FACTORS = 2
"""Limits for one layer."""


class Block(Structure):
    """Groups of weights; network.h documents the fields of all structures here."""

    _fields_ = (
        ("at", c_ssize_t),
        ("groups", c_ssize_t),
        ("D", c_ssize_t),
        ("mean", Adam),
        ("rho", Adam),
        ("scale", c_void_p),
        ("noise", c_void_p),
        ("prior_mean", c_void_p),
        ("prior_scale", c_void_p),
        ("precision", c_float),
        ("divergence", c_int),
    )


class Layer(Structure):
    """A layer of one network."""

    _fields_ = (
        ("inputs", c_ssize_t),
        ("outputs", c_ssize_t),
        ("row", c_ssize_t),
        ("bias", c_ssize_t),
        ("bias_step", c_ssize_t),
        ("weights", c_ssize_t),
        ("blocks", c_ssize_t),
        ("block", Block * MAX_BLOCKS),
        ("factors", c_ssize_t),
        ("factor", Factor * MAX_FACTORS),
        ("mask", c_void_p),
    )


class Network(Structure):
    """A network, its data, and its training steps."""

    _fields_ = (
        ("layers", POINTER(Layer)),
        ("depth", c_ssize_t),
        ("x", c_void_p),
        ("y", c_void_p),
        ("rows", c_void_p),
        ("stride", c_ssize_t),
        ("batch", c_ssize_t),
        ("samples", c_ssize_t),
        ("steps", c_ssize_t),
        ("rates", c_void_p),
        ("done", c_ssize_t),
        ("kl_factor", c_float),
        ("beta1", c_float),
        ("beta2", c_float),
        ("epsilon", c_float),
        ("noise_rate", c_void_p),
        ("noise_shape", c_float),
        ("prior_rate", c_float),
        ("half_points", c_float),
        ("noise_step", c_float),
        ("scratch", c_void_p),
    )


def scratch(network: Network) -> int:
    """The number of floats of scratch memory that a network needs."""
    native = library()
    assert native is not None
    return int(native.vcl_network_scratch(byref(network)))


def train(network: Network) -> None:
    """Run the training steps."""
    native = library()
    assert native is not None
    native.vcl_network_train(byref(network))
