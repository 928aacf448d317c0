"""The radial family of low rank: what it is without a factor, at one weight, and by integration."""

import math

import pytest
import torch
from dense_normals import precision_of

from vcl_radial.posteriors import Gaussian, LowRank, Radial, RadialLowRank, radial_kl
from vcl_radial.posteriors.radial_low_rank import radial_low_rank_kl

SIZES = pytest.mark.parametrize(("D", "R"), [(5, 2), (1, 1), (4, 4), (3, 5), (4, 0)], ids=str)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def made(D, R, seed=0, groups=2, dtype=torch.float64, family=RadialLowRank):
    generator = seeded(seed)
    mean = torch.randn(groups, D, generator=generator, dtype=dtype)
    scale = (0.5 * torch.randn(groups, D, generator=generator, dtype=dtype)).exp()
    return family(mean, scale, torch.randn(groups, R, D, generator=generator, dtype=dtype))


def tensors(q):
    return [t.requires_grad_() for t in (q.mean, q.scale, q.factor)]


def estimates(q, p, n, seed=3):
    """Mean and standard error of n estimates of one draw, as of n draws for each group."""
    u = torch.randn(n, *q.mean.shape, generator=seeded(seed), dtype=q.mean.dtype)
    u = u / u.norm(dim=-1, keepdim=True)
    r = torch.randn(n, *q.mean.shape[:-1], generator=seeded(seed + 1), dtype=q.mean.dtype)
    a, s = q._in_units_of(p)
    y = q._correlated(u)
    values = torch.stack(
        [radial_low_rank_kl(a, s, q.factor, p.factor, y[i : i + 1], r[i : i + 1]) for i in range(n)]
    )
    return values.mean(0), values.std(0) / n**0.5


def test_the_density_integrates_to_one_in_the_plane():
    q = made(2, 1)
    angles, radii = torch.meshgrid(
        (torch.arange(400, dtype=torch.float64) + 0.5) * (2 * math.pi / 400),
        (torch.arange(4000, dtype=torch.float64) + 0.5) * (12 / 4000),
        indexing="ij",
    )
    z = torch.stack([angles.cos(), angles.sin()], -1) * radii.unsqueeze(-1)
    w = q.mean + q.scale * z.unsqueeze(-2)
    area = radii.unsqueeze(-1) * (2 * math.pi / 400) * (12 / 4000) * q.scale.prod(-1)
    total = (q.log_prob(w).exp() * area).sum((0, 1))
    torch.testing.assert_close(total, torch.ones(2).double(), rtol=1e-3, atol=0)


@SIZES
def test_the_squared_radius_of_a_draw_is_that_of_a_normal_number_and_the_entropy_follows(D, R):
    q, n = made(D, R), 100_000
    draws = q.sample(n, seeded(1))
    away = draws - q.mean
    squares = torch.einsum("ngd,gde,nge->ng", away, precision_of(q), away)
    moments = squares.mean(0), squares.square().mean(0)  # of r^2: 1 and 3
    assert ((moments[0] - 1).abs() < 5 * (2 / n) ** 0.5).all()
    assert ((moments[1] - 3).abs() < 5 * (96 / n) ** 0.5).all()
    of_draws = -q.log_prob(draws)
    assert ((of_draws.mean(0) - q.entropy()).abs() < 5 * of_draws.std(0) / n**0.5 + 1e-9).all()
    covariance = torch.linalg.inv(precision_of(q)) / D
    torch.testing.assert_close(q.deviation(), covariance.diagonal(dim1=-2, dim2=-1).sqrt())
    error = away.square().std(0) / n**0.5
    assert ((away.square().mean(0) - q.deviation().square()).abs() < 5 * error).all()


@pytest.mark.parametrize("prior_rank", [0, 1])
@pytest.mark.parametrize("rank", [0, 1])
def test_of_one_weight_it_is_the_gaussian(rank, prior_rank):
    q, p = made(1, rank), made(1, prior_rank, seed=1)
    of, to = (LowRank(x.mean, x.scale, x.factor) for x in (q, p))
    torch.testing.assert_close(q.log_prob(p.mean), of.log_prob(p.mean))
    torch.testing.assert_close(q.entropy(), of.entropy())
    torch.testing.assert_close(q.kl(p), of.kl(to))
    torch.testing.assert_close(q.kl(to), of.kl(to))


