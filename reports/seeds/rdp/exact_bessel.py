"""Modified Bessel functions to be sure of: mpmath's, at 40 digits."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vcl_radial.errors import UserError

try:
    import mpmath  # type: ignore[import-untyped]
except ImportError:
    mpmath = None

Array: TypeAlias = npt.NDArray[np.float64]

_DIGITS = 40
_TERMS = 10**6


def exact_ratio(v: float, z: npt.ArrayLike) -> Array:
    """I_v(z) / I_(v-1)(z), rounded to float64.

    Raises:
        UserError: mpmath is not installed.
    """
    with _exactly():
        return np.array([float(_bessel(v, x) / _bessel(v - 1, x)) for x in np.asarray(z)])


def exact_log(v: float, z: npt.ArrayLike) -> Array:
    """Log I_v(z), rounded to float64.

    Raises:
        UserError: mpmath is not installed.
    """
    with _exactly():
        return np.array([float(mpmath.log(_bessel(v, x))) for x in np.asarray(z)])


def _exactly() -> Any:
    if mpmath is None:
        raise UserError("exact Bessel functions need mpmath: pip install 'vcl-radial[papers]'")
    return mpmath.workdps(_DIGITS)


def _bessel(v: float, x: float) -> Any:
    return mpmath.besseli(v, x, maxterms=_TERMS)
