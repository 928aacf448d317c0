import math

import numpy as np
import pytest
import torch
from regression_helpers import mlp, toy
from sklearn.linear_model import BayesianRidge
from torch.func import functional_call, jacrev

from vcl_radial.methods.laplace_linearised import maximise_evidence
from vcl_radial.nn.lanes import Lanes
from vcl_radial.tracks.regression.jacobian import jacobians, lane_network
from vcl_radial.tracks.regression.lanes import badam
from vcl_radial.tracks.regression.lanes.laplace_linearised import laplace
from vcl_radial.tracks.regression.learner import Job
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.tracks.regression.splits import LaneSplits


def point_lanes(d=3, hidden=(5,), lanes=2):
    return Lanes([with_biases(mlp(lane, d, hidden, posterior=None)) for lane in range(lanes)], 0)


def with_biases(network):
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("bias"):
                parameter.normal_()
    return network


def test_jacobians_are_those_of_autograd_in_the_order_of_the_parameters():
    lanes, x = point_lanes(), torch.randn(6, 3)
    network = lane_network(lanes, 1)
    named = dict(network.named_parameters())
    exact = jacrev(lambda p: functional_call(network, p, (x.double(),)).squeeze(1))(named)
    ((f, J),) = jacobians(network, x)
    torch.testing.assert_close(f, network(x.double()).squeeze(1))
    torch.testing.assert_close(f.float(), lanes.networks[1](x).squeeze(1))
    torch.testing.assert_close(J, torch.cat([exact[name].flatten(1) for name in named], dim=1))


def linear_case():
    """Centred data, so that an intercept with a prior of its own changes nothing to speak of."""
    torch.manual_seed(0)
    x = torch.randn(200, 4).double()
    x = x - x.mean(0)
    y = x @ torch.tensor([0.8, -0.5, 0.3, 0.0]).double() + 0.3 * torch.randn(200).double()
    return x, y - y.mean()


def test_the_evidence_is_at_its_maximum():
    """Against the log evidence itself, N/2 log b + P/2 log a - 1/2 log det - 1/2 fit, nearby."""
    torch.manual_seed(0)
    eigenvalues = torch.rand(6).double() * 50
    N, norm, error = 80, 2.0, 9.0

    def log_evidence(a, b):
        log_det = (a + b * eigenvalues).log().sum().item()
        return (N * math.log(b) + 6 * math.log(a) - log_det - a * norm - b * error) / 2

    a, b = maximise_evidence(eigenvalues, N, norm, error)
    best = log_evidence(a, b)
    for factor in (0.97, 1.03):
        assert log_evidence(a * factor, b) < best
        assert log_evidence(a, b * factor) < best


def test_laplace_of_a_linear_network_is_bayesian_linear_regression():
    """scikit-learn's evidence-maximised posterior: its mean given, the rest is to be the same."""
    x, y = linear_case()
    ridge = BayesianRidge(
        fit_intercept=False, alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-12, max_iter=2000
    ).fit(x.numpy(), y.numpy())
    module = torch.nn.Sequential(torch.nn.Linear(4, 1, bias=False, dtype=torch.float64))
    with torch.no_grad():
        module[0].weight.copy_(torch.from_numpy(ridge.coef_)[None])
    new = torch.randn(7, 4).double() * 3
    mean, variance = laplace(module, x, y, new)
    expected_mean, expected_scale = ridge.predict(new.numpy(), return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-9)
    np.testing.assert_allclose(variance.sqrt(), expected_scale, rtol=1e-5)


def test_laplace_is_less_certain_far_from_the_data():
    data = toy()
    lanes = LaneSplits(data, [0])
    module = lane_network(point_lanes(lanes=1), 0)
    near, far = lanes.train.x[0][:20], 20 * lanes.train.x[0][:20]
    x, y = lanes.train.x[0], lanes.train.y[0]
    # Where all units are off there is nothing to be uncertain of: so not every row.
    assert laplace(module, x, y, far)[1].median() > laplace(module, x, y, near)[1].max()


def test_a_lane_that_diverged_has_scores_that_are_not_numbers():
    module = lane_network(point_lanes(lanes=1), 0)
    with torch.no_grad():
        module.body[0].weight.fill_(math.nan)
    mean, variance = laplace(module, torch.randn(9, 3), torch.randn(9), torch.randn(2, 3))
    assert torch.isnan(mean).all()
    assert torch.isnan(variance).all()


@pytest.mark.parametrize("prior_scale", [1e-3, 1.0])
def test_badams_variance_is_bounded_by_that_of_its_prior_and_its_noise(prior_scale):
    """Precision = N sqrt(v) + prior precision, so weights vary no more than under the prior."""
    data = toy()
    lanes = LaneSplits(data, [0, 1])
    recipe = Recipe(strategy="badam", steps=60, batch_size=16, prior_scale=prior_scale)
    job = Job([recipe] * 2, [3, 4], [lanes.train], lanes.test.x, hidden=[6])
    mixture = badam.Lanes(job).learn()
    squares = mixture.scale[0].square()
    assert mixture.mean.shape == squares[None].shape
    noise = squares.min(1).values
    assert (noise > 0).all()
    if prior_scale < 1e-2:  # what is left is the noise, equal in all rows
        torch.testing.assert_close(squares, noise[:, None].expand_as(squares), rtol=1e-3, atol=0)
    else:
        assert (squares.max(1).values > 1.01 * noise).all()


def test_badams_variance_is_that_of_the_linearised_network_under_its_posterior():
    """sum_i J_i^2 / (N sqrt(v_i) + 1 / prior_scale^2) + 1 / E tau, N of each lane's own rows."""
    splits = LaneSplits(toy(), [0, 1])
    recipe = Recipe(strategy="badam", steps=60, batch_size=16, prior_scale=0.5)
    learner = badam.Lanes(Job([recipe] * 2, [3, 4], [splits.train], splits.test.x, hidden=[6]))
    mixture = learner.learn()
    step, lanes, noise = learner.trainer.step, learner.lanes, learner.noise
    for lane, network in enumerate(lanes.networks):
        named = dict(network.named_parameters())
        x = splits.test.x[lane, :1]
        J = jacrev(lambda p, x: functional_call(lanes.networks[0], p, (x,))[0, 0])(named, x)
        expected = 1 / noise.mean[lane]
        for name, slope in J.items():
            v = step.adam.moments[step.adam_index(name)][1][lane] / (1 - 0.999**60)
            precision = splits.train.points[lane] * v.sqrt() + 1 / 0.5**2
            expected = expected + (slope.square() / precision).sum()
        found = mixture.scale[0, lane, 0].square().float()
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=0)
