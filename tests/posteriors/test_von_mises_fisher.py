import math

import pytest
import torch
from scipy import special, stats
from scipy.integrate import quad

from vcl_radial.errors import UserError
from vcl_radial.posteriors.bessel import bessel_ratio, ratio_and_slope
from vcl_radial.posteriors.von_mises_fisher import (
    VonMisesFisher,
    concentration_for_length,
    concentration_for_variance,
)

DIMENSIONS = [2, 3, 10, 200, 785]


def t(x):
    return torch.tensor(x, dtype=torch.float64)


def unit(*shape, seed=0):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(x, dim=-1)


def turned(mu, distance, seed=1):
    """Unit vectors at this distance from mu."""
    u = unit(*mu.shape, seed=seed)
    u = torch.nn.functional.normalize(u - (u * mu).sum(-1, keepdim=True) * mu, dim=-1)
    angle = 2 * math.asin(distance / 2)
    return math.cos(angle) * mu + math.sin(angle) * u


@pytest.mark.parametrize("kappa", [0.0, 0.3, 5.0, 80.0])
def test_the_density_integrates_to_one_on_the_circle_and_on_the_sphere(kappa):
    circle = VonMisesFisher(t([1.0, 0.0]), t(kappa))

    def on_circle(a):
        return circle.log_prob(t([math.cos(a), math.sin(a)])).exp().item()

    assert quad(on_circle, -math.pi, math.pi, epsabs=1e-11)[0] == pytest.approx(1, abs=1e-7)
    sphere = VonMisesFisher(t([0.0, 0.0, 1.0]), t(kappa))

    def on_sphere(a):
        at = t([math.sin(a), 0.0, math.cos(a)])
        return 2 * math.pi * math.sin(a) * sphere.log_prob(at).exp().item()

    assert quad(on_sphere, 0, math.pi, epsabs=1e-11)[0] == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("D", [2, 3, 10, 200])
@pytest.mark.parametrize("kappa", [0.5, 30.0, 2000.0])
def test_density_and_entropy_agree_with_scipy(D, kappa):
    mu, x = unit(D), unit(5, D, seed=2)
    ours, theirs = VonMisesFisher(mu, t(kappa)), stats.vonmises_fisher(mu.numpy(), kappa)
    expected = torch.from_numpy(theirs.logpdf(x.numpy()))
    torch.testing.assert_close(ours.log_prob(x), expected, rtol=1e-7, atol=1e-6)
    assert ours.entropy().item() == pytest.approx(theirs.entropy(), abs=1e-6)


@pytest.mark.parametrize("D", DIMENSIONS)
def test_without_concentration_it_is_uniform(D):
    q = VonMisesFisher(unit(D), t(0.0))
    log_area = math.log(2) + D / 2 * math.log(math.pi) - math.lgamma(D / 2)
    assert q.log_prob(unit(D, seed=5)).item() == pytest.approx(-log_area, abs=1e-9)
    assert q.entropy().item() == pytest.approx(log_area, abs=1e-9)
    draws = q.sample(4000)
    assert draws.mean(0).norm() < 5 / math.sqrt(4000)


@pytest.mark.parametrize("D", DIMENSIONS)
@pytest.mark.parametrize("kappa", [2.0, 400.0, 3e5])
def test_first_and_second_moments_of_the_draws(D, kappa):
    """E x = A mu, and E u = 0, Var u = A / kappa for the coordinates u across mu."""
    n, mu = (1500 if D > 100 else 8000), unit(3, D)
    q = VonMisesFisher(mu, t(kappa))
    draws = q.sample(n, torch.Generator().manual_seed(7))
    torch.testing.assert_close(draws.norm(dim=-1), torch.ones(n, 3, dtype=torch.float64))
    error = draws.mean(0) - q.mean()
    A = bessel_ratio(D / 2, t(kappa)).item()
    assert q.mean_length().item() == A
    across_variance = A / kappa
    along = (draws * mu).sum(-1)
    across = draws - along.unsqueeze(-1) * mu
    # The squared error of D - 1 coordinates is about chi-square.
    total = (error - (error * mu).sum(-1, keepdim=True) * mu).square().sum(-1)
    bound = stats.chi2.ppf(1 - 1e-6, D - 1) * across_variance / n
    assert (total < bound).all()
    squares = across.square().sum(-1) / (D - 1)
    assert (abs(squares.mean(0) - across_variance) < 5 * squares.std(0) / math.sqrt(n)).all()


