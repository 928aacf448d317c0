import math

import pytest
import torch

from reports.analysis.prior_penalty import (
    FAMILIES,
    estimate,
    gradient_noise,
    scale_penalty,
    shift_penalty,
)
from vcl_radial.posteriors import Gaussian, Radial, RadialEq44

SHIFTS = (0.0, 0.1, 1.0, 7.0)


@pytest.mark.parametrize("m", SHIFTS)
def test_a_gaussian_pays_a_parabola_and_equation_44_one_that_is_d_times_flatter(m):
    for D in (1, 10, 1000):
        assert shift_penalty(Gaussian, D, m) == pytest.approx(m**2 / 2, abs=1e-12)
        assert shift_penalty(RadialEq44, D, m) == pytest.approx(m**2 / (2 * D), abs=1e-12)


@pytest.mark.parametrize("D", [10, 10_000])
def test_the_corrected_penalty_is_a_cone_whose_tip_is_its_minimum(D):
    assert shift_penalty(Radial, D, 0.0) == pytest.approx(0, abs=1e-12)
    values = [shift_penalty(Radial, D, m) for m in (1e-4, 0.1, 0.5, 2.0, 10.0, 100.0)]
    assert values == sorted(values)
    assert values[0] > 0
    slope = values[0] / 1e-4
    assert slope == pytest.approx(math.sqrt(math.pi / 2), rel=3 / D + 1e-3)


def test_far_out_the_corrected_penalty_is_a_logarithm_beside_the_flat_parabola():
    D, m = 100_000, 100.0
    growth = shift_penalty(Radial, D, 2 * m) - shift_penalty(Radial, D, m)
    assert growth == pytest.approx(math.log(2) + 3 * m**2 / (2 * D), abs=1e-3)


@pytest.mark.parametrize("s", [0.25, 1.0, 3.0])
def test_what_a_common_factor_of_the_scales_costs(s):
    one = (s**2 - 1) / 2 - math.log(s)
    for D in (1, 10, 1000):
        assert scale_penalty(Gaussian, D, s) == pytest.approx(one, abs=1e-12)
        assert D * scale_penalty(Radial, D, s) == pytest.approx(one, abs=1e-9)


def test_equation_44_is_not_smallest_where_posterior_and_prior_are_one():
    D = 100
    assert scale_penalty(RadialEq44, D, 1.0) == pytest.approx(0, abs=1e-12)
    assert scale_penalty(RadialEq44, D, math.sqrt(D)) < scale_penalty(RadialEq44, D, 4.0) < 0
    assert scale_penalty(RadialEq44, D, math.sqrt(D)) < scale_penalty(RadialEq44, D, 20.0)


@pytest.mark.parametrize("m", [0.3, 1.0, 5.0])
def test_single_draws_estimate_the_closed_form_without_bias(m):
    torch.manual_seed(0)
    D, draws = 100, 20_000
    values, _ = estimate(D, m, draws)
    assert values.shape == (draws,)
    error = float(values.std()) / math.sqrt(draws)
    # The closed form is of second order: off by about 0.2 / D nats a group.
    assert abs(float(values.mean()) - D * shift_penalty(Radial, D, m)) < 4 * error + 0.02


@pytest.mark.parametrize("m", [0.5, 2.0, 10.0])
def test_the_noise_of_the_drawn_gradients_is_the_closed_form(m):
    torch.manual_seed(0)
    D, draws = 400, 8000
    _, errors = estimate(D, m, draws)
    allowed = 4 * float(errors.std()) / math.sqrt(draws) + 0.02 * gradient_noise(D, m)
    assert abs(float(errors.mean()) - gradient_noise(D, m)) < allowed


def test_the_noise_of_the_gradient_has_no_bound_at_the_tip():
    noises = [gradient_noise(1000, m) for m in (1e-1, 1e-2, 1e-3)]
    assert noises[2] > 9 * noises[1] > 81 * noises[0] * 0.9
    assert [shift_penalty(f, 5, 0.0) for f in FAMILIES.values()] == pytest.approx([0, 0, 0])
