import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import special, stats

from reports.seeds.rdp import (
    bessel_bounds,
    bessel_ratio,
    half_cauchy,
    log_bessel,
    vmf_density,
)
from reports.seeds.rdp.exact_bessel import exact_log, exact_ratio


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("kappa", [0.5, 2, 100])
def test_directions_on_the_circle_are_von_mises_distributed(kappa):
    angle = np.linspace(-3, 3, 25)
    expected = stats.vonmises(kappa).pdf(angle)
    assert vmf_density.density(angle, kappa) == pytest.approx(expected, rel=1e-6)
    drawn = vmf_density.drawn_angles(kappa, 4000)
    assert stats.kstest(drawn, stats.vonmises(kappa).cdf).pvalue > 1e-3


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_the_product_of_the_two_factors_is_a_squared_half_cauchy_radius(scale):
    r = np.sqrt(half_cauchy.squared_radii(4000, scale))
    assert stats.kstest(r, stats.halfcauchy(scale=scale).cdf).pvalue > 1e-3


def test_the_divergence_bounds_that_of_the_radius_itself_and_grows_as_the_tails_do():
    for place, spread in ((0.0, 0.3), (2.0, 1.0), (-3.0, 0.5)):
        y = np.linspace(place - 9 * spread, place + 9 * spread, 4001)
        q = stats.norm(place, spread)
        log_p = stats.halfcauchy.logpdf(np.exp(y)) + y
        of_radius = np.trapezoid(q.pdf(y) * (q.logpdf(y) - log_p), y)
        # Of two factors together it is no less than of their product (data processing).
        assert half_cauchy.divergence(place, spread) >= of_radius - 1e-6
    for place in (7.0, -7.0):
        further = half_cauchy.divergence(place + math.copysign(1, place), 0.2)
        assert further - half_cauchy.divergence(place, 0.2) == pytest.approx(1, abs=1e-3)


def test_eq_50_is_misprinted_and_the_suites_divergence_is_exact():
    printed, exact, ours = half_cauchy.weibull_divergences()
    assert ours == pytest.approx(exact, rel=1e-8)
    assert printed < 0 < exact


@pytest.mark.parametrize("v", [1, 2.5, 30, 400])
@pytest.mark.parametrize("bounds", [bessel_bounds.theorem_2, bessel_bounds.theorem_3])
def test_the_bounds_hold_the_ratio_between_them(bounds, v):
    z = v * np.geomspace(0.05, 20, 7)
    lower, upper = bounds(v, z)
    exact = exact_ratio(v, z)
    assert (lower < exact).all()
    assert (exact < upper).all()


def test_the_exact_functions_are_elementary_at_half_orders():
    z = np.array([0.3, 2.0, 40.0])
    assert exact_ratio(1.5, z) == pytest.approx(1 / np.tanh(z) - 1 / z, rel=1e-12)
    expected = [float(mpmath.log(mpmath.sqrt(2 / (mpmath.pi * x)) * mpmath.sinh(x))) for x in z]
    assert exact_log(0.5, z) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("v", [1, 10, 60])
def test_all_ways_to_the_ratio_are_near_it_and_scipys_is_it(v):
    z = np.array([0.5, 5.0, 80.0, 3000.0])
    exact = exact_ratio(v, z)
    for name, function in bessel_ratio.RATIO.functions.items():
        close = {bessel_ratio.SCIPY: 1e-11, bessel_ratio.SUITE: 1e-8}.get(name, 0.08 / v)
        assert function(v, z) == pytest.approx(exact, rel=close)


@pytest.mark.parametrize("v", [10, 60])
def test_the_series_adds_up_the_ratios_exactly_where_they_are_exact(v, monkeypatch):
    def both(order, z):
        exact = exact_ratio(order, z)
        return exact, exact

    z = np.array([0.5, 5.0, 80.0])
    assert log_bessel.by_series(v, z) == pytest.approx(exact_log(v, z), abs=0.1)
    monkeypatch.setattr(log_bessel, "theorem_3", both)
    assert log_bessel.by_series(v, z) == pytest.approx(exact_log(v, z), abs=1e-9)


def test_equation_44_is_the_limit_for_large_arguments_only():
    v, z = 10, np.array([1e6])
    assert log_bessel.in_pieces(v, z) == pytest.approx(exact_log(v, z), abs=1e-3)
    assert abs(log_bessel.in_pieces(100, np.array([100.0])) - exact_log(100, [100.0])) > 10
    assert log_bessel.by_scipy(v, z) == pytest.approx(np.log(special.ive(v, z)) + z)
