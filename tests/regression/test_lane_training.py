import math
from dataclasses import replace

import pytest
import torch
from regression_helpers import generators, lane_data, network, toy

from vcl_radial import native
from vcl_radial.noise_precision import NoisePrecision
from vcl_radial.tracks.regression.adam import LaneAdam
from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.fit import FitSettings, expected_squared_error, fit, gradient
from vcl_radial.tracks.regression.methods import Job
from vcl_radial.tracks.regression.methods.variational import make_network
from vcl_radial.tracks.regression.network import LaneNetwork, outputs
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.tracks.regression.training import train_and_score
from vcl_radial.tracks.regression.variational_layers import LocationScaleLayer


def test_lane_adam_is_torchs_with_a_rate_for_each_lane():
    torch.manual_seed(0)
    start = torch.randn(3, 7)
    rates = [1e-3, 1e-2, 1e-1]
    parameters = start.clone()
    ours = LaneAdam(parameters, torch.tensor(rates))
    theirs = [start[k].clone().requires_grad_() for k in range(3)]
    optimizers = [torch.optim.Adam([p], lr=rate) for p, rate in zip(theirs, rates, strict=True)]
    for _ in range(20):
        slope = torch.randn(3, 7) * torch.tensor([[1e-4], [1.0], [30.0]])
        ours.step(slope)
        for k, optimizer in enumerate(optimizers):
            theirs[k].grad = slope[k].clone()
            optimizer.step()
    torch.testing.assert_close(parameters, torch.stack(theirs).detach(), rtol=1e-5, atol=1e-6)


