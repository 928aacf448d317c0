"""BAdam, VADAM, VOGN and IVON where the posterior is known: linear regression, task after task.

With an orthogonal design a diagonal posterior is exact.
"""

import math

import pytest
import torch
from avalanche.core import SupervisedPlugin
from gaussian_learners import strategy
from torch import nn

from vcl_radial.data.streams import TensorStream, to_avalanche
from vcl_radial.objectives import gaussian_nll
from vcl_radial.strategies.badam import BAdam
from vcl_radial.strategies.ivon import IVON
from vcl_radial.strategies.vadam import VADAM
from vcl_radial.strategies.vogn import VOGN

D, ROWS, NOISE = 300, 2, 0.5


class Regression:
    """y = w_j + noise, ROWS observations of every weight in each of two tasks.

    The exact posterior of each weight is normal, with precision P + ROWS / NOISE^2 (the data
    counted 1 / kl_weight times). The two observations of a weight lie symmetrically about their
    mean, so far apart that the expected square of a residual under the exact posterior is NOISE^2:
    then, and only then, the squared gradients of VOGN add up to the exact curvature.
    """

    def __init__(self, monkeypatch, kl_weight=1.0):
        generator = torch.Generator().manual_seed(0)
        x, y, targets = [], [], []
        self.posteriors = []
        mean, precision = torch.zeros(D), torch.ones(D)
        for task in range(2):
            centre = mean + 0.6 * torch.randn(D, generator=generator).clamp(-1, 1)
            data = ROWS / NOISE**2 / kl_weight
            mean = (precision * mean + data * centre) / (precision + data)
            precision = precision + data
            self.posteriors.append((mean, precision))
            spread = (NOISE**2 - 1 / precision - (centre - mean) ** 2).sqrt()
            assert torch.isfinite(spread).all()
            x += [torch.eye(D), torch.eye(D)]
            y += [torch.arange(2 * D) + 2 * D * task]
            targets += [centre - spread, centre + spread]
        table = torch.cat(targets)
        rows = torch.arange(4 * D).split(2 * D)
        self.stream = TensorStream(
            name="regression",
            x=torch.cat(x),
            y=torch.cat(y),
            train=tuple(rows),
            validation=(torch.tensor([], dtype=torch.int64),) * 2,
            test=tuple(rows),
            task_names=("first", "second"),
            task_classes=tuple(tuple(r.tolist()) for r in rows),
            n_classes=4 * D,
            multi_head=False,
        )
        self.experiences = list(to_avalanche(self.stream).train_stream)
        monkeypatch.setattr(
            "vcl_radial.likelihoods.categorical_nll",
            lambda output, labels: gaussian_nll(output.squeeze(-1), table[labels], NOISE),
        )

    def learner(self, method, **settings):
        torch.manual_seed(0)
        settings = {"train_mb_size": 2 * D, "train_epochs": 400, "loss_value": False, **settings}
        return strategy(method, nn.Linear(D, 1, bias=False), self.stream, **settings)


def posterior(learner):
    """What is carried on."""
    (q,) = learner.posterior.posteriors([0]).values()
    return q.mean.detach().flatten().clone(), q.prior_precision.flatten().clone()


EXACT = [
    (VOGN, 1.0, {"lr": 0.03, "beta2": 0.98, "train_epochs": 250}),
    (VOGN, 0.5, {"lr": 0.03, "beta2": 0.98, "train_epochs": 250}),
    # IVON's unit of the step is its first curvature: (1 / 0.5^2 + 1) / N.
    (IVON, 1.0, {"lr": 6.0, "beta2": 0.98, "train_epochs": 200, "train_samples": 4}),
    (IVON, 0.5, {"lr": 5.0, "beta2": 0.985, "train_epochs": 350}),
]


@pytest.mark.parametrize(("method", "kl_weight", "settings"), EXACT)
def test_vogn_and_ivon_reach_the_exact_posterior_task_after_task(
    method, kl_weight, settings, monkeypatch
):
    """Precisions within 2 % on average and means within a fraction of the posterior's noise.

    The second task's exact posterior is that of both tasks' data at once.
    """
    problem = Regression(monkeypatch, kl_weight)
    learner = problem.learner(method, penalty_weight=kl_weight, initial_noise=0.5, **settings)
    for experience, (exact_mean, exact_precision) in zip(
        problem.experiences, problem.posteriors, strict=True
    ):
        learner.train(experience, eval_streams=[])
        mean, precision = posterior(learner)
        assert (precision / exact_precision).mean().item() == pytest.approx(1, abs=0.02)
        z = (mean - exact_mean) * exact_precision.sqrt()
        assert z.square().mean().sqrt() < 0.2
        assert abs(z.mean()) < 4 * 0.2 / math.sqrt(D)


