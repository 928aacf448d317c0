"""Modified Bessel functions by mpmath, at 40 digits."""

from __future__ import annotations

from typing import Any, TypeAlias

import mpmath  # type: ignore[import-untyped]  # installed with torch, which needs sympy
import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]

_DIGITS = 40
_TERMS = 10**6


def exact_ratio(v: float, z: npt.ArrayLike) -> Array:
    """I_v(z) / I_(v-1)(z), rounded to float64."""
    with mpmath.workdps(_DIGITS):
        return np.array([float(_bessel(v, x) / _bessel(v - 1, x)) for x in np.asarray(z)])


def exact_log(v: float, z: npt.ArrayLike) -> Array:
    """Log I_v(z), rounded to float64."""
    with mpmath.workdps(_DIGITS):
        return np.array([float(mpmath.log(_bessel(v, x))) for x in np.asarray(z)])


def _bessel(v: float, x: float) -> Any:
    return mpmath.besseli(v, x, maxterms=_TERMS)
