"""The special functions against adaptive quadrature of the expectations that define them."""

import math
from itertools import pairwise

import pytest
import torch
from scipy.integrate import quad

from vcl_radial.posteriors.log_radius import (
    EXPECTED_LOG_RADIUS,
    log_radius_gain,
    mills_ratio,
    radius_moments,
)

POINTS = [1e-4, 1e-2, 0.3, 1.0, 3.0, 7.0, 9.999, 10.0, 10.001, 30.0, 1e3, 1e6]


def expect(f, x):
    """E f(r) for half-normal r, split where f(r) bends: at r = x."""
    edges = sorted({0.0, min(x, 11.0), min(10 * x, 11.5), 0.1, 1.0, 4.0, 12.0})
    density = math.sqrt(2 / math.pi)
    return sum(
        quad(lambda r: density * f(r) * math.exp(-r * r / 2), lo, hi, epsabs=0, epsrel=1e-12)[0]
        for lo, hi in pairwise(edges)
    )


def at(x):
    return torch.tensor(x, dtype=torch.float64)


@pytest.mark.parametrize("x", POINTS)
def test_log_radius_gain_is_the_expected_growth_of_the_log_radius(x):
    truth = expect(lambda r: math.log1p((x / r) ** 2) / 2, x)
    assert log_radius_gain(at(x)).item() == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("x", POINTS)
def test_moments_are_the_expectations_that_define_them(x):
    moments = radius_moments(at(x))
    k1 = expect(lambda r: (x * r / (x * x + r * r)) ** 2, x)
    k2 = expect(lambda r: (r * r / (x * x + r * r)) ** 2, x)
    assert x * moments.k1_over_x.item() == pytest.approx(k1, rel=1e-9)
    assert moments.k2.item() == pytest.approx(k2, rel=1e-9)


@pytest.mark.parametrize("x", POINTS)
def test_slopes_are_the_derivatives_of_the_values(x):
    moments = radius_moments(at(x))
    h = 1e-4 * x
    up, down = radius_moments(at(x + h)), radius_moments(at(x - h))
    k1_slope = ((x + h) * up.k1_over_x - (x - h) * down.k1_over_x).item() / (2 * h)
    k2_slope = (up.k2 - down.k2).item() / (2 * h)
    gain_slope = (log_radius_gain(at(x + h)) - log_radius_gain(at(x - h))).item() / (2 * h)
    assert moments.k1_slope.item() == pytest.approx(k1_slope, rel=1e-6)
    assert moments.k2_slope.item() == pytest.approx(k2_slope, rel=1e-6)
    assert moments.mills.item() == pytest.approx(gain_slope, rel=1e-6)


def test_mills_ratio_is_the_normal_tail_over_the_normal_density():
    for x in (0.0, 0.5, 2.0, 6.0):
        tail = quad(lambda t: math.exp(-t * t / 2), x, math.inf, epsabs=0)[0]
        assert mills_ratio(at(x)).item() == pytest.approx(tail * math.exp(x * x / 2), rel=1e-9)


def test_expected_log_radius_is_the_integral_of_log_r():
    truth = expect(math.log, 1.0)
    assert pytest.approx(truth, rel=1e-9) == EXPECTED_LOG_RADIUS


def test_limits_without_a_shift_are_exact():
    zero = at(0.0)
    moments = radius_moments(zero)
    assert log_radius_gain(zero) == 0
    assert moments.k2 == 1
    assert moments.k1_over_x.item() == pytest.approx(math.sqrt(math.pi / 2) / 2, rel=1e-14)


def test_a_single_precision_input_is_computed_in_double():
    x = torch.tensor([0.5, 20.0], dtype=torch.float32)
    assert torch.equal(log_radius_gain(x), log_radius_gain(x.double()))
    assert all(value.dtype == torch.float64 for value in radius_moments(x))
