"""The low-rank family against dense normal distributions of the same precision."""

import pytest
import torch
from dense_normals import dense
from torch.distributions import LowRankMultivariateNormal, kl_divergence

from vcl_radial.errors import UserError
from vcl_radial.posteriors import Gaussian, LowRank, Radial, RadialLowRank

SIZES = pytest.mark.parametrize(("D", "R"), [(5, 2), (1, 1), (4, 4), (3, 5), (4, 0)], ids=str)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def made(D, R, seed=0, groups=2, dtype=torch.float64):
    generator = seeded(seed)
    mean = torch.randn(groups, D, generator=generator, dtype=dtype)
    scale = (0.5 * torch.randn(groups, D, generator=generator, dtype=dtype)).exp()
    return LowRank(mean, scale, torch.randn(groups, R, D, generator=generator, dtype=dtype))


def tensors(q):
    return [t.requires_grad_() for t in (q.mean, q.scale, q.factor)]


@SIZES
def test_density_entropy_and_deviations_are_those_of_the_dense_normal(D, R):
    q, w = made(D, R), made(D, R, seed=1).mean
    torch.testing.assert_close(q.log_prob(w), dense(q).log_prob(w))
    torch.testing.assert_close(q.entropy(), dense(q).entropy())
    torch.testing.assert_close(q.deviation(), dense(q).stddev)


@pytest.mark.parametrize("prior_rank", [0, 2, 6])
@SIZES
def test_the_divergence_and_its_gradients_are_those_of_dense_normals(D, R, prior_rank):
    q, p = made(D, R), made(D, prior_rank, seed=1)
    parts = [part for part in tensors(q) if part.numel()]
    ours, theirs = q.kl(p), kl_divergence(dense(q), dense(p))
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours.sum(), parts), torch.autograd.grad(theirs.sum(), parts)
    )


