import math

import pytest
import torch
from scipy import stats
from scipy.integrate import quad
from torch.nn.functional import normalize

from vcl_radial.errors import UserError
from vcl_radial.posteriors.log_normal_radius import LogNormal
from vcl_radial.posteriors.rdp import RDP, HalfCauchyPrior
from vcl_radial.posteriors.von_mises_fisher import VonMisesFisher
from vcl_radial.posteriors.weibull_radius import Weibull


def t(x):
    return torch.tensor(x, dtype=torch.float64)


def rdp(
    groups=4, D=12, kappa=90.0, seed=0, loc=0.4, scale=0.3, requires_grad=False, radius=LogNormal
):
    generator = torch.Generator().manual_seed(seed)

    def randn(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    parts = (
        normalize(randn(groups, D), dim=1),
        t(kappa),
        loc * randn(2, groups + 1),
        scale * (0.3 * randn(2, groups + 1)).exp(),
    )
    mu, kappa, loc, scale = (p.requires_grad_(requires_grad) for p in parts)
    return RDP(VonMisesFisher(mu, kappa), radius(loc, scale))


def moved(q, mu=0.0, kappa=1.0, loc=0.0, scale=1.0):
    """The same with a part changed."""
    turn = torch.linspace(-1, 1, q.direction.group_size, dtype=torch.float64)
    direction = normalize(q.direction.mean_direction + mu * turn, dim=1)
    return RDP(
        VonMisesFisher(direction, kappa * q.direction.concentration),
        LogNormal(q.factors.loc + loc, scale * q.factors.scale),
    )


@pytest.mark.parametrize("radius", [LogNormal, Weibull])
def test_draws_have_the_mean_that_is_said(radius):
    q, n = rdp(radius=radius), 60_000
    draws = q.sample(n, torch.Generator().manual_seed(1))
    assert draws.shape == (n, 4, 12)
    error = draws.std(0) / math.sqrt(n)
    assert (abs(draws.mean(0) - q.mean()) < 5 * error).all()


def test_the_length_of_a_draw_is_the_log_normal_radius():
    q = rdp()
    lengths = q.sample(30_000, torch.Generator().manual_seed(2)).norm(dim=-1).log()
    for column, m, s in zip(lengths.T, q.factors.radius.loc, q.factors.radius.scale, strict=True):
        assert stats.kstest(column.numpy(), stats.norm(m.item(), s.item()).cdf).pvalue > 1e-3


def test_radii_of_a_layer_share_its_factors_and_directions_do_not():
    q = rdp(groups=2, scale=0.05)
    q.factors.scale[:, -1] = 0.5  # the layer's own: nearly all of the spread
    draws = q.sample(20_000, torch.Generator().manual_seed(3))
    log_radius = draws.norm(dim=-1).log()
    assert torch.corrcoef(log_radius.T)[0, 1] > 0.9
    cosine = (draws * q.direction.mean_direction).sum(-1) / draws.norm(dim=-1)
    assert abs(torch.corrcoef(cosine.T)[0, 1]) < 5 / math.sqrt(20_000)
    assert abs(torch.corrcoef(torch.stack([cosine[:, 0], log_radius[:, 0]]))[0, 1]) < 0.04


def test_the_divergence_is_zero_and_flat_where_posterior_and_prior_agree():
    q = rdp(requires_grad=True)
    parts = [q.direction.mean_direction, q.direction.concentration, q.factors.loc, q.factors.scale]
    p = RDP(
        VonMisesFisher(parts[0].detach(), parts[1].detach()),
        LogNormal(parts[2].detach(), parts[3].detach()),
    )
    kl = q.kl(p)
    assert kl.item() == 0
    for gradient in torch.autograd.grad(kl, parts):
        assert not gradient.any()


@pytest.mark.parametrize("part", ["mu", "kappa", "loc", "scale"])
def test_the_divergence_rises_with_every_move_away(part):
    p = rdp()
    neutral = {"mu": 0.0, "kappa": 1.0, "loc": 0.0, "scale": 1.0}[part]
    for sign in (1, -1):
        kl = [moved(p, **{part: neutral + sign * d}).kl(p).item() for d in (1e-3, 1e-2, 0.3)]
        assert 0 < kl[0] < kl[1] < kl[2]


@pytest.mark.parametrize("radius", [LogNormal, Weibull])
@pytest.mark.parametrize("length", [0.0, 0.5, 0.9])
def test_the_divergence_is_the_mean_log_ratio_of_all_that_is_drawn(length, radius):
    """Directions and all factors, each by its own density, against both kinds of prior."""
    n, q = 20_000, rdp(radius=radius)
    carried = rdp(kappa=60.0, seed=4, radius=radius)
    first = HalfCauchyPrior(scale=0.2, length=length)
    generator = torch.Generator().manual_seed(5)
    x = q.direction.sample(n, generator)
    noise = radius.noise((n, *q.factors.loc.shape), generator, torch.float64, "cpu")
    factors = (q.factors.loc + q.factors.scale * noise).exp()
    log_q = q.direction.log_prob(x).sum(-1) + q.factors.log_prob(factors).sum((-1, -2))

    log_carried = carried.direction.log_prob(x).sum(-1)
    log_carried += carried.factors.log_prob(factors).sum((-1, -2))
    held = VonMisesFisher(q.direction.mean_direction, t(first.concentration(12)))
    groups_a, layer_a, b = factors[:, 0, :-1], factors[:, 0, -1], factors[:, 1]
    log_first = held.log_prob(x).sum(-1)
    log_first += torch.from_numpy(stats.gamma(0.5).logpdf(groups_a.numpy())).sum(-1)
    log_first += torch.from_numpy(stats.gamma(0.5, scale=0.04).logpdf(layer_a.numpy()))
    log_first += torch.from_numpy(stats.invgamma(0.5).logpdf(b.numpy())).sum(-1)

    for prior, log_p in ((carried, log_carried), (first, log_first)):
        ratio = log_q - log_p
        assert abs(ratio.mean() - q.kl(prior)) < 5 * ratio.std() / math.sqrt(n)


def test_the_divergence_of_a_layer_is_the_sum_over_groups_and_factors():
    q, p = rdp(), rdp(kappa=30.0, seed=9)
    alone = q.direction.kl(p.direction).sum() + q.factors.kl(p.factors).sum()
    torch.testing.assert_close(q.kl(p), alone)


def test_the_factors_of_the_first_prior_are_gamma_and_inverse_gamma():
    """The scale is 1 for groups, and gamma^2 and 1 for the layer (below Eq. 8)."""
    q = rdp(groups=2)
    gamma = 0.2
    local, inverse = stats.gamma(0.5).logpdf, stats.invgamma(0.5).logpdf
    layer = stats.gamma(0.5, scale=gamma**2).logpdf
    expected = q.direction.kl(VonMisesFisher(q.direction.mean_direction, t(0.0))).sum().item()
    for row, log_priors in enumerate([[local, local, layer], [inverse] * 3]):
        for column, log_prior in enumerate(log_priors):
            m, s = q.factors.loc[row, column].item(), q.factors.scale[row, column].item()

            def log_ratio(z, m=m, s=s, log_prior=log_prior):
                log_q = stats.norm.logpdf(z) - math.log(s) - (m + s * z)
                return stats.norm.pdf(z) * (log_q - log_prior(math.exp(m + s * z)))

            expected += quad(log_ratio, -10, 10)[0]
    assert q.kl(HalfCauchyPrior(scale=gamma)).item() == pytest.approx(expected, rel=1e-7)


def test_the_first_prior_sees_no_direction():
    q = rdp()
    prior = HalfCauchyPrior(scale=0.5, length=0.8)
    torch.testing.assert_close(moved(q, mu=3.0).kl(prior), q.kl(prior))


def of_directions(q, prior):
    """What the divergence has beyond that of the factors, by the entropy for uniform directions."""
    D, groups = q.direction.group_size, len(q.direction.mean_direction)
    log_area = math.log(2) + D / 2 * math.log(math.pi) - math.lgamma(D / 2)
    flat = groups * (log_area - q.direction.entropy())
    return (q.kl(prior) - (q.kl(HalfCauchyPrior(prior.scale)) - flat)).item()


def test_a_prior_of_length_0_has_uniform_directions():
    """... and its divergence is a loss of entropy, the most that any prior of a direction costs."""
    q = rdp()
    uniform = VonMisesFisher(q.direction.mean_direction, t(0.0))
    expected = q.direction.kl(uniform).sum().item()
    assert of_directions(q, HalfCauchyPrior(0.5, 0.0)) == pytest.approx(expected, rel=1e-9)
    lengths = [0.0, 0.3, 0.6, q.direction.mean_length().item()]
    costs = [of_directions(q, HalfCauchyPrior(0.5, length)) for length in lengths]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("length", [0.2, 0.9])
@pytest.mark.parametrize("D", [2, 12, 51])
def test_directions_cost_nothing_at_the_priors_own_concentration_and_something_elsewhere(D, length):
    prior = HalfCauchyPrior(scale=0.5, length=length)
    at = [of_directions(rdp(D=D, kappa=f * prior.concentration(D)), prior) for f in (0.8, 1, 1.25)]
    assert at[1] == pytest.approx(0, abs=1e-7)
    assert min(at[0], at[2]) > 1e-4
    kappa = t(prior.concentration(D)).requires_grad_()
    q = rdp(D=D)
    q = RDP(VonMisesFisher(q.direction.mean_direction, kappa), q.factors)
    assert torch.autograd.grad(q.kl(prior), kappa)[0].item() == pytest.approx(0, abs=1e-9)


def test_the_priors_length_means_the_same_spread_for_groups_of_any_size():
    prior = HalfCauchyPrior(length=0.9)
    for D in (2, 9, 51, 785):
        mu = normalize(torch.ones(1, D, dtype=torch.float64), dim=1)
        of_prior = VonMisesFisher(mu, t(prior.concentration(D)))
        assert of_prior.mean().norm().item() == pytest.approx(0.9, rel=1e-6)


def test_a_smaller_prior_scale_wants_smaller_radii():
    q = rdp()

    def slope(scale):
        shift = t(0.0).requires_grad_()
        q_shifted = RDP(q.direction, LogNormal(q.factors.loc + shift, q.factors.scale))
        return torch.autograd.grad(q_shifted.kl(HalfCauchyPrior(scale)), shift)[0].item()

    assert slope(0.01) > slope(0.1) > slope(1.0)


def test_factors_that_do_not_fit_the_groups_are_refused():
    direction = rdp(groups=4).direction
    with pytest.raises(UserError, match=r"must have the shape \[2, 5\], got \[2, 4\]"):
        RDP(direction, LogNormal(torch.zeros(2, 4), torch.ones(2, 4)))


def test_stacked_layers_have_the_draws_means_and_divergences_of_single_ones():
    single = [rdp(kappa=90.0), rdp(kappa=4.0, seed=1)]
    stacked = RDP(
        VonMisesFisher(
            torch.stack([q.direction.mean_direction for q in single]),
            torch.stack([q.direction.concentration for q in single])[:, None],
        ),
        LogNormal(
            torch.stack([q.factors.loc for q in single]),
            torch.stack([q.factors.scale for q in single]),
        ),
    )
    draws = stacked.sample(5, [torch.Generator().manual_seed(k) for k in (3, 4)])
    for k, q in enumerate(single):
        torch.testing.assert_close(draws[:, k], q.sample(5, torch.Generator().manual_seed(3 + k)))
        torch.testing.assert_close(stacked.mean()[k], q.mean())
        torch.testing.assert_close(stacked.factors.radius.loc[k], q.factors.radius.loc)
        torch.testing.assert_close(stacked.factors.radius.scale[k], q.factors.radius.scale)
        for prior in (HalfCauchyPrior(0.3, 0.7), moved(q, mu=0.1, kappa=2.0, loc=0.3)):
            torch.testing.assert_close(stacked.kl(prior)[k], q.kl(prior))
