import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from scipy.integrate import quad

from vcl_radial.posteriors.bessel import bessel_ratio, log_bessel, ratio_and_slope, ratio_excess

mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed (the extra `papers`)")

ORDERS = [1, 1.5, 2, 5, 10, 40, 100, 392.5, 1000]
POINTS = [1e-3, 0.1, 1, 3, 10, 30, 100, 300, 1e3, 1e4, 1e6]
orders, points = st.floats(1, 5000), st.floats(1e-3, 1e6)


def t(x):
    return torch.tensor(x, dtype=torch.float64)


def exact_bessel(v, x):
    """I_v(x) as an mpmath number."""
    with mpmath.workdps(30):
        return mpmath.besseli(v, x)


@pytest.fixture(scope="module")
def exact():
    """rho_v(x), rho_v'(x) and log I_v(x) by order and point."""
    table = {}
    with mpmath.workdps(40):
        for v in ORDERS:
            for x in POINTS:
                i = mpmath.besseli(v, x)
                ratio = i / mpmath.besseli(v - 1, x)
                slope = 1 - ratio**2 - (2 * v - 1) / mpmath.mpf(x) * ratio
                table[v, x] = float(ratio), float(slope), float(mpmath.log(i))
    return table


def bound(alpha, v, x):
    """B_alpha of Eq. 13."""
    lam = v + (alpha - 1) / 2
    delta = v - 0.5 + lam / (2 * np.hypot(lam, x))
    return x / (delta + np.hypot(delta, x))


@pytest.mark.parametrize("v", ORDERS)
def test_the_ratio_is_that_of_the_bessel_functions(v, exact):
    expected = t([exact[v, x][0] for x in POINTS])
    torch.testing.assert_close(bessel_ratio(v, t(POINTS)), expected, rtol=1e-8, atol=0)


@pytest.mark.parametrize("v", ORDERS)
def test_the_slope_is_that_of_the_exact_ratio(v, exact):
    expected = t([exact[v, x][1] for x in POINTS])
    x = t(POINTS).requires_grad_()
    bessel_ratio(v, x).sum().backward()
    torch.testing.assert_close(x.grad, expected, rtol=2e-6 / v, atol=0)


@pytest.mark.parametrize("v", ORDERS)
def test_log_bessel_is_the_logarithm(v, exact):
    expected = t([exact[v, x][2] for x in POINTS])
    torch.testing.assert_close(log_bessel(v, t(POINTS)), expected, rtol=5e-9, atol=1e-9)


@pytest.mark.parametrize("v", [1, 1.5, 4, 25, 60])
def test_where_scipys_scaled_functions_can_be_divided_they_agree(v):
    x = t([0.5, 2.0, 20.0, 200.0, 5e4])
    scaled = t(special.ive(v, x.numpy())), t(special.ive(v - 1, x.numpy()))
    torch.testing.assert_close(bessel_ratio(v, x), scaled[0] / scaled[1], rtol=1e-8, atol=0)
    torch.testing.assert_close(log_bessel(v, x), scaled[0].log() + x, rtol=5e-9, atol=1e-9)


def test_orders_at_which_scipy_divides_zero_by_zero_are_no_trouble():
    assert special.ive(2000, 100.0) == 0
    assert bessel_ratio(2000, t(100.0)).item() == pytest.approx(
        float(exact_bessel(2000, 100) / exact_bessel(1999, 100)), rel=1e-12
    )


@pytest.mark.parametrize("v", ORDERS)
def test_the_ratio_lies_within_the_papers_bounds(v):
    x = np.array(POINTS)
    ratio = bessel_ratio(v, t(POINTS)).numpy()
    assert (ratio >= bound(2, v, x) * (1 - 1e-15)).all()
    assert (ratio <= bound(0, v, x) * (1 + 1e-15)).all()


@pytest.mark.parametrize(("v", "tightness"), [(1, 0.08), (10, 4e-4), (100, 4e-6), (400, 3e-7)])
def test_the_middle_of_the_papers_bounds_is_as_near_as_is_said_and_no_nearer(v, tightness):
    x = np.geomspace(1e-3, 1e6, 400)
    middle = (bound(0, v, x) + bound(2, v, x)) / 2
    off = np.abs(middle / bessel_ratio(v, t(x)).numpy() - 1).max()
    assert tightness / 2 < off < tightness