def test_directions_across_the_mean_are_uniform():
    mu = t([[0.0, 0.0, 1.0]])
    draws = VonMisesFisher(mu, t(10.0)).sample(20_000, torch.Generator().manual_seed(0))[:, 0]
    azimuth = torch.atan2(draws[:, 1], draws[:, 0]).numpy()
    uniform = stats.uniform(-math.pi, 2 * math.pi)
    assert stats.kstest(azimuth, uniform.cdf).pvalue > 1e-3
    # and independent of the angle
    assert abs(stats.spearmanr(azimuth, draws[:, 2].numpy()).statistic) < 0.03


@pytest.mark.parametrize(("D", "kappa"), [(2, 1.5), (3, 20.0), (20, 4.0), (20, 500.0), (785, 3e5)])
def test_the_gradient_of_an_expectation_is_right_in_direction_and_concentration(D, kappa):
    """E x'Mx = (A / kappa) tr M + (1 - D A / kappa) mu'M mu, differentiated, against draws.

    Five standard errors. The function is curved, so that a wrong joint law of angle and tangent, or
    a gradient that leaves out the acceptance, would show.
    """
    n = 1000 if D > 100 else 30_000
    generator = torch.Generator().manual_seed(3)
    M = torch.diag(torch.linspace(-1, 2, D, dtype=torch.float64))
    M += 0.1 * torch.randn(D, D, generator=generator, dtype=torch.float64) / math.sqrt(D)
    M = (M + M.T) / 2
    m = (2.5 * unit(D)).expand(n, D).clone().requires_grad_()
    k = t(kappa).expand(n).clone().requires_grad_()
    mu = torch.nn.functional.normalize(m, dim=-1)
    x = VonMisesFisher(mu, k).sample(1, generator)[0]
    ((x @ M) * x).sum().backward()

    first, k_first = (2.5 * unit(D)).requires_grad_(), t(kappa).requires_grad_()
    mean = torch.nn.functional.normalize(first, dim=-1)
    over = bessel_ratio(D / 2, k_first) / k_first
    (over * M.trace() + (1 - D * over) * mean @ M @ mean).backward()
    for drawn, exact in ((m.grad, first.grad), (k.grad, k_first.grad)):
        error = drawn.std(0) / math.sqrt(n)
        assert (abs(drawn.mean(0) - exact) < 5 * error + 1e-12).all()


@pytest.mark.parametrize("D", [2, 10, 785])
def test_the_gradient_of_the_mean_cosine_is_the_slope_of_the_bessel_ratio(D):
    n = 4000
    kappa = t(2.0 * D).expand(n).clone().requires_grad_()
    mu = unit(D)
    draws = VonMisesFisher(mu.expand(n, D), kappa).sample(1)
    (draws @ mu).sum().backward()
    slope = ratio_and_slope(D / 2, t(2.0 * D))[1]
    assert abs(kappa.grad.mean() - slope) < 5 * kappa.grad.std() / math.sqrt(n)


@pytest.mark.parametrize("D", DIMENSIONS)
@pytest.mark.parametrize(("kappa", "kappa_p"), [(3.0, 8.0), (500.0, 20.0), (2e4, 2.2e4)])
def test_the_divergence_is_the_mean_log_ratio_of_densities(D, kappa, kappa_p):
    mu = unit(4, D)
    q = VonMisesFisher(mu, t(kappa))
    p = VonMisesFisher(turned(mu, 1.5 * min(1, math.sqrt(D / kappa))), t(kappa_p))
    n = 500 if D > 100 else 4000
    draws = q.sample(n, torch.Generator().manual_seed(1))
    ratio = q.log_prob(draws) - p.log_prob(draws)
    assert (abs(ratio.mean(0) - q.kl(p)) < 5 * ratio.std(0) / math.sqrt(n) + 1e-6).all()


