"""Special functions of one half-normal radius: moments of log sqrt(delta^2 + r^2), r ~ N(0, 1).

With rho = delta^2 / (delta^2 + r^2), the divergence between two radials needs, per group,

    m(x)  = sqrt(pi/2) erfcx(x / sqrt 2)                       Mills' ratio, m' = x m - 1
    G(x)  = E log sqrt(x^2 + r^2) - E log |r|                  G' = m, G(0) = 0
    k1(x) = E rho (1 - rho)  = (x m (1 + x^2) - x^2) / 2
    k2(x) = E (1 - rho)^2    = 1 + (x^2 - x m (3 + x^2)) / 2

Below `_SWITCH` the module uses the elementary forms, and Gauss-Legendre for G. Above it they
cancel, and the asymptotic series in 1/x^2 takes over, with E r^(2n) = (2n-1)!!. Everything is
float64 whatever the dtype of the input: there is one number per group, so this costs nothing.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from vcl_radial.posteriors.quadrature import gauss_legendre

EULER_GAMMA = 0.5772156649015329
EXPECTED_LOG_RADIUS = -(EULER_GAMMA + math.log(2)) / 2
"""E log |r| for r ~ N(0, 1)."""

# At 10 the elementary forms still have 12 digits (of the largest term) and 30 terms of the series
# have 15; the series' smallest term, about exp(-x^2 / 2), is far below both.
_SWITCH = 10.0
_TERMS = 30
_NODES = 32


class RadiusMoments(NamedTuple):
    """Values at x, all float64 and shaped like x (see the module's docstring)."""

    mills: Tensor
    """m(x)"""
    k1_over_x: Tensor
    """k1(x) / x, finite at 0 where it is sqrt(pi/2) / 2"""
    k2: Tensor
    """k2(x)"""
    k1_slope: Tensor
    """k1'(x)"""
    k2_slope: Tensor
    """k2'(x)"""


def mills_ratio(x: Tensor) -> Tensor:
    """Mills' ratio of the standard normal, m(x) = (1 - Phi(x)) / phi(x), for x >= 0; float64."""
    scaled: Tensor = torch.special.erfcx(x.double() / math.sqrt(2))
    return math.sqrt(math.pi / 2) * scaled


def log_radius_gain(x: Tensor) -> Tensor:
    """The increase of the expected log radius by a shift of x >= 0, in nats; float64.

    G(x) = E log sqrt(x^2 + r^2) - E log |r| = int_0^x m(t) dt,   r ~ N(0, 1)
    """
    x = x.double()
    nodes, weights = gauss_legendre(_NODES, x.device)
    # t = expm1(u log1p(x)) puts the nodes where m bends, near 0.
    span = x.clamp(max=_SWITCH).log1p().unsqueeze(-1)
    t = torch.expm1(span * nodes)
    near = (weights * span * (1 + t) * mills_ratio(t)).sum(-1)
    far_x = x.clamp(min=_SWITCH)
    far = far_x.log() + _series(far_x)[..., 0] - EXPECTED_LOG_RADIUS
    return torch.where(x < _SWITCH, near, far)


def radius_moments(x: Tensor) -> RadiusMoments:
    """m, k1 / x, k2, k1' and k2' at x >= 0; all float64 and shaped like x."""
    x = x.double()
    m = mills_ratio(x)

    z = x.clamp(max=_SWITCH)
    mz, z2 = mills_ratio(z), z * z
    near = (
        (mz * (1 + z2) - z) / 2,
        1 + (z2 - z * mz * (3 + z2)) / 2,
        (mz * (1 + z2 * (4 + z2)) - z * (3 + z2)) / 2,
        (z * (5 + z2) - mz * (3 + z2 * (6 + z2))) / 2,
    )

    z = x.clamp(min=_SWITCH)
    k1, k2, k1_slope_x, k2_slope_x = _series(z)[..., 1:].unbind(-1)
    far = (k1 / z, k2, k1_slope_x / z, k2_slope_x / z)

    is_near = x < _SWITCH
    return RadiusMoments(m, *(torch.where(is_near, n, f) for n, f in zip(near, far, strict=True)))


def _series(x: Tensor) -> Tensor:
    """G - log x + E log |r|, k1, k2, x k1' and x k2' as series in 1/x^2; [..., 5]."""
    powers, coefficients = _series_coefficients(x.device)
    return (x.square().reciprocal().unsqueeze(-1) ** powers) @ coefficients


@lru_cache(maxsize=8)
def _series_coefficients(device: torch.device) -> tuple[Tensor, Tensor]:
    rows = []
    moment = 1.0  # E r^(2n) = (2n - 1)!!
    for n in range(1, _TERMS + 1):
        moment *= 2 * n - 1
        signed = moment if n % 2 == 0 else -moment
        row = (-1 / (2 * n), -n, n - 1, 2 * n * n, -2 * n * (n - 1))
        rows.append([signed * c for c in row])
    powers = torch.arange(1, _TERMS + 1, dtype=torch.float64, device=device)
    return powers, torch.tensor(rows, dtype=torch.float64, device=device)