def test_the_divergence_is_that_of_low_rank_covariances_too():
    """PyTorch's family has a covariance of low rank plus diagonal: one direction can be both."""
    q, p = made(2, 1), made(2, 1, seed=1)

    def theirs(q):
        # C = I - U' M^-1 U is of rank one less than I, which two weights write as plus a direction.
        (row,) = q.factor.unbind(-2)
        length = row.square().sum(-1, keepdim=True)
        across = torch.stack([-row[:, 1], row[:, 0]], -1) / (1 + length).sqrt()
        diagonal = q.scale.square() / (1 + length)
        return LowRankMultivariateNormal(q.mean, (q.scale * across).unsqueeze(-1), diagonal)

    torch.testing.assert_close(q.kl(p), kl_divergence(theirs(q), theirs(p)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@SIZES
def test_to_itself_the_divergence_and_its_gradients_are_exactly_zero(D, R, dtype):
    q = made(D, R, dtype=dtype)
    parts = tensors(q)
    kl = q.kl(q.to_prior())
    gradients = torch.autograd.grad(kl.sum(), parts, materialize_grads=True)
    assert not kl.any()
    assert not any(gradient.any() for gradient in gradients)


def test_the_divergence_is_minimal_at_itself_and_does_not_change_when_rows_are_turned():
    q = made(6, 3)
    p = q.to_prior()
    turn, _ = torch.linalg.qr(torch.randn(3, 3, generator=seeded(2), dtype=torch.float64))
    turned = LowRank(q.mean, q.scale, turn @ q.factor)
    torch.testing.assert_close(turned.kl(p), torch.zeros(2).double(), rtol=0, atol=1e-12)
    for size in (1e-3, 1e-1):
        step = [size * torch.randn_like(t) for t in (q.mean, q.scale, q.factor)]
        moved = LowRank(q.mean + step[0], q.scale * step[1].exp(), q.factor + step[2])
        assert (moved.kl(p) > 1e-2 * size**2).all()


def test_the_divergence_is_what_draws_give():
    q, p = made(6, 2), made(6, 3, seed=1)
    draws = q.sample(100_000, seeded(3))
    ratio = q.log_prob(draws) - p.log_prob(draws)
    error = ratio.std(0) / 100_000**0.5
    assert ((q.kl(p) - ratio.mean(0)).abs() < 4 * error).all()


@SIZES
def test_draws_have_the_dense_mean_and_covariance(D, R):
    q, n = made(D, R, groups=1), 200_000
    draws = q.sample(n, seeded(1)).squeeze(1)
    covariance = dense(q).covariance_matrix.squeeze(0)
    variances = covariance.diagonal()
    # The variance of a product of two normals is v_i v_j + c_ij^2.
    error = ((variances[:, None] * variances + covariance.square()) / n).sqrt()
    assert ((torch.atleast_2d(draws.mT.cov()) - covariance).abs() < 5 * error).all()
    assert ((draws.mean(0) - q.mean.squeeze(0)).abs() < 5 * (variances / n).sqrt()).all()


def test_the_root_of_a_draw_is_exact_and_its_gradient_that_of_finite_differences():
    q = made(4, 2)
    units = torch.eye(4, dtype=torch.float64).unsqueeze(1).expand(4, 2, 4)
    root = q._correlated(units).movedim(0, -1)
    precision = torch.eye(4) + q.factor.mT @ q.factor
    torch.testing.assert_close(root @ root.mT, torch.linalg.inv(precision))
    for factor in (q.factor, torch.zeros_like(q.factor)):  # where eigenvalues would be equal

        def draw(mean, scale, factor):
            return LowRank(mean, scale, factor).sample(3, seeded(5))

        parts = [t.clone().requires_grad_() for t in (q.mean, q.scale, factor)]
        assert torch.autograd.gradcheck(draw, parts)


@pytest.mark.parametrize("rank", [0, 3])
def test_without_a_factor_it_is_the_gaussian_bit_by_bit(rank):
    free, prior = made(7, rank, dtype=torch.float32), made(7, 0, seed=1, dtype=torch.float32)
    q = LowRank(free.mean, free.scale, torch.zeros_like(free.factor))
    plain, other = Gaussian(q.mean, q.scale), Gaussian(prior.mean, prior.scale)
    assert torch.equal(q.sample(3, seeded()), plain.sample(3, seeded()))
    assert torch.equal(q.noise(3, seeded()), plain.noise(3, seeded()))
    assert torch.equal(q.entropy(), plain.entropy())
    torch.testing.assert_close(q.log_prob(other.mean), plain.log_prob(other.mean))
    assert torch.equal(q.kl(other), plain.kl(other))
    assert torch.equal(q.kl(prior), plain.kl(other))
    assert torch.equal(q.deviation(), plain.scale)


@pytest.mark.parametrize(("grown", "rtol"), [(1e-3, 1e-5), (1.0, 1e-5), (30.0, 1e-3), (1e3, 0.15)])
def test_single_precision_keeps_the_divergence_where_the_precision_grows(grown, rtol):
    """Up to fifty million times."""
    q, p = made(50, 4, dtype=torch.float32), made(50, 4, seed=1, dtype=torch.float32)
    ours = LowRank(q.mean, q.scale, grown * q.factor)
    exact = LowRank(*(part.double() for part in (ours.mean, ours.scale, ours.factor)))
    wide = LowRank(*(part.double() for part in (p.mean, p.scale, p.factor)))
    slopes = []
    for one, prior in ((ours, p), (exact, wide)):
        parts = tensors(one)
        kl = one.kl(prior)
        slopes.append([kl, *torch.autograd.grad(kl.sum(), parts)])
    for single, double in zip(*slopes, strict=True):
        largest = double.abs().max().item()
        torch.testing.assert_close(single.double(), double, rtol=0, atol=rtol * largest)


@pytest.mark.parametrize("family", [LowRank, RadialLowRank])
def test_a_group_that_has_diverged_is_nan_and_leaves_the_others_as_they_are(family):
    """A loss that is no number is then seen where losses are looked at."""
    whole = made(6, 2)
    factor = whole.factor.clone()
    factor[0, 0, 0] = torch.nan
    broken, good = (family(whole.mean, whole.scale, f) for f in (factor, whole.factor))
    drawn, expected = (q.sample(3, generator=seeded()) for q in (broken, good))
    assert drawn[:, 0].isnan().all()
    assert torch.equal(drawn[:, 1], expected[:, 1])
    assert broken.entropy().isnan().tolist() == [True, False]


def test_to_a_prior_of_another_kind_it_is_estimated():
    q, p = made(3, 2), Radial(torch.zeros(3).double(), torch.ones(3).double())
    assert q.closed_kl(p) is None
    assert torch.equal(q.kl(p, 5, seeded(1)), q.kl_monte_carlo(p, 5, seeded(1)))


def test_a_network_in_bfloat16_draws_in_the_precision_of_the_posterior():
    q, p = made(40, 3, dtype=torch.float32), made(40, 3, seed=1, dtype=torch.float32)
    draws, kl = q.sample(2, seeded()), q.kl(p)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(q.sample(2, seeded()), draws)
        assert torch.equal(q.kl(p), kl)


def test_draws_without_gradient_find_the_root_once_and_those_with_one_anew():
    q = made(4, 2)
    with torch.no_grad():
        assert q._root() is q._root()
    parts = tensors(q)
    for _ in range(2):
        torch.autograd.grad(q.sample(1).sum(), parts)


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (torch.zeros(2, 3), "dtype"),
        (torch.zeros(2, 4).double(), r"\[3\], with the rank before its last axis, got \[2, 4\]"),
        (torch.zeros(3).double(), "shape"),
        (torch.zeros(1, 2, 3).double(), "shape"),
    ],
)
def test_a_factor_that_does_not_fit_is_named(factor, message):
    with pytest.raises(UserError, match=message):
        LowRank(torch.zeros(3).double(), torch.ones(3).double(), factor)
