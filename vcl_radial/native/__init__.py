"""The step of variational inference in one compiled pass over the weights.

Where there is no C compiler the rest of the suite does the same with PyTorch; see `unavailable`.
"""

from vcl_radial.native.build import library, unavailable
from vcl_radial.native.rdp import angles
from vcl_radial.native.step import (
    AdamBlock,
    Divergence,
    Gradient,
    Moments,
    Room,
    draw,
    make_steps,
    serves,
    standard_normal,
)

__all__ = [
    "AdamBlock",
    "Divergence",
    "Gradient",
    "Moments",
    "Room",
    "angles",
    "draw",
    "library",
    "make_steps",
    "serves",
    "standard_normal",
    "unavailable",
]
