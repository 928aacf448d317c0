"""The step of variational inference in one compiled pass over the weights.

Without a C compiler, the suite computes the same with PyTorch; `unavailable` gives the reason.
"""

from vcl_radial.native.build import library, unavailable
from vcl_radial.native.rdp import angles
from vcl_radial.native.step import (
    AdamBlock,
    Divergence,
    DrawBuffer,
    Gradient,
    Moments,
    draw,
    make_steps,
    serves,
    standard_normal,
)

__all__ = [
    "AdamBlock",
    "Divergence",
    "DrawBuffer",
    "Gradient",
    "Moments",
    "angles",
    "draw",
    "library",
    "make_steps",
    "serves",
    "standard_normal",
    "unavailable",
]