def test_half_integer_orders_are_hyperbolic_functions():
    x = torch.logspace(-2, 4, 40, dtype=torch.float64)
    langevin = 1 / x.tanh() - 1 / x
    torch.testing.assert_close(bessel_ratio(1.5, x), langevin, rtol=1e-8, atol=1e-12)
    log_sinh = x + torch.log1p(-(-2 * x).exp()) - math.log(2)
    closed = (2 / math.pi / x).log() / 2 + log_sinh
    torch.testing.assert_close(log_bessel(0.5, x), closed, rtol=5e-9, atol=5e-9)


@given(orders, points)
@settings(max_examples=100, deadline=None)
def test_the_recurrence_of_three_orders_holds(v, x):
    here, above = bessel_ratio(v, t(x)).item(), bessel_ratio(v + 1, t(x)).item()
    assert 1 / here == pytest.approx(2 * v / x + above, rel=2e-8)


@given(orders, points)
@settings(max_examples=100, deadline=None)
def test_the_slope_solves_riccatis_equation(v, x):
    ratio, slope = (r.item() for r in ratio_and_slope(v, t(x)))
    assert slope > 0
    assert slope + ratio**2 + (2 * v - 1) / x * ratio == pytest.approx(1, rel=5e-8)


@pytest.mark.parametrize("v", [1, 3.5, 392.5])
def test_nothing_breaks_at_zero(v):
    x = t(0.0).requires_grad_()
    ratio = bessel_ratio(v, x)
    ratio.backward()
    assert ratio.item() == 0
    assert x.grad.item() == pytest.approx(1 / (2 * v), rel=1e-12)
    assert log_bessel(0, t(0.0)).item() == 0
    assert log_bessel(v, t(0.0)).item() == -math.inf


@pytest.mark.parametrize("v", [1, 5, 100, 392.5, 5000])
def test_the_ratio_nears_one_as_the_asymptotic_series_says(v):
    x = 1e4 * v * v
    expected = (2 * v - 1) / (2 * x) - (2 * v - 1) * (2 * v - 3) / (8 * x * x)
    assert 1 - bessel_ratio(v, t(x)).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("v", [1.5, 5, 100, 392.5])
@pytest.mark.parametrize(
    ("a", "b"), [(0.0, 5.0), (3.0, 0.0), (10.0, 2000.0), (2000.0, 10.0), (300.0, 300.5)]
)
def test_the_excess_is_the_integral(v, a, b):
    at_a = bessel_ratio(v, t(a)).item()
    numeric, _ = quad(
        lambda x: bessel_ratio(v, t(x)).item() - at_a, a, b, epsabs=1e-13, epsrel=1e-11, limit=200
    )
    assert ratio_excess(v, t(a), t(b)).item() == pytest.approx(numeric, rel=1e-9)


@given(orders, st.floats(0, 1e6), st.floats(0, 1e6))
@settings(max_examples=100, deadline=None)
def test_the_excess_is_never_negative_and_zero_where_nothing_moves(v, a, b):
    assert ratio_excess(v, t(a), t(b)).item() >= -1e-9
    assert ratio_excess(v, t(a), t(a)).item() == 0


def test_a_small_excess_keeps_its_digits():
    v, a, b = 392.5, 3e5, 3e5 * (1 + 1e-4)
    slope = ratio_and_slope(v, t(a))[1].item()
    assert ratio_excess(v, t(a), t(b)).item() == pytest.approx(slope * (b - a) ** 2 / 2, rel=1e-3)


@pytest.mark.parametrize("v", [1, 2, 37.5, 392.5])
def test_gradients_are_those_of_the_values(v):
    x = t([0.3, 4.0, 60.0, 900.0]).requires_grad_()
    y = t([0.7, 1.0, 90.0, 300.0]).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: bessel_ratio(v, x), x, atol=1e-8)
    assert torch.autograd.gradcheck(lambda x: log_bessel(v, x), x, atol=1e-7)
    assert torch.autograd.gradcheck(lambda x, y: ratio_excess(v, x, y), (x, y), atol=1e-7)
    # One number against many.
    assert torch.autograd.gradcheck(lambda x, y: ratio_excess(v, x[0], y), (x, y), atol=1e-7)


def test_the_gradient_of_log_bessel_is_by_the_ratio():
    x = t([0.5, 30.0, 2e4]).requires_grad_()
    log_bessel(7.0, x).sum().backward()
    torch.testing.assert_close(x.grad, 7 / x + bessel_ratio(8.0, x), rtol=1e-12, atol=0)


def test_float32_goes_in_and_float64_comes_out():
    x = torch.tensor([2.0, 3e5], requires_grad=True)
    ratio = bessel_ratio(392.5, x)
    assert ratio.dtype == torch.float64
    assert torch.equal(ratio, bessel_ratio(392.5, x.double()))
    ratio.sum().backward()
    assert x.grad.dtype == torch.float32
