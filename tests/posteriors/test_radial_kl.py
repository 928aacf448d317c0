"""The corrected divergence between radials against exact cases, quadrature and simulation."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import roots_jacobi

from vcl_radial.posteriors import Radial, radial_kl
from vcl_radial.posteriors.log_radius import EXPECTED_LOG_RADIUS, log_radius_gain, mills_ratio

dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def log_normal_case(D, spread, shift, seed=0, dtype=torch.float64):
    """A shift of the given length in a random direction, and log-normal scale ratios."""
    generator = seeded(seed)
    a = torch.randn(D, generator=generator, dtype=dtype)
    s = (spread * torch.randn(D, generator=generator, dtype=dtype)).exp()
    return a / a.norm() * shift, s


def isotropic_kl(D, s, shift):
    """Exact KL for equal scale ratios: E log ||z_p|| integrated over radius and angle."""
    # Panels that end at the kink r = shift / s.
    kink = shift / s
    edges = np.array([0, kink / 2, kink, 2 * kink, 2 * kink + 5, 2 * kink + 12])
    nodes, weights = np.polynomial.legendre.leggauss(80)
    half = np.diff(edges)[:, None] / 2
    r = (edges[:-1, None] + half * (nodes + 1)).ravel()
    w = (half * weights).ravel()
    w *= math.sqrt(2 / math.pi) * np.exp(-r * r / 2)
    if D == 2:
        # Jensen's formula: the mean of log |shift + s r exp(i angle)| over the circle.
        log_radius = np.log(np.maximum(shift, s * r))
    else:
        cos, cos_weight = roots_jacobi(200, (D - 3) / 2, (D - 3) / 2)
        squared = shift**2 + 2 * shift * s * r[:, None] * cos + (s * r[:, None]) ** 2
        log_radius = np.log(squared) / 2 @ (cos_weight / cos_weight.sum())
    change = w @ log_radius - EXPECTED_LOG_RADIUS
    return -D * math.log(s) + (shift**2 + s**2 - 1) / 2 + (D - 1) * change


def isotropic_case(D, s, shift):
    a = torch.zeros(D, dtype=torch.float64)
    a[0] = shift
    return a, torch.full((D,), s, dtype=torch.float64)


def first_order_kl(a, s):
    """The divergence with u_i^2 = 1/D and a.(s u) = 0, term by term."""
    D = a.shape[-1]
    A, S = a.square().sum(-1), s.square().mean(-1)
    change = S.log() / 2 + log_radius_gain((A / S).sqrt())
    return -s.log().sum(-1) + (A + S - 1) / 2 + (D - 1) * change


def second_order_kl(a, s):
    """The same with the second-order term in its raw form, which cancels and overflows."""
    D = a.shape[-1]
    A, S = a.square().sum(-1), s.square().mean(-1)
    delta = (A / S).sqrt()
    B = (a * s).square().sum(-1) / D
    V = 2 / (D + 2) * (s.pow(4).mean(-1) - S**2)
    h = mills_ratio(delta) / delta
    h2 = -((delta * mills_ratio(delta) - 1) / delta - h / delta) / (2 * delta)
    c2 = -(B / S**2) * (h - delta**2 * h2)
    c2 -= V / (4 * S**2) * (1 - 2 * delta**2 * h + delta**4 * h2)
    return first_order_kl(a, s) + (D - 1) * c2


def simulated_kl(a, s, n, seed=0):
    """KL and its standard error by simulation of E log ||z_p||.

    With ||z_p||^2 = (A + S r^2)(1 + x) and E x = 0, only log(1 + x) - x is left to simulate.
    """
    D = a.shape[-1]
    noise = Radial(torch.zeros_like(a), torch.ones_like(s)).noise(n, seeded(seed))
    A, S = a.square().sum(), s.square().mean()
    x = (a + s * noise).square().sum(-1) / (A + S * noise.square().sum(-1)) - 1
    draws = (D - 1) / 2 * (x.log1p() - x)
    return (first_order_kl(a, s) + draws.mean()).item(), (draws.std() / math.sqrt(n)).item()


@dtypes
@pytest.mark.parametrize("D", [1, 2, 10, 1000])
def test_the_divergence_of_a_radial_to_itself_and_its_gradient_are_zero(D, dtype):
    a, s = log_normal_case(D, 1.0, 1.0, dtype=dtype)
    mean, scale = a.clone().requires_grad_(), s.clone().requires_grad_()
    kl = Radial(mean, scale).kl(Radial(a, s))
    gradients = torch.autograd.grad(kl, [mean, scale])
    assert kl.item() == pytest.approx(0, abs=1e-15)
    assert not gradients[0].any()
    assert (gradients[1] * s).abs().max() < 1e-15


@dtypes
@pytest.mark.parametrize("D", [2, 3, 10, 100])
def test_the_divergence_is_minimal_at_the_prior(D, dtype):
    mean_p, scale_p = log_normal_case(D, 1.0, 1.0, dtype=dtype)
    p = Radial(mean_p, scale_p)
    for step in (1e-3, 1e-2, 0.1, 1.0):
        shift, stretch = torch.randn(2, 20, D, generator=seeded(D), dtype=dtype) * step
        moved, stretched = mean_p + scale_p * shift, scale_p * stretch.exp()
        assert (Radial(moved, scale_p).kl(p) > 0).all()
        assert (Radial(mean_p, stretched).kl(p) > 0).all()
        assert (Radial(moved, stretched).kl(p) > 0).all()


@dtypes
@pytest.mark.parametrize("k", [1e-6, 0.3, 1.001, 1.0, 7.0, 1e6])
@pytest.mark.parametrize("D", [1, 2, 50])
def test_scaling_all_scales_gives_the_divergence_of_two_half_normals(D, k, dtype):
    mean_p, scale_p = log_normal_case(D, 1.0, 1.0, dtype=dtype)
    k = torch.tensor(k, dtype=dtype)
    kl = Radial(mean_p, k * scale_p).kl(Radial(mean_p, scale_p))
    k = k.double()
    e = (k - 1) * (k + 1)
    truth = (e - (torch.log1p(e) if abs(e) < 0.5 else 2 * k.log())) / 2
    # The ratio of the scales is k only up to rounding, which the slope k - 1/k turns into nats.
    eps = torch.finfo(dtype).eps
    slack = 2 * eps * abs(e) + D * eps**2 + 1e-16
    torch.testing.assert_close(kl.double(), truth, rtol=eps, atol=slack.item())


@pytest.mark.parametrize(
    ("D", "s", "shift", "kl", "first_error", "second_error"),
    [
        (2, 1.0, 1.0, 1.257, 0.145, 0.067),
        (5, 1.0, 1.0, 3.948, 0.160, 0.036),
        (20, 1.0, 1.0, 17.479, 0.157, 0.009),
        (200, 0.7, 3.0, 425.602, 0.042, 0.0001),
    ],
)
def test_equal_scales_agree_with_integration_over_radius_and_angle(
    D, s, shift, kl, first_error, second_error
):
    case = isotropic_case(D, s, shift)
    truth = isotropic_kl(D, s, shift)
    assert truth == pytest.approx(kl, abs=6e-4)
    assert radial_kl(*case).item() - truth == pytest.approx(second_error, abs=6e-4)
    assert first_order_kl(*case).item() - truth == pytest.approx(first_error, abs=6e-4)


@pytest.mark.parametrize("shift", [0.01, 0.3, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("s", [0.2, 1.0, 4.0])
def test_for_equal_scales_the_error_falls_as_one_over_D(s, shift):
    for D in (5, 20, 80, 320):
        error = radial_kl(*isotropic_case(D, s, shift)).item() - isotropic_kl(D, s, shift)
        assert abs(error) < 0.25 / D


@pytest.mark.parametrize(
    ("D", "spread", "shift", "tolerance"),
    [(9, 0.7, 0.0, 0.1), (9, 0.3, 1.0, 0.04), (120, 0.7, 2.0, 0.02), (120, 0.3, 5.0, 0.01)],
)
def test_unequal_scales_agree_with_simulation(D, spread, shift, tolerance):
    case = log_normal_case(D, spread, shift)
    truth, error = simulated_kl(*case, n=2_400_000 // D)
    second = abs(radial_kl(*case).item() - truth)
    first = abs(first_order_kl(*case).item() - truth)
    assert second < tolerance + 4 * error
    assert second < first - 4 * error


def test_the_plain_monte_carlo_estimate_agrees_within_its_noise():
    D, n = 5, 400_000
    case = log_normal_case(D, 0.2, 1.0)
    q = Radial(*case)
    p = Radial(torch.zeros_like(case[0]), torch.ones_like(case[1]))
    noise = p.log_prob(q.sample(10_000, seeded(1))).std().item() / math.sqrt(n)
    estimate = q.kl_monte_carlo(p, n, seeded()).item()
    assert estimate == pytest.approx(q.kl(p).item(), abs=0.05 + 4 * noise)


@pytest.mark.parametrize("shift", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("D", [1, 2, 9, 300])
def test_the_cancelling_form_is_the_same_function(D, shift):
    case = log_normal_case(D, 0.8, shift, seed=D)
    torch.testing.assert_close(radial_kl(*case), second_order_kl(*case), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shift", [1e-3, 1.0, 9.0, 40.0])
@pytest.mark.parametrize("D", [1, 2, 7])
def test_gradients_to_posterior_and_prior_agree_with_finite_differences(D, shift):
    generator = seeded(D)
    mean_p = torch.randn(D, generator=generator, dtype=torch.float64)
    scale_p = torch.rand(D, generator=generator, dtype=torch.float64) + 0.5
    offset = torch.randn(2, D, generator=generator, dtype=torch.float64)
    mean = mean_p + shift * offset
    scale = torch.rand(2, D, generator=generator, dtype=torch.float64) + 0.5

    def kl(mean, scale, mean_p, scale_p):
        return Radial(mean, scale).kl(Radial(mean_p, scale_p))

    inputs = [t.clone().requires_grad_() for t in (mean, scale, mean_p, scale_p)]
    assert torch.autograd.gradcheck(kl, inputs, eps=1e-6 * max(shift, 0.1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shift", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("D", [2, 9, 300])
def test_gradients_agree_with_automatic_differentiation_of_the_cancelling_form(D, shift):
    inputs = [t.requires_grad_() for t in log_normal_case(D, 0.8, shift, seed=D)]
    analytic = torch.autograd.grad(radial_kl(*inputs), inputs)
    automatic = torch.autograd.grad(second_order_kl(*inputs), inputs)
    torch.testing.assert_close(analytic, automatic, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shift", [1e4, 1e6])
def test_far_away_the_gradient_is_that_of_the_first_order(shift):
    D = 6
    a, s = (t.requires_grad_() for t in log_normal_case(D, 0.7, shift))
    analytic = torch.autograd.grad(radial_kl(a, s), [a, s])
    first_order = torch.autograd.grad(first_order_kl(a, s), [a, s])
    # The second order is of the order D / shift^2.
    for ours, expected in zip(analytic, first_order, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-12, atol=10 * D / shift**2)


def test_the_tip_of_the_cone_has_subgradient_zero_and_slopes_beside_it():
    D = 10
    s = torch.ones(D, dtype=torch.float64)
    tip = torch.zeros(D, dtype=torch.float64, requires_grad=True)
    assert not torch.autograd.grad(radial_kl(tip, s), tip)[0].any()
    beside = torch.zeros(D, dtype=torch.float64)
    beside[0] = 1e-9
    beside.requires_grad_()
    slope = torch.autograd.grad(radial_kl(beside, s), beside)[0][0].item()
    # To second order; the -1/(2 D) is that of k1 beta / D.
    assert slope == pytest.approx((D - 1) * math.sqrt(math.pi / 2) * (1 - 1 / (2 * D)), rel=1e-6)


def test_far_away_the_divergence_leaves_the_quadratic_only_logarithmically():
    D = 50
    values = [radial_kl(*isotropic_case(D, 1.0, shift)) - shift**2 / 2 for shift in (1e3, 1e4)]
    assert (values[1] - values[0]).item() == pytest.approx((D - 1) * math.log(10), rel=1e-4)


@pytest.mark.parametrize("shift", [0.0, 1e-6, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("D", [1, 2, 10, 10_000])
def test_single_precision_agrees_with_double(D, shift):
    assert_single_agrees_with_double(D, shift)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_ten_million_weights_in_single_precision_agree_with_double(shift):
    assert_single_agrees_with_double(10_000_000, shift)


def assert_single_agrees_with_double(D, shift):
    """Per-weight shifts of the given size, log-normal scales."""
    generator = seeded(D)
    a = torch.randn(D, generator=generator) * shift
    s = torch.randn(D, generator=generator).exp_()
    results = []
    for dtype in (torch.float32, torch.float64):
        inputs = [t.to(dtype).requires_grad_() for t in (a, s)]
        kl = radial_kl(*inputs)
        assert kl.dtype == dtype
        results.append((kl.detach().double(), *torch.autograd.grad(kl, inputs)))
    single, double = results
    assert all(r.isfinite().all() for r in single)
    torch.testing.assert_close(single[0], double[0], rtol=1e-6, atol=0)
    norms = [
        (x - y).norm() / y.norm().clamp(min=1e-30)
        for x, y in zip(single[1:], double[1:], strict=True)
    ]
    assert max(norms) < 1e-6


@pytest.mark.parametrize("D", [2, 1_000_000])
def test_single_precision_does_not_drown_a_small_divergence(D):
    # Half of the scales up and half down by one in a thousand: D/2 nats of 1e-6 each, twice.
    tilt = 1e-3 * (1 - 2 * (torch.arange(D) % 2))
    s = (1 + tilt).float()
    kl = radial_kl(torch.zeros(D), s)
    torch.testing.assert_close(
        kl.double(), radial_kl(torch.zeros(D).double(), s.double()), rtol=1e-3, atol=0
    )
    assert kl > 0.2e-6 * D


@pytest.mark.parametrize("spread", [8.0, 12.0])
def test_very_unequal_scales_stay_finite_in_single_precision(spread):
    a, s = log_normal_case(1000, spread, 1e3, dtype=torch.float32)
    a.requires_grad_()
    s.requires_grad_()
    kl = radial_kl(a, s)
    gradients = torch.autograd.grad(kl, [a, s])
    truth = radial_kl(a.detach().double(), s.detach().double())
    torch.testing.assert_close(kl.detach().double(), truth, rtol=1e-5, atol=0)
    assert all(g.isfinite().all() for g in gradients)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    D=st.integers(1, 40),
    spread=st.floats(0, 8),
    shift=st.floats(0, 1e4),
    level=st.floats(-10, 10),
    axis=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_the_divergence_is_never_negative(D, spread, shift, level, axis, seed):
    a, s = log_normal_case(D, spread, shift, seed)
    if axis:  # the worst case of the second order: all of the shift along the widest weight
        a = torch.where(s == s.max(), a.norm(), 0.0)
    assert radial_kl(a, s * math.exp(level)) > -1e-12
