"""What holds for every family: shapes, generators, estimates, errors."""

import sys
import textwrap

import pytest
import torch
from failing import fails

from vcl_radial import posteriors
from vcl_radial.errors import UserError
from vcl_radial.methods.serves import check_posterior
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn.convert import layer_settings
from vcl_radial.posteriors import Gaussian, Radial
from vcl_radial.posteriors import families as families_by_name
from vcl_radial.posteriors.families import all_families
from vcl_radial.tracks.continual import lane_runs
from vcl_radial.tracks.continual.settings import Recipe
from vcl_radial.tracks.networks import posterior_of

families = pytest.mark.parametrize(
    "family", families_by_name().values(), ids=list(families_by_name())
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def random_posterior(family, *shape, dtype=torch.float64, seed=0):
    generator = seeded(seed)
    mean = torch.randn(shape, generator=generator, dtype=dtype)
    scale = (0.5 * torch.randn(shape, generator=generator, dtype=dtype)).exp()
    return family(mean, scale)


@families
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shapes_and_dtypes_follow_the_groups(family, dtype):
    q = random_posterior(family, 3, 4, 5, dtype=dtype)
    w = q.sample(2, seeded())
    assert w.shape == (2, 3, 4, 5)
    assert q.log_prob(w).shape == (2, 3, 4)
    results = [w, q.log_prob(w), q.entropy(), q.kl(q), q.kl(Gaussian(q.mean, q.scale))]
    assert [r.shape for r in results[2:]] == [(3, 4)] * 3
    assert all(r.dtype == dtype for r in results)


@families
def test_every_group_is_treated_by_itself(family):
    q, p = random_posterior(family, 3, 5), random_posterior(family, 3, 5, seed=1)
    w = q.sample(2, seeded())
    for i in range(3):
        one, prior = family(q.mean[i], q.scale[i]), family(p.mean[i], p.scale[i])
        if (together := q.closed_kl(p)) is not None:  # an estimate has draws of its own
            torch.testing.assert_close(together[i], one.closed_kl(prior))
        torch.testing.assert_close(q.entropy()[i], one.entropy())
        torch.testing.assert_close(q.log_prob(w)[:, i], one.log_prob(w[:, i]))


@families
def test_one_prior_broadcasts_against_a_batch_of_groups(family):
    q, p = random_posterior(family, 3, 5), random_posterior(family, 5, seed=1)
    repeated = family(p.mean.expand(3, 5), p.scale.expand(3, 5))
    torch.testing.assert_close(q.kl(p, 1, seeded()), q.kl(repeated, 1, seeded()))


@families
def test_a_scale_broadcasts_against_the_mean(family):
    mean = torch.randn(3, 5, generator=seeded())
    short, full = family(mean, torch.tensor([0.5])), family(mean, torch.full((3, 5), 0.5))
    torch.testing.assert_close(short.entropy(), full.entropy())
    torch.testing.assert_close(short.log_prob(mean + 1), full.log_prob(mean + 1))


@families
def test_the_same_generator_seed_gives_the_same_samples(family):
    q = random_posterior(family, 2, 7)
    assert torch.equal(q.sample(3, seeded(5)), q.sample(3, seeded(5)))
    assert not torch.equal(q.sample(3, seeded(5)), q.sample(3, seeded(6)))


@families
def test_the_global_generator_is_untouched_when_one_is_given(family):
    q = random_posterior(family, 2, 7)
    before = torch.get_rng_state()
    q.sample(3, seeded())
    q.kl_monte_carlo(q, 2, seeded())
    assert torch.equal(torch.get_rng_state(), before)


@families
def test_a_sample_is_the_mean_plus_the_scaled_noise_and_carries_gradients(family):
    q = random_posterior(family, 2, 7)
    q.mean.requires_grad_()
    q.scale.requires_grad_()
    noise = q.noise(3, seeded())
    w = q.sample(3, seeded())
    torch.testing.assert_close(w, q.mean + q.scale * noise)
    grad_mean, grad_scale = torch.autograd.grad(w.sum(), [q.mean, q.scale])
    torch.testing.assert_close(grad_mean, torch.full_like(q.mean, 3))
    torch.testing.assert_close(grad_scale, noise.sum(0))


@families
def test_the_noise_of_one_weight_has_the_scale_asked_for(family):
    D, tau = 6, 0.3
    scale = family.scale_for_weight_noise(tau, D)
    q = family(torch.zeros(D), torch.full((D,), scale))
    spread = q.sample(100_000, seeded()).square().mean().sqrt()
    # One radius for all six weights: 1e5 independent squares, relative error sqrt(2 / 1e5) / 2.
    assert spread.item() == pytest.approx(tau, rel=4 * 0.0022)
    in_tensor = family.scale_for_weight_noise(torch.tensor(tau), D)
    assert in_tensor.item() == pytest.approx(scale)


@families
def test_entropy_is_the_expected_negative_log_density(family):
    q = random_posterior(family, 4)
    surprise = -q.log_prob(q.sample(200_000, seeded(1)))
    error = surprise.std() / 200_000**0.5
    assert abs(surprise.mean() - q.entropy()) < 4 * error


@families
def test_the_divergence_to_a_gaussian_is_what_simulation_gives(family):
    q, p = random_posterior(family, 4), random_posterior(Gaussian, 4, seed=1)
    w = q.sample(200_000, seeded(2))
    ratio = q.log_prob(w) - p.log_prob(w)
    assert abs(ratio.mean() - q.kl(p)) < 4 * ratio.std() / 200_000**0.5


@families
def test_a_family_with_lanes_has_the_gradients_of_its_kl_to_a_gaussian_and_to_itself(family):
    gradients = [family.kl_gradients(prior, []) for prior in (Gaussian, family)]
    assert not family.has_lanes or gradients == [[], []]


def test_a_module_with_a_class_that_states_its_name_is_all_that_a_family_needs(
    tmp_path, monkeypatch
):
    module = """
        from vcl_radial.posteriors.gaussian import Gaussian

        class Spare(Gaussian):
            name = "spare"
            groupings = ("unit",)
            options = frozenset({"rank"})

        class WithoutName(Spare):
            pass
    """
    (tmp_path / "spare.py").write_text(textwrap.dedent(module))
    before = set(all_families())
    monkeypatch.setattr(posteriors, "__path__", [*posteriors.__path__, str(tmp_path)])
    all_families.cache_clear()
    try:
        assert set(all_families()) - before == {"spare"}
        recipe = Recipe(posterior="spare", grouping="unit", rank=3)
        assert layer_settings("spare").grouping == "unit"
        check_posterior("vcl", VCL.posteriors, recipe.posterior)
        assert posterior_of(recipe).kind == layer_settings("spare").kind
        assert lane_runs.shape(recipe) is not None
        with fails("grouping", "layer", "posterior = 'spare'", "choose from"):
            Recipe(posterior="spare").check_posterior()
    finally:
        all_families.cache_clear()
        sys.modules.pop("vcl_radial.posteriors.spare", None)


def test_without_a_closed_form_kl_is_the_monte_carlo_estimate():
    q, p = random_posterior(Gaussian, 2, 4), random_posterior(Radial, 2, 4, seed=1)
    estimate = q.kl(p, samples=7, generator=seeded(3))
    assert torch.equal(estimate, q.kl_monte_carlo(p, 7, seeded(3)))


def test_the_monte_carlo_estimate_converges_to_the_closed_form():
    q, p = random_posterior(Gaussian, 2, 4), random_posterior(Gaussian, 2, 4, seed=1)
    estimate = q.kl_monte_carlo(p, 400_000, seeded(3))
    torch.testing.assert_close(estimate, q.kl(p), rtol=0, atol=0.05)


@families
def test_the_prior_made_from_a_posterior_is_equal_detached_and_its_own(family):
    q = random_posterior(family, 2, 3)
    q.mean.requires_grad_()
    p = q.to_prior()
    assert type(p) is family
    assert not p.mean.requires_grad
    assert torch.equal(p.mean, q.mean)
    assert torch.equal(p.scale, q.scale)
    with torch.no_grad():
        q.mean.add_(1)
        q.scale.add_(1)
    assert not torch.equal(p.mean, q.mean)
    assert not torch.equal(p.scale, q.scale)


@pytest.mark.parametrize(
    ("mean", "scale", "message"),
    [
        (torch.zeros(3), torch.ones(3, dtype=torch.float64), "dtype"),
        (torch.zeros(3, dtype=torch.int64), torch.ones(3, dtype=torch.int64), "dtype"),
        (torch.zeros(3), torch.ones(3, device="meta"), "device"),
        (torch.zeros(3), torch.ones(4), "do not broadcast"),
        (torch.zeros(()), torch.ones(()), "last axis"),
        (torch.zeros(2, 0), torch.ones(2, 0), "last axis"),
    ],
)
@families
def test_tensors_that_do_not_fit_are_named(family, mean, scale, message):
    with pytest.raises(UserError, match=message):
        family(mean, scale)


@families
def test_groups_of_different_size_are_refused(family):
    q, p = random_posterior(family, 3), random_posterior(family, 1)
    with pytest.raises(UserError, match="one size"):
        q.kl(p)
    with pytest.raises(UserError, match="3 weights"):
        q.log_prob(torch.zeros(1))
