import math
from dataclasses import replace

import pytest
import torch
from regression_helpers import (
    final_scores,
    generators,
    lane_data,
    mlp,
    network,
    networks,
    toy,
    trained,
)

from vcl_radial import native
from vcl_radial.likelihoods.noise_precision import NoisePrecision
from vcl_radial.nn import PosteriorSettings, variational_weights
from vcl_radial.nn.carry import consolidate
from vcl_radial.nn.lane_step import LaneSettings, LaneStep
from vcl_radial.nn.lanes import Lanes
from vcl_radial.posteriors.rdp import HalfCauchyPrior
from vcl_radial.tracks.networks import network_of_rows
from vcl_radial.tracks.regression import lanes
from vcl_radial.tracks.regression.lanes import mc_dropout, rdp_vcl, vcl
from vcl_radial.tracks.regression.learner import Job
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.training.lane_data import LaneData
from vcl_radial.training.lanes import expected_squared_error

RECIPES = {
    "mfvi": {"strategy": "vcl", "posterior": "gaussian"},
    "radial": {"strategy": "vcl", "posterior": "radial"},
    "dropout": {"strategy": "mc_dropout", "posterior": "none"},
    "ensemble": {"strategy": "deep_ensemble", "posterior": "none", "options": {"members": 2}},
    "laplace": {"strategy": "laplace_linearised", "posterior": "none"},
    "badam": {"strategy": "badam", "posterior": "none"},
    "linear": {"strategy": "bayes_linear", "posterior": "none"},
    "rdp": {"strategy": "rdp_vcl", "posterior": "rdp", "grouping": "double"},
    "scheduled": {"strategy": "vcl", "posterior": "radial", "kl_schedule": "minibatch"},
    "two layers": {"strategy": "vcl", "posterior": "radial", "hidden": [6, 5]},
    "rdp, two layers": {
        "strategy": "rdp_vcl",
        "posterior": "rdp",
        "grouping": "double",
        "hidden": [6, 5],
    },
}


DEAR = "rdp, two layers"


@pytest.mark.parametrize(
    "name", [*sorted(RECIPES.keys() - {DEAR}), pytest.param(DEAR, marks=pytest.mark.slow)]
)
def test_a_lane_is_the_single_run(name):
    data = toy()
    tiny = {"steps": 70, "batch_size": 16, "eval_samples": 9, "train_samples": 2}
    recipe = Recipe(**RECIPES[name], **tiny)
    other = Recipe(**RECIPES[name], **tiny, learning_rate=1e-2, initial_precision=0.3)
    together = final_scores(data, [0, 1, 1, 3], [recipe, recipe, other, recipe])
    # To the last bit where the compiled library makes the steps; it has none of rdp and schedules.
    exact = not ("rdp" in name or name == "scheduled") and native.unavailable() is None
    for lane, (split, own) in ((1, (1, recipe)), (2, (1, other)), (3, (3, recipe))):
        (alone,) = final_scores(data, [split], [own])
        assert together[lane] == (alone if exact else pytest.approx(alone, rel=2e-3))
    assert together[0] != pytest.approx(together[1], rel=2e-3)


def test_a_run_is_the_same_every_time_whatever_was_drawn_before():
    recipe = Recipe(**RECIPES["rdp"], steps=20, eval_samples=5)
    first = final_scores(toy(), [0, 1], [recipe] * 2)
    torch.manual_seed(9)
    assert final_scores(toy(), [0, 1], [recipe] * 2) == first


def test_validation_scores_do_not_depend_on_the_test_rows():
    data, recipe = (
        toy(),
        Recipe(strategy="vcl", posterior="gaussian", steps=40, batch_size=16, eval_samples=5),
    )
    y, x = data.y.clone(), data.x.clone()
    y[data.splits[1].test], x[data.splits[1].test] = 1e6, -1e6
    poisoned = replace(data, x=x, y=y)
    one, other = (final_scores(d, [1], [recipe], validation=0.2) for d in (data, poisoned))
    assert one == other
    assert final_scores(data, [1], [recipe]) != final_scores(poisoned, [1], [recipe])


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_the_scale_of_the_divergence_depends_on_the_points_and_not_on_the_batch(family):
    """Where the data are silent, what is left of Adam's moment is the gradient of KL / N."""

    def moment(batch, samples, points, weight=1.0):
        lanes = network(family)
        settings = [LaneSettings(1e-3, 1e-3, weight / points)] * 3
        step = LaneStep(
            lanes,
            settings,
            generators(3),
            *lane_data().table,
            samples=samples,
            loss=lambda outputs, y: 0 * outputs.sum((1, 2)),
        )
        step(torch.zeros(3, batch, dtype=torch.long))
        return torch.cat([first.flatten() for first, _ in step.adam.moments])

    one = moment(2, 1, 20)
    torch.testing.assert_close(moment(16, 3, 20), one)
    torch.testing.assert_close(moment(2, 1, 200), one / 10)
    torch.testing.assert_close(moment(2, 1, 20, weight=3.0), 3 * one)
    assert one.abs().max() > 0