@pytest.mark.parametrize("D", DIMENSIONS)
@pytest.mark.parametrize("kappa", [0.0, 2.0, 3e5])
def test_the_divergence_is_zero_and_flat_where_posterior_and_prior_agree(D, kappa):
    mu, k = unit(4, D).requires_grad_(), t(kappa).requires_grad_()
    kl = VonMisesFisher(mu, k).kl(VonMisesFisher(mu.detach(), k.detach()))
    kl.sum().backward()
    assert kl.tolist() == [0, 0, 0, 0]
    assert not mu.grad.any()
    assert not k.grad.any()


@pytest.mark.parametrize("D", DIMENSIONS)
@pytest.mark.parametrize("kappa", [0.5, 40.0, 3e5])
def test_the_divergence_rises_with_every_move_away(D, kappa):
    mu = unit(D)
    p = VonMisesFisher(mu, t(kappa))
    for factors in ((1.001, 1.01, 2.0), (0.999, 0.99, 0.5)):
        concentrations = [VonMisesFisher(mu, t(kappa * f)).kl(p).item() for f in factors]
        assert 0 < concentrations[0] < concentrations[1] < concentrations[2]
    distances = [VonMisesFisher(turned(mu, d), t(kappa)).kl(p).item() for d in (1e-4, 1e-2, 1)]
    assert 0 < distances[0] < distances[1] < distances[2]


@pytest.mark.parametrize("D", [10, 785])
def test_a_small_divergence_keeps_its_digits_at_large_concentrations(D):
    """Half the Fisher information times the squared move, where the terms of Eq. 46 are 10^5."""
    kappa, mu = 3e5, unit(D)
    p = VonMisesFisher(mu, t(kappa))
    A, slope = (x.item() for x in ratio_and_slope(D / 2, t(kappa)))
    widened = VonMisesFisher(mu, t(kappa * 1.0001)).kl(p).item()
    assert widened == pytest.approx(slope * (kappa * 1e-4) ** 2 / 2, rel=1e-3)
    moved = VonMisesFisher(turned(mu, 1e-6), t(kappa)).kl(p).item()
    assert moved == pytest.approx(kappa * A * 1e-12 / 2, rel=1e-6)


@pytest.mark.parametrize(("D", "kappa"), [(3, 4.0), (50, 900.0), (785, 3e5)])
def test_the_divergence_to_the_uniform_is_the_missing_entropy(D, kappa):
    mu = unit(D)
    q, uniform = VonMisesFisher(mu, t(kappa)), VonMisesFisher(-mu, t(0.0))
    missing = uniform.entropy() - q.entropy()
    assert q.kl(uniform).item() == pytest.approx(missing.item(), rel=1e-9)


def test_in_three_dimensions_the_divergence_is_hyperbolic():
    mu = unit(3)
    for k, k_p, distance in ((0.4, 3.0, 0.5), (12.0, 5.0, 1.2)):

        def log_c(x):
            return math.log(x / (4 * math.pi * math.sinh(x)))

        cosine = 1 - distance**2 / 2
        A = 1 / math.tanh(k) - 1 / k
        expected = (k - k_p * cosine) * A + log_c(k) - log_c(k_p)
        kl = VonMisesFisher(turned(mu, distance), t(k)).kl(VonMisesFisher(mu, t(k_p)))
        assert kl.item() == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("D", [5, 785])
def test_concentrated_ones_diverge_as_normals_on_the_tangent_plane(D):
    """1/2 sum(a^2 + s^2 - 1 - log s^2) over D - 1 coordinates with variances 1 / kappa."""
    k, k_p, distance = 4e7, 1e7, 3e-4
    mu = unit(D)
    kl = VonMisesFisher(turned(mu, distance), t(k)).kl(VonMisesFisher(mu, t(k_p)))
    s2 = k_p / k
    expected = (k_p * distance**2 + (D - 1) * (s2 - 1 - math.log(s2))) / 2
    assert kl.item() == pytest.approx(expected, rel=1e-4)


