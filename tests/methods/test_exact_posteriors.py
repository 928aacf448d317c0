"""BAdam, VADAM, VOGN and IVON where the posterior is known: linear regression, task after task.

With an orthogonal design a diagonal posterior is exact.
"""

import math

import pytest
import torch
from scenarios import KnownNoise, Learner
from torch import nn

D, ROWS, NOISE = 300, 2, 0.5


class Regression:
    """y = w_j + noise, ROWS observations of every weight in each of two tasks, as a stream.

    The exact posterior of each weight is normal, with precision P + ROWS / NOISE^2 (the data
    counted 1 / kl_weight times). The two observations of a weight lie symmetrically about their
    mean, so far apart that the expected square of a residual under the exact posterior is NOISE^2:
    then, and only then, the squared gradients of VOGN add up to the exact curvature.
    """

    def __init__(self, kl_weight=1.0):
        generator = torch.Generator().manual_seed(0)
        self.targets, self.posteriors = [], []
        mean, precision = torch.zeros(D), torch.ones(D)
        for _ in range(2):
            centre = mean + 0.6 * torch.randn(D, generator=generator).clamp(-1, 1)
            data = ROWS / NOISE**2 / kl_weight
            mean = (precision * mean + data * centre) / (precision + data)
            precision = precision + data
            self.posteriors.append((mean, precision))
            spread = (NOISE**2 - 1 / precision - (centre - mean) ** 2).sqrt()
            assert torch.isfinite(spread).all()
            self.targets.append(torch.cat([centre - spread, centre + spread]))

    def inputs(self, number, part):
        return torch.cat([torch.eye(D), torch.eye(D)])

    def labels(self, number, part):
        return self.targets[number]

    def task_label(self, number):
        return 0

    def learner(self, method, **settings):
        torch.manual_seed(0)
        settings = {"batch_size": 2 * D, "loss_value": False, "lr": 0.01, **settings}
        net = nn.Linear(D, 1, bias=False)
        return Learner(method, net, self, likelihood=KnownNoise(NOISE), **settings)


def posterior(learner):
    """What is carried on."""
    (q,) = learner.method.posterior.posteriors([0]).values()
    return q.mean.detach().flatten().clone(), q.prior_precision.flatten().clone()


EXACT = [
    ("vogn", 1.0, {"lr": 0.03, "beta2": 0.98, "epochs": 250}),
    ("vogn", 0.5, {"lr": 0.03, "beta2": 0.98, "epochs": 250}),
    # IVON's unit of the step is its first curvature: (1 / 0.5^2 + 1) / N.
    ("ivon", 1.0, {"lr": 6.0, "beta2": 0.98, "epochs": 200, "train_samples": 2}),
    ("ivon", 0.5, {"lr": 5.0, "beta2": 0.985, "epochs": 350}),
]


@pytest.mark.parametrize(("method", "kl_weight", "settings"), EXACT)
def test_vogn_and_ivon_reach_the_exact_posterior_task_after_task(method, kl_weight, settings):
    """Precisions within 2 % on average and means within a fraction of the posterior's noise.

    The second task's exact posterior is that of both tasks' data at once.
    """
    problem = Regression(kl_weight)
    learner = problem.learner(method, kl_weight=kl_weight, initial_noise=0.5, **settings)
    for task, (exact_mean, exact_precision) in enumerate(problem.posteriors):
        mean, precision = posterior(learner.train(task))
        assert (precision / exact_precision).mean().item() == pytest.approx(1, abs=0.02)
        z = (mean - exact_mean) * exact_precision.sqrt()
        assert z.square().mean().sqrt() < 0.2
        assert abs(z.mean()) < 4 * 0.2 / math.sqrt(D)


def test_debiased_ivon_carries_what_the_data_say_however_little_its_average_forgets():
    """Here 0.82 of the first Hessian are left, many times what the data say."""
    problem, carried = Regression(), []
    settings = {"lr": 3.0, "beta2": 0.999, "epochs": 200}
    for debias in (True, False):
        learner = problem.learner("ivon", initial_noise=0.1, debias=debias, **settings)
        precision = posterior(learner.train(0))[1]
        carried.append((precision / problem.posteriors[0][1]).mean().item())
    assert carried[0] == pytest.approx(1, abs=0.05)
    assert carried[1] > 2