def orthogonal(n=40, d=4, seed=0):
    """A design whose columns, that of the intercept included, are orthogonal."""
    torch.manual_seed(seed)
    columns = torch.linalg.qr(torch.cat([torch.ones(n, 1), torch.randn(n, d)], 1)).Q
    x = columns[:, 1:] * math.sqrt(n) * torch.linspace(0.5, 1.5, d)
    return x, x @ torch.randn(d) + 0.3 + 0.4 * torch.randn(n)


def linear_models(d, noise, prior_scales):
    """Networks without a hidden layer."""
    settings = PosteriorSettings("gaussian", initial_noise=noise)
    return [
        mlp(lane, d, (), posterior=replace(settings, prior_scale=scale))
        for lane, scale in enumerate(prior_scales)
    ]


def test_training_finds_the_exact_posterior_where_mean_field_is_exact():
    """A linear model, a known noise and an orthogonal design: means and scales in closed form."""
    designs = [orthogonal(seed=0), orthogonal(seed=1)]
    data, precision = LaneData.of(designs), 6.0
    models, certain = linear_models(4, 0.05, (1.0, 0.4)), (1e9, 1e9 / precision, precision)
    trainer = trained(models, data, [0.03] * 2, 1500, 40, samples=16, noise=certain)
    (q,) = trainer.step.lanes.blocks
    for lane, ((x, y), prior_scale) in enumerate(zip(designs, (1.0, 0.4), strict=True)):
        with_one = torch.cat([x, torch.ones(len(x), 1)], 1)
        exact = precision * with_one.T @ with_one + torch.eye(5) / prior_scale**2
        mean = torch.linalg.solve(exact, precision * with_one.T @ y)
        scale = exact.diagonal().rsqrt()
        assert ((q.mean[lane, 0] - mean) / scale).abs().max() < 0.1
        torch.testing.assert_close(q.scale[lane, 0], scale, rtol=0.08, atol=0)


def test_training_finds_the_noise_of_a_linear_model():
    torch.manual_seed(0)
    x = torch.randn(2, 400, 3)
    spread = torch.tensor([[0.1], [0.5]])
    y = x @ torch.tensor([1.0, -1.0, 0.5]) + spread * torch.randn(2, 400)
    data = LaneData(x, y, torch.tensor([400, 400]))
    trainer = trained(linear_models(3, 0.01, (1.0, 1.0)), data, [0.01] * 2, 1200, 50)
    noise = trainer.noise
    torch.testing.assert_close(noise.mean.rsqrt(), spread[:, 0], rtol=0.1, atol=0)
    # ... and it ends at its optimum for what the weights have become.
    optimum = NoisePrecision(data.points, (1.0, 1e-3))
    optimum.update(expected_squared_error(trainer.step.lanes, data, generators(2)))
    torch.testing.assert_close(noise.mean, optimum.mean, rtol=0.02, atol=0)


def test_progress_is_reported_up_to_the_last_step():
    reported = []
    trained(
        networks(),
        lane_data(),
        [1e-3] * 3,
        150,
        8,
        on_progress=lambda lane, task, done: reported.append((lane, task, done)),
    )
    for lane in range(3):
        steps = [done for k, task, done in reported if (k, task) == (lane, 0)]
        assert steps == sorted(steps)
        assert steps[-1] == 150


def job_of(recipes, seeds=(4, 5, 6), data=None, x=None):
    data = lane_data() if data is None else data
    return Job(recipes, seeds, [data], data.x if x is None else x, hidden=[5])


@pytest.mark.parametrize("posterior", ["radial", "rdp"])
def test_draws_of_a_prediction_do_not_depend_on_how_long_training_was(posterior):
    data, lanes = lane_data(), rdp_vcl.Lanes if posterior == "rdp" else vcl.Lanes

    def draws(seeds=(4, 5, 6), **settings):
        recipe = Recipe(**RECIPES[posterior], eval_samples=9, **settings)
        return lanes(job_of([recipe] * 3, seeds, data, data.x[:, :7])).learn().mean

    at_rest = {"learning_rate": 1e-30}  # so that only the noise of draws is looked at
    first = draws(steps=5, **at_rest)
    assert torch.equal(draws(steps=70, **at_rest), first)
    assert not torch.equal(draws(steps=5, learning_rate=1e-2), first)
    assert not torch.equal(draws((7, 8, 9), steps=5, **at_rest), first)