def test_the_gradient_of_the_divergence_is_that_of_its_value():
    k = t([4.0, 90.0, 3e3]).requires_grad_()
    m, mu_p = unit(3, 20).requires_grad_(), unit(3, 20, seed=9)
    prior = VonMisesFisher(mu_p, t(70.0))

    def kl(m, k):
        return VonMisesFisher(torch.nn.functional.normalize(m, dim=-1), k).kl(prior)

    assert torch.autograd.gradcheck(kl, (m, k), atol=1e-5)
    # One concentration for all groups, as the paper has it.
    assert torch.autograd.gradcheck(lambda m, k: kl(m, k[1]), (m, k), atol=1e-5)
    # Eq. 47
    q = VonMisesFisher(m.detach(), k)
    kl(m.detach(), k).sum().backward()
    A, A_above = bessel_ratio(10.0, k).detach(), bessel_ratio(11.0, k).detach()
    factor = k.detach() - 70 * (q.mean_direction * mu_p).sum(-1)
    printed = factor / 2 * (A * (A_above - 2 * A - 18 / k.detach()) + 1)
    torch.testing.assert_close(k.grad, printed, rtol=1e-5, atol=1e-8)


def test_a_rotation_of_both_changes_nothing():
    mu, mu_p = unit(6, 30), unit(6, 30, seed=4)
    turn = torch.linalg.qr(torch.randn(30, 30, dtype=torch.float64))[0]
    first = VonMisesFisher(mu, t(50.0)).kl(VonMisesFisher(mu_p, t(20.0)))
    second = VonMisesFisher(mu @ turn, t(50.0)).kl(VonMisesFisher(mu_p @ turn, t(20.0)))
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("D", [2, 3, 10, 785])
@pytest.mark.parametrize("kappa", [1e-3, 0.1, 5.0, 400.0, 3e5])
def test_the_concentration_for_a_variance_has_that_variance(D, kappa):
    """The variance of x / A(kappa), whose mean has length 1: A / kappa over A^2."""
    variance = 1 / (kappa * bessel_ratio(D / 2, t(kappa)).item())
    assert concentration_for_variance(variance, D) == pytest.approx(kappa, rel=1e-8)


def test_float32_weights_give_float32_draws_and_exact_numbers_per_group():
    mu = unit(4, 785).float().requires_grad_()
    q = VonMisesFisher(mu, torch.tensor(3e5))
    draws = q.sample(2)
    assert draws.dtype == torch.float32
    assert q.kl(VonMisesFisher(mu.detach(), t(2e5))).dtype == torch.float64
    draws.sum().backward()
    assert mu.grad.dtype == torch.float32


def test_with_a_generator_the_draws_depend_on_it_alone():
    q = VonMisesFisher(unit(4, 20), t(30.0))
    before = torch.get_rng_state()
    first = q.sample(3, torch.Generator().manual_seed(1))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, q.sample(3, torch.Generator().manual_seed(1)))


def test_what_has_no_direction_is_refused():
    with pytest.raises(UserError, match="single one has no direction"):
        VonMisesFisher(torch.ones(3, 1), torch.ones(()))
    with pytest.raises(UserError, match="groups of one size, got 3 and 4"):
        VonMisesFisher(unit(3), t(1.0)).kl(VonMisesFisher(unit(4), t(1.0)))


@pytest.mark.parametrize("D", [2, 3, 25, 60])
@pytest.mark.parametrize("length", [0.05, 0.5, 0.9, 0.99])
def test_a_concentration_gives_the_mean_direction_its_length(length, D):
    kappa = concentration_for_length(length, D)
    ratio = special.ive(D / 2, kappa) / special.ive(D / 2 - 1, kappa)
    assert ratio == pytest.approx(length, rel=1e-7)


@pytest.mark.parametrize("D", DIMENSIONS)
def test_a_mean_direction_without_length_is_that_of_the_uniform_distribution(D):
    assert concentration_for_length(0.0, D) == 0
    # A(kappa) is kappa / D near 0.
    assert concentration_for_length(1e-6, D) == pytest.approx(1e-6 * D, rel=1e-6)


@pytest.mark.parametrize("length", [1.0, -0.5, math.nan])
def test_a_length_that_no_mean_direction_has_is_refused(length):
    with pytest.raises(UserError, match="must be at least 0 and below 1"):
        concentration_for_length(length, 10)