@pytest.mark.parametrize("rank", [0, 3])
def test_without_a_factor_it_is_the_radial_bit_by_bit_and_its_divergence_to_second_order(rank):
    free, prior = made(40, rank, dtype=torch.float32), made(40, 0, seed=1, dtype=torch.float32)
    q = RadialLowRank(free.mean, free.scale, torch.zeros_like(free.factor))
    plain, other = Radial(q.mean, q.scale), Radial(prior.mean, prior.scale)
    assert torch.equal(q.sample(3, seeded()), plain.sample(3, seeded()))
    assert torch.equal(q.noise(3, seeded()), plain.noise(3, seeded()))
    assert torch.equal(q.entropy(), plain.entropy())
    torch.testing.assert_close(q.log_prob(other.mean), plain.log_prob(other.mean))
    torch.testing.assert_close(q.deviation(), plain.scale / 40**0.5)
    first = Gaussian(other.mean, other.scale)
    torch.testing.assert_close(q.kl(first), plain.kl(first))
    for p in (prior, other):
        torch.testing.assert_close(q.kl(p, 4000, seeded(1)), plain.kl(other), rtol=0, atol=0.08)


@SIZES
def test_to_a_normal_prior_the_divergence_is_what_draws_give(D, R):
    q = made(D, R)
    for p in (made(D, 3, seed=1, family=LowRank), Gaussian(q.mean + 0.3, 2 * q.scale)):
        draws = q.sample(100_000, seeded(3))
        ratio = q.log_prob(draws) - p.log_prob(draws)
        error = ratio.std(0) / 100_000**0.5
        assert ((q.closed_kl(p) - ratio.mean(0)).abs() < 5 * error + 1e-9).all()


@pytest.mark.parametrize(("D", "R", "prior_rank"), [(5, 2, 3), (3, 0, 2), (6, 4, 0)], ids=str)
def test_to_a_radial_prior_the_estimate_is_what_the_densities_give(D, R, prior_rank):
    q, p = made(D, R), made(D, prior_rank, seed=1)
    assert q.closed_kl(p) is None
    draws = q.sample(400_000, seeded(5))
    ratio = q.log_prob(draws) - p.log_prob(draws)
    ours = q.kl(p, 100_000, seeded(4))
    error = ratio.std(0) / 400_000**0.5
    assert ((ours - ratio.mean(0)).abs() < 5 * error).all()


def test_to_a_radial_prior_of_two_weights_value_and_gradient_are_those_of_integration():
    """Over the angle and the radius, with a factor in both and a shift."""
    q, p = made(2, 1, groups=1), made(2, 1, seed=1, groups=1)
    n = 300
    angle = (torch.arange(n, dtype=torch.float64) + 0.5) * (2 * math.pi / n)
    # Nodes of r that lie denser where r is small, with the weights of a half-normal density.
    t = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    r = 9 * t**2
    weight = 18 * t / n * (2 / math.pi) ** 0.5 * (-r.square() / 2).exp()
    u = torch.stack([angle.cos(), angle.sin()], -1)[:, None]
    parts = tensors(q)
    w = q.mean + q.scale * (q._correlated(u).unsqueeze(1) * r[:, None, None])
    exact = -q.entropy() - (p.log_prob(w) * weight[:, None]).sum(1).mean(0)
    exact_slopes = torch.autograd.grad(exact.sum(), parts)

    radii = torch.special.ndtri(torch.linspace(0.5 + 1e-4, 1 - 1e-4, n).double())
    a, s = q._in_units_of(p)
    y = q._correlated(u).repeat_interleave(n, 0)
    ours = radial_low_rank_kl(a, s, q.factor, p.factor, y, radii.repeat(n)[:, None])
    slopes = torch.autograd.grad(ours.sum(), parts)
    torch.testing.assert_close(ours, exact, rtol=0, atol=0.01)
    for slope, other in zip(slopes, exact_slopes, strict=True):
        torch.testing.assert_close(slope, other, rtol=0.03, atol=0.03)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@SIZES
def test_to_itself_every_estimate_is_exactly_zero_and_so_are_its_gradients_to_rounding(D, R, dtype):
    q = made(D, R, dtype=dtype)
    parts = tensors(q)
    kl = q.kl(q.to_prior(), 2)
    gradients = torch.autograd.grad(kl.sum(), parts, materialize_grads=True)
    tolerance = 20 * torch.finfo(dtype).eps
    assert not kl.any()
    assert all((gradient.abs() <= tolerance * D).all() for gradient in gradients)