def networks_of(learner):
    return [lane.method.network for lane in learner.trainer.lanes]


def test_lanes_of_an_rdp_hold_directions_as_their_recipe_says_and_then_as_the_posterior_does():
    keys = RECIPES["rdp"] | {"prior_scale": 0.3, "prior_length": 0.7}
    made = networks_of(rdp_vcl.Lanes(job_of([Recipe(**keys)] * 3)))
    assert [f.prior(3) for f in Lanes(made, 0).factors] == [HalfCauchyPrior(0.3, 0.7)] * 2
    for net in made:
        consolidate(net, [0])
    for factor in Lanes(made, 0).factors:
        carried, q = factor.prior(3).direction, factor.posterior(factor.parameters).direction
        torch.testing.assert_close(carried.concentration, q.concentration)


def test_the_weight_of_the_divergence_is_that_of_each_lane():
    """A weight of 0 leaves the posterior to the data; a large one gives the prior back."""
    data = lane_data((40, 40))
    recipes = [
        Recipe(
            strategy="vcl",
            posterior="gaussian",
            kl_weight=w,
            steps=600,
            learning_rate=1e-2,
            train_samples=4,
        )
        for w in (0.0, 100.0)
    ]
    learner = vcl.Lanes(job_of(recipes, [1, 1], data))
    learner.learn()
    narrow, wide = (
        sum(layer.kl for layer in lane.method.movement) for lane in learner.trainer.lanes
    )
    assert narrow > 3 * wide


@pytest.mark.parametrize(
    "keys",
    [
        {"posterior": "radial", "initial_rho": -3.0},
        {"posterior": "gaussian", "initial_rho": -3.0, "grouping": "unit"},
        {"posterior": "radial", "initial_noise": 0.02},
        {"strategy": "rdp_vcl", "posterior": "rdp", "grouping": "row"},
    ],
    ids=str,
)
def test_lanes_start_with_the_posterior_of_a_run_by_itself(keys):
    recipe = Recipe(**keys)
    (network,) = networks_of(lanes.find(recipe.strategy)(job_of([recipe], [1], lane_data((20,)))))
    alone = network_of_rows(recipe, 3, 1, [5])
    hidden, expected = (next(iter(variational_weights(n, [0]))) for n in (network, alone))
    assert type(hidden) is type(expected)
    for (name, value), (other, wanted) in zip(
        hidden.named_parameters(), expected.named_parameters(), strict=True
    ):
        assert name == other
        if name.endswith("rho") and recipe.posterior != "rdp":
            torch.testing.assert_close(value, wanted)


def test_networks_start_at_hes_means_of_the_lanes_own_seed():
    data, recipe = lane_data((40, 40)), Recipe(strategy="laplace_linearised")
    points = lanes.find("laplace_linearised")
    one, other = networks_of(points(job_of([recipe] * 2, [7, 8], data)))
    (alone,) = networks_of(points(job_of([recipe], [8], data.of_lanes([1]))))
    for name, value in other.state_dict().items():
        assert torch.equal(value, alone.state_dict()[name])
    assert not torch.equal(one.body[0].weight, other.body[0].weight)
    bayesian = vcl.Lanes(job_of([Recipe(strategy="vcl", posterior="gaussian")] * 2, [7, 8], data))
    first, _ = networks_of(bayesian)[0].body[0].weights.mean()
    assert torch.equal(first, one.body[0].weight)


def test_the_prior_of_dropout_is_that_of_the_weights_that_masks_leave():
    """E ||M z / keep||^2 / 2 s^2, the part of KL(q || p) that depends on M, and the biases'."""
    data = lane_data((40, 40))
    recipes = [
        Recipe(strategy="mc_dropout", options={"rate": p}, prior_scale=0.7) for p in (0.2, 0.5)
    ]
    learner = mc_dropout.Lanes(job_of(recipes, [1, 2], data))
    for lane in learner.trainer.lanes:
        net, precision = lane.method.network, lane.prior_precision
        masks = net.dropout[0].draw_mask(40_000, 1, torch.Generator().manual_seed(0))
        weight = net.body[0].weight.detach()
        expected = (weight * masks).square().sum((1, 2)).mean() / 0.7**2
        found = precision["body.0.weight"] * weight.square().sum()
        torch.testing.assert_close(found, expected, rtol=0.01, atol=0)
        assert float(precision["body.0.bias"]) == pytest.approx(1 / 0.7**2)
        assert precision["head.output.weight"] == precision["body.0.weight"]
