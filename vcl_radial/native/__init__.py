"""The step of variational inference in one compiled pass over the weights.

Where there is no C compiler the rest of the suite does the same with PyTorch; see `unavailable`.
"""

from vcl_radial.native.build import library, unavailable
from vcl_radial.native.step import AdamState, Divergence, StepSettings, adam_step, draw, serves

__all__ = [
    "AdamState",
    "Divergence",
    "StepSettings",
    "adam_step",
    "draw",
    "library",
    "serves",
    "unavailable",
]