def test_the_divergence_is_minimal_at_itself_and_does_not_change_when_rows_are_turned():
    q = made(6, 3)
    p = q.to_prior()
    turn, _ = torch.linalg.qr(torch.randn(3, 3, generator=seeded(2), dtype=torch.float64))
    turned = RadialLowRank(q.mean, q.scale, turn @ q.factor)
    torch.testing.assert_close(turned.kl(p), torch.zeros(2).double(), rtol=0, atol=1e-12)
    for size in (1e-2, 1e-1):
        step = [size * torch.randn(t.shape, generator=seeded(4)).double() for t in tensors(q)]
        moved = RadialLowRank(q.mean + step[0], q.scale * step[1].exp(), q.factor + step[2])
        assert (moved.kl(p, 2000, seeded(5)) > 1e-2 * size**2).all()


@pytest.mark.parametrize("k", [0.4, 1.0, 2.5])
def test_with_one_factor_it_is_the_radial_divergence_in_whitened_coordinates(k):
    D = 60
    p = made(D, 4, groups=1)
    shift = torch.randn(1, D, generator=seeded(7), dtype=torch.float64) / 5
    q = RadialLowRank(p.mean + p.scale * shift, k * p.scale, p.factor)
    away = (q.mean - p.mean).squeeze(0)
    length = (away @ precision_of(p).squeeze(0) @ away).sqrt()
    n = torch.zeros(1, D, dtype=torch.float64)
    n[0, 0] = length
    white = radial_kl(n, torch.full_like(n, k))
    torch.testing.assert_close(q.kl(p, 20_000, seeded(1)), white, rtol=0, atol=0.02)
    still = RadialLowRank(p.mean, k * p.scale, p.factor)  # where there is no direction at all
    half_normal = torch.tensor([-math.log(k) + (k**2 - 1) / 2], dtype=torch.float64)
    torch.testing.assert_close(still.kl(p), half_normal)


def test_an_estimate_from_one_draw_has_little_noise_and_the_mean_that_many_draws_have():
    """Some nats, where one draw of (D - 1) log ||x|| has 1.1 D = 1,100."""
    q, p = made(1000, 4), made(1000, 4, seed=1)
    mean, error = estimates(q, p, 400)
    assert (error * 400**0.5 < 5).all()
    many = q.kl(p, 2000, seeded(9))
    assert ((many - mean).abs() < 5 * error * 1.2).all()


@pytest.mark.parametrize("distance", [0.0, 1e-6, 1.0, 100.0])
def test_single_precision_keeps_value_and_gradients(distance):
    base = made(3000, 4, dtype=torch.float32)
    p = made(3000, 4, seed=1, dtype=torch.float32)
    p = RadialLowRank(base.mean - distance * p.mean, p.scale, p.factor)
    noise = torch.randn(2, 2, 3000, generator=seeded(2))
    u, r = noise / noise.norm(dim=-1, keepdim=True), torch.tensor([[0.3, 1.1], [0.8, 2.0]])
    results = []
    for dtype in (torch.float32, torch.float64):
        q, prior = (
            RadialLowRank(*(t.to(dtype) for t in (x.mean, x.scale, x.factor))) for x in (base, p)
        )
        parts = tensors(q)
        y = q._correlated(u.to(dtype))
        kl = radial_low_rank_kl(*q._in_units_of(prior), q.factor, prior.factor, y, r.to(dtype))
        results.append([kl, *torch.autograd.grad(kl.sum(), parts)])
    for single, double in zip(*results, strict=True):
        largest = double.abs().max().item()
        torch.testing.assert_close(single.double(), double, rtol=0, atol=1e-4 * largest)


def test_far_away_the_divergence_leaves_the_quadratic_only_logarithmically():
    """Heavy tails: where a Gaussian's grows by 8,000 nats, that of a radial grows by log 2 D."""
    p = made(100, 2, groups=1)
    kl = []
    for distance in (1e3, 2e3):
        q = RadialLowRank(p.mean + distance * p.scale, p.scale, p.factor)
        away = (q.mean - p.mean).squeeze(0)
        kl.append(q.kl(p, 10, seeded()) - away @ precision_of(p).squeeze(0) @ away / 2)
    torch.testing.assert_close(kl[1] - kl[0], torch.tensor([99 * math.log(2)]).double())


def test_a_prior_from_outside_is_estimated_from_plain_draws():
    class Wide:
        def log_prob(self, w):
            return -w.abs().sum(-1)

    q = made(3, 2)
    draws = q.sample(5, seeded(1))
    expected = -q.entropy() + draws.abs().sum(-1).mean(0)
    torch.testing.assert_close(q.kl(Wide(), 5, seeded(1)), expected)