def test_debiased_ivon_carries_what_the_data_say_however_little_its_average_forgets(monkeypatch):
    """Here 0.67 of the first Hessian are left, eight times what the data say."""
    problem = Regression(monkeypatch)
    settings = {"lr": 3.0, "beta2": 0.999, "train_epochs": 400, "train_samples": 4}
    carried = []
    for debias in (True, False):
        learner = problem.learner(IVON, initial_noise=0.1, debias=debias, **settings)
        learner.train(problem.experiences[0], eval_streams=[])
        carried.append((posterior(learner)[1] / problem.posteriors[0][1]).mean().item())
    assert carried[0] == pytest.approx(1, abs=0.05)
    assert carried[1] > 2


def test_vadam_has_the_exact_mean_and_the_curvature_of_its_squared_batch_gradient(monkeypatch):
    """s = E_q[g^2] = h^2 (1 / precision + (mean - m)^2), m the data's mean, h the true curvature.

    With full batches that is far below h, so the precision stays near the prior's.
    """
    problem = Regression(monkeypatch)
    learner = problem.learner(
        VADAM, lr=0.01, beta2=0.99, initial_noise=1.0, train_epochs=600, beta1=0.0
    )
    learner.train(problem.experiences[0], eval_streams=[])
    mean, precision = posterior(learner)
    exact_mean, exact_precision = problem.posteriors[0]
    z = (mean - exact_mean) * exact_precision.sqrt()
    assert z.square().mean().sqrt() < 0.4
    n = 2 * D
    data = ROWS / NOISE**2
    h, distance = data / n, exact_mean * exact_precision / data - exact_mean
    s = torch.zeros(D)
    for _ in range(100):
        s = h**2 * (1 / (1 + n * s) + distance**2)
    found = (precision - 1) / n
    assert (found.mean() / s.mean()).item() == pytest.approx(1, abs=0.1)
    assert s.mean() < 0.1 * h


def test_badam_has_the_mode_and_the_root_of_adams_second_moment(monkeypatch):
    """In every task the mode given what is carried; precision = the prior's + N sqrt(v)."""
    problem = Regression(monkeypatch)
    learner = problem.learner(BAdam, lr=5e-3, beta2=0.99, train_epochs=300)
    gradients = []

    class Recorder(SupervisedPlugin):
        def before_update(self, strategy, **kwargs):
            gradients.append(strategy.method.posterior.network.weight.grad.flatten().clone())

    learner.plugins.append(Recorder())
    data, n = ROWS / NOISE**2, 2 * D
    prior_mean, prior_precision, before = torch.zeros(D), torch.ones(D), 0
    for experience, (exact_mean, exact_precision) in zip(
        problem.experiences, problem.posteriors, strict=True
    ):
        gradients.clear()
        learner.train(experience, eval_streams=[])
        mean, precision = posterior(learner)
        # The data's mean, from the exact posteriors before and after.
        centre = (exact_mean * exact_precision - before) / data
        before = exact_mean * exact_precision
        mode = (prior_precision * prior_mean + data * centre) / (prior_precision + data)
        torch.testing.assert_close(mean, mode, rtol=0, atol=2e-3)
        v, decay = torch.zeros(D), 0.99
        for gradient in gradients:
            v = decay * v + (1 - decay) * gradient**2
        v /= 1 - decay ** len(gradients)
        torch.testing.assert_close(precision, prior_precision + n * v.sqrt(), rtol=1e-4, atol=1e-5)
        prior_mean, prior_precision = mean, precision


def test_badams_precision_falls_with_the_root_of_the_batch_size(monkeypatch):
    """At rest sqrt(v) is the standard deviation of a batch's mean gradient, and no curvature.

    Among n gradients, of batches of B drawn without replacement: S sqrt((1 - B/n) / B).
    """
    problem = Regression(monkeypatch)
    found = {}
    n = 2 * D
    for size in (6, 100):
        learner = problem.learner(
            BAdam, lr=1e-9, beta2=0.998, train_mb_size=size, train_epochs=size
        )
        learner.posterior.network.weight.data.copy_(problem.posteriors[0][0])
        learner.method.accumulate = False
        learner.train(problem.experiences[0], eval_streams=[])
        found[size] = posterior(learner)[1].square().mean().sqrt()
        # One of n rows tells of a weight, so a row's gradient has mean square n / ROWS times less.
        exact_mean, exact_precision = problem.posteriors[0]
        data = ROWS / NOISE**2
        mean_gradient = (exact_mean - exact_mean * exact_precision / data) * data / n
        spread = (NOISE**2 - 1 / exact_precision) / NOISE**4 * ROWS / n - mean_gradient**2
        prior = exact_mean / n
        variance = spread * n / (n - 1) * (1 - size / n) / size + (mean_gradient + prior) ** 2
        expected = n * variance.mean().sqrt()
        assert (found[size] / expected).item() == pytest.approx(1, abs=0.05)