def test_vadam_has_the_exact_mean_and_the_curvature_of_its_squared_batch_gradient():
    """s = E_q[g^2] = h^2 (1 / precision + (mean - m)^2), m the data's mean, h the true curvature.

    With full batches that is far below h, so the precision stays near the prior's.
    """
    problem = Regression()
    settings = {"beta1": 0.0, "beta2": 0.99, "initial_noise": 1.0, "epochs": 600}
    mean, precision = posterior(problem.learner("vadam", **settings).train(0))
    exact_mean, exact_precision = problem.posteriors[0]
    z = (mean - exact_mean) * exact_precision.sqrt()
    assert z.square().mean().sqrt() < 0.4
    n = 2 * D
    data = ROWS / NOISE**2
    h, distance = data / n, exact_mean * exact_precision / data - exact_mean
    s = torch.zeros(D)
    for _ in range(100):
        s = h**2 * (1 / (1 + n * s) + distance**2)
    curvature = (precision - 1) / n
    assert (curvature.mean() / s.mean()).item() == pytest.approx(1, abs=0.1)
    assert s.mean() < 0.1 * h


def test_badam_has_the_mode_and_the_root_of_adams_second_moment():
    """In every task the mode given what is carried; precision = the prior's + N sqrt(v)."""
    problem, decay = Regression(), 0.99
    learner = problem.learner("badam", lr=5e-3, beta2=decay, epochs=300)
    weight = learner.method.posterior.network.weight
    data, n = ROWS / NOISE**2, 2 * D
    prior_mean, prior_precision, before = torch.zeros(D), torch.ones(D), 0
    for task, (exact_mean, exact_precision) in enumerate(problem.posteriors):
        gradients = []

        def record(gradients=gradients):
            gradients.append(weight.grad.flatten().clone())

        mean, precision = posterior(learner.train(task, after_step=record))
        # The data's mean, from the exact posteriors before and after.
        centre = (exact_mean * exact_precision - before) / data
        before = exact_mean * exact_precision
        mode = (prior_precision * prior_mean + data * centre) / (prior_precision + data)
        torch.testing.assert_close(mean, mode, rtol=0, atol=2e-3)
        v = torch.zeros(D)
        for gradient in gradients:
            v = decay * v + (1 - decay) * gradient**2
        v /= 1 - decay ** len(gradients)
        torch.testing.assert_close(precision, prior_precision + n * v.sqrt(), rtol=1e-4, atol=1e-5)
        prior_mean, prior_precision = mean, precision


def test_badams_precision_falls_with_the_root_of_the_batch_size():
    """At rest sqrt(v) is the standard deviation of a batch's mean gradient, and no curvature.

    Among n gradients, of batches of B drawn without replacement: S sqrt((1 - B/n) / B).
    """
    problem, n = Regression(), 2 * D
    for size in (6, 100):
        settings = {"lr": 1e-9, "beta2": 0.99, "batch_size": size, "epochs": size // 3}
        learner = problem.learner("badam", accumulate=False, predict_at_means=True, **settings)
        learner.method.posterior.network.weight.data.copy_(problem.posteriors[0][0])
        root = posterior(learner.train(0))[1].square().mean().sqrt()
        # One of n rows tells of a weight, so a row's gradient has mean square n / ROWS times less.
        exact_mean, exact_precision = problem.posteriors[0]
        data = ROWS / NOISE**2
        mean_gradient = (exact_mean - exact_mean * exact_precision / data) * data / n
        spread = (NOISE**2 - 1 / exact_precision) / NOISE**4 * ROWS / n - mean_gradient**2
        prior = exact_mean / n
        variance = spread * n / (n - 1) * (1 - size / n) / size + (mean_gradient + prior) ** 2
        expected = n * variance.mean().sqrt()
        assert (root / expected).item() == pytest.approx(1, abs=0.05)