RECIPES = {
    "mfvi": {"method": "variational"},
    "radial": {"method": "variational", "posterior": "radial"},
    "dropout": {"method": "dropout"},
    "ensemble": {"method": "ensemble", "members": 2},
    "laplace": {"method": "laplace"},
    "badam": {"method": "badam"},
    "linear": {"method": "linear"},
    "rdp": {"method": "variational", "posterior": "rdp"},
    "two layers": {"method": "variational", "posterior": "radial", "hidden": [6, 5]},
    "rdp, two layers": {"method": "variational", "posterior": "rdp", "hidden": [6, 5]},
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_lane_is_the_single_run(name):
    data = toy()
    tiny = {"steps": 70, "batch_size": 16, "eval_samples": 9, "train_samples": 2}
    recipe = Recipe(**RECIPES[name], **tiny)
    other = Recipe(**RECIPES[name], **tiny, learning_rate=1e-2, initial_precision=0.3)
    together = train_and_score(data, [0, 1, 1, 3], [recipe, recipe, other, recipe])
    # To the last bit where the compiled library makes the steps; it has not those of rdp.
    exact = "rdp" not in name and native.unavailable() is None
    for lane, (split, own) in ((1, (1, recipe)), (2, (1, other)), (3, (3, recipe))):
        (alone,) = train_and_score(data, [split], [own])
        assert together[lane] == (alone if exact else pytest.approx(alone, rel=2e-3))
    assert together[0] != pytest.approx(together[1], rel=2e-3)


def test_a_run_is_the_same_every_time_whatever_was_drawn_before():
    recipe = Recipe(method="variational", posterior="rdp", steps=20, eval_samples=5)
    first = train_and_score(toy(), [0, 1], [recipe] * 2)
    torch.manual_seed(9)
    assert train_and_score(toy(), [0, 1], [recipe] * 2) == first


def test_validation_scores_do_not_depend_on_the_test_rows():
    data, recipe = toy(), Recipe(method="variational", steps=40, batch_size=16, eval_samples=5)
    y, x = data.y.clone(), data.x.clone()
    y[data.splits[1].test], x[data.splits[1].test] = 1e6, -1e6
    poisoned = replace(data, x=x, y=y)
    one, other = (train_and_score(d, [1], [recipe], validation=0.2) for d in (data, poisoned))
    assert one == other
    assert train_and_score(data, [1], [recipe]) != train_and_score(poisoned, [1], [recipe])


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_the_scale_of_the_divergence_depends_on_the_points_and_not_on_the_batch(family):
    """With a precision of 0 the data are silent: what is left is the gradient of KL / N."""
    net, data = network(family), lane_data()
    silent = torch.zeros(3)

    def slope(batch, samples, points, weight=1.0):
        rows = torch.zeros(3, batch, dtype=torch.long)
        noise = net.noise(1, samples)[0]
        return gradient(net, silent, weight / points, data.rows(rows), noise)[0]

    one = slope(2, 1, data.points)
    torch.testing.assert_close(slope(16, 3, data.points), one)
    torch.testing.assert_close(slope(2, 1, 10 * data.points), one / 10)
    torch.testing.assert_close(slope(2, 1, data.points, weight=3.0), 3 * one)
    assert one.abs().max() > 0


def test_the_fit_term_is_the_mean_over_the_batch_whatever_its_size():
    net, data = network(), lane_data()
    noise = net.noise(1, 2)[0]
    rows = torch.arange(6).expand(3, 6)
    one, error = gradient(net, torch.ones(3), 1 / data.points, data.rows(rows), noise)
    twice, same = gradient(
        net, torch.ones(3), 1 / data.points, data.rows(torch.cat([rows, rows], 1)), noise
    )
    torch.testing.assert_close(one, twice)
    torch.testing.assert_close(error, same)
    residual = outputs(net.draw(noise), data.x[:, :6]) - data.y[:, None, :6]
    torch.testing.assert_close(error, residual.square().mean((1, 2)))


def orthogonal(n=40, d=4, seed=0):
    """A design whose columns, that of the intercept included, are orthogonal."""
    torch.manual_seed(seed)
    columns = torch.linalg.qr(torch.cat([torch.ones(n, 1), torch.randn(n, d)], 1)).Q
    x = columns[:, 1:] * math.sqrt(n) * torch.linspace(0.5, 1.5, d)
    return x, x @ torch.randn(d) + 0.3 + 0.4 * torch.randn(n)


def test_training_finds_the_exact_posterior_where_mean_field_is_exact():
    """A linear model, a known noise and an orthogonal design: means and scales in closed form."""
    lanes = [orthogonal(seed=0), orthogonal(seed=1)]
    data, precision = LaneData.of(lanes), 6.0
    weight, bias = torch.randn(2, 1, 4), torch.zeros(2, 1)
    layer = LocationScaleLayer(weight, bias, torch.tensor([1.0, 0.4]), "gaussian", "layer", 0.05)
    net = LaneNetwork([layer], generators(2))
    certain = NoisePrecision(data.points, (1e9, 1e9 / precision), precision)
    fit(net, certain, data, torch.full((2,), 0.03), FitSettings(1500, 40, train_samples=16))
    (q,) = layer.posteriors(net.parameters)
    for lane, ((x, y), prior_scale) in enumerate(zip(lanes, (1.0, 0.4), strict=True)):
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
    layer = LocationScaleLayer(
        torch.zeros(2, 1, 3), torch.zeros(2, 1), torch.ones(2), "gaussian", "layer", 0.01
    )
    net, noise = LaneNetwork([layer], generators(2)), NoisePrecision(data.points, (1.0, 1e-3))
    fit(net, noise, data, torch.full((2,), 0.01), FitSettings(1200, 50))
    torch.testing.assert_close(noise.mean.rsqrt(), spread[:, 0], rtol=0.1, atol=0)
    # ... and it ends at its optimum for what the weights have become.
    optimum = NoisePrecision(data.points, (1.0, 1e-3))
    optimum.update(expected_squared_error(net, data))
    torch.testing.assert_close(noise.mean, optimum.mean, rtol=0.02, atol=0)


def test_progress_is_told_up_to_the_last_step():
    told = []
    data = lane_data()
    fit(
        network(),
        NoisePrecision(data.points, (1.0, 1e-3)),
        data,
        torch.full((3,), 1e-3),
        FitSettings(150, 8),
        told.append,
    )
    assert told == sorted(told)
    assert told[-1] == 150


@pytest.mark.parametrize("posterior", ["radial", "rdp"])
def test_draws_of_a_prediction_do_not_depend_on_how_long_training_was(posterior):
    """Nor does a prediction disturb what training draws after it."""
    data = lane_data()
    recipe = Recipe(method="variational", posterior=posterior)
    job = Job([recipe] * 3, [4, 5, 6], data, data.x[:, :7], hidden=[5])
    net = make_network(job)
    first = job.draws(net, 9)
    state = net.generators[0].get_state()
    assert torch.equal(job.draws(net, 9), first)
    assert torch.equal(net.generators[0].get_state(), state)
    net.noise(1)  # a step of training
    assert torch.equal(job.draws(net, 9), first)
    other = replace(job, seeds=[7, 8, 9])
    assert not torch.equal(other.draws(net, 9), first)


def test_the_weight_of_the_divergence_is_that_of_each_lane():
    """A weight of 0 leaves the posterior to the data; a large one gives the prior back."""
    data = lane_data((40, 40))
    recipes = [
        Recipe(method="variational", kl_weight=w, steps=600, learning_rate=1e-2, train_samples=4)
        for w in (0.0, 100.0)
    ]
    job = Job(recipes, [1, 1], data, data.x, hidden=[5])
    net = make_network(job)
    job.fit(net, job.noise())
    narrow, wide = net.kl().tolist()
    assert narrow > 3 * wide
