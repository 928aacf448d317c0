import math

import pytest
import torch
from torch.distributions import Categorical, Normal

from vcl_radial.likelihoods.objectives import categorical_nll, gaussian_nll, per_point
from vcl_radial.nn import PosteriorSettings, VariationalWeights


def test_categorical_nll_is_minus_the_mean_log_probability():
    logits, labels = torch.randn(7, 3), torch.randint(3, (7,))
    torch.testing.assert_close(
        categorical_nll(logits, labels), -Categorical(logits=logits).log_prob(labels).mean()
    )


def test_categorical_nll_averages_over_weight_samples():
    logits, labels = torch.randn(4, 7, 3), torch.randint(3, (7,))
    apart = torch.stack([categorical_nll(sample, labels) for sample in logits])
    torch.testing.assert_close(categorical_nll(logits, labels), apart.mean())


def test_gaussian_nll_is_minus_the_mean_log_density():
    mean, targets = torch.randn(5, 7), torch.randn(7)
    expected = -Normal(mean, 0.3).log_prob(targets.expand(5, 7)).mean()
    torch.testing.assert_close(gaussian_nll(mean, targets, 0.3), expected)
    torch.testing.assert_close(gaussian_nll(mean, targets, torch.tensor(0.3)), expected)


def expected_nll(weights, x, y, noise):
    """E_q[NLL] of Bayesian linear regression in closed form, averaged over points."""
    (block,) = weights.blocks
    mean, scale = block.posterior.mean[0], block.posterior.scale[0]
    variance = (x.square() * scale.square()).sum(-1)
    return gaussian_nll(x @ mean, y, noise) + (variance / (2 * noise**2)).mean()


def test_sequential_linear_regression_ends_at_the_batch_posterior():
    """With an orthogonal design mean-field is exact, so carrying it forward loses nothing."""
    torch.manual_seed(0)
    dimensions, tasks, points, noise = 6, 4, 40, 0.5
    truth = torch.randn(dimensions, dtype=torch.float64)
    designs = [
        torch.linalg.qr(torch.randn(points, dimensions, dtype=torch.float64))[0] * (3 + task)
        for task in range(tasks)
    ]
    targets = [x @ truth + noise * torch.randn(points, dtype=torch.float64) for x in designs]

    settings = PosteriorSettings("gaussian", initial_rho=-2.0)
    weights = VariationalWeights(torch.zeros(1, dimensions, dtype=torch.float64), None, settings)
    for x, y in zip(designs, targets, strict=True):
        optimizer = torch.optim.LBFGS(
            weights.parameters(),
            lr=1.0,
            max_iter=100,
            tolerance_grad=1e-12,
            tolerance_change=1e-16,
            line_search_fn="strong_wolfe",
        )

        def loss(x=x, y=y, optimizer=optimizer):
            optimizer.zero_grad()
            value = expected_nll(weights, x, y, noise) + per_point(weights.kl(), points)
            value.backward()
            return value

        optimizer.step(loss)
        weights.consolidate()

    x, y = torch.cat(designs), torch.cat(targets)
    precision = torch.eye(dimensions, dtype=torch.float64) + x.T @ x / noise**2
    mean = torch.linalg.solve(precision, x.T @ y / noise**2)
    (block,) = weights.blocks
    torch.testing.assert_close(block.prior.mean[0], mean, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(
        block.prior.scale[0], precision.diagonal().rsqrt(), rtol=1e-5, atol=1e-6
    )


def test_the_weight_of_a_penalty_tempers_it():
    assert per_point(torch.tensor(30.0), 10, 0.5).item() == pytest.approx(1.5)
    assert math.isclose(per_point(torch.tensor(30.0), 10).item(), 3.0)
