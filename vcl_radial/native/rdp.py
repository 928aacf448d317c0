"""The functions of `rdp.c`: factors of weights under a radial and directional posterior."""

from __future__ import annotations

from ctypes import Structure, c_double, c_float, c_int, c_ssize_t, c_void_p

import torch
from torch import Tensor

from vcl_radial.native.build import library
from vcl_radial.native.step import Adam


class Factor(Structure):
    """A factor of a layer's weights; rdp.h documents the fields."""

    _fields_ = (
        ("groups", c_ssize_t),
        ("D", c_ssize_t),
        ("columns", c_int),
        ("direction", Adam),
        ("log_concentration", Adam),
        ("loc", Adam),
        ("rho", Adam),
        ("factors", c_void_p),
        ("tangents", c_void_p),
        ("keys", c_void_p),
        ("prior_direction", c_void_p),
        ("prior_log_concentration", c_void_p),
        ("prior_loc", c_void_p),
        ("prior_rho", c_void_p),
        ("prior_scale", c_float),
        ("prior_concentration", c_double),
    )


def angles(groups: int, concentration: float, D: int, key: int) -> Tensor:
    """Angles between von Mises-Fisher draws and their mean, float64; `key` determines them."""
    native = library()
    assert native is not None
    out = torch.empty(groups, dtype=torch.float64)
    native.vcl_angles(out.data_ptr(), groups, concentration, D, key)
    return out
