"""BAdam, VADAM, VOGN and IVON: exact posteriors where there are any, and carrying them forward."""

import io
import math
import sys

import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from torch import nn
from torch.optim import SGD, Adam

from vcl_radial.errors import UserError
from vcl_radial.objectives import gaussian_nll
from vcl_radial.strategies import Scores
from vcl_radial.strategies.badam import BAdam
from vcl_radial.strategies.ivon import IVON
from vcl_radial.strategies.vadam import VADAM
from vcl_radial.strategies.vogn import VOGN
from vcl_radial.streams import TensorStream, to_avalanche


@pytest.fixture(autouse=True)
def ivon_package(request):
    if "ivon" in request.node.name.lower():
        pytest.importorskip("ivon")


EVERY = pytest.mark.parametrize("method", [BAdam, VADAM, VOGN, IVON])
DRAWING = pytest.mark.parametrize("method", [VADAM, VOGN, IVON])
NATURAL_STEP = 0.1
"""A learning rate for VOGN and IVON, whose step is in units of the curvature."""


def strategy(method, network, stream=None, lr=None, **settings):
    lr = lr or (NATURAL_STEP if method in {VOGN, IVON} else 1e-2)
    settings = {
        "train_mb_size": 32,
        "eval_mb_size": 500,
        "train_epochs": 1,
        "posterior_samples": 5,
        "evaluator": EvaluationPlugin(),
        **settings,
    }
    return method(
        model=network,
        optimizer=lambda model: Adam(model.parameters(), lr=lr),
        tensor_stream=stream,
        **settings,
    )


def everything(learner):
    """All means, priors and precisions, of all heads."""
    tasks = range(10)
    held = learner.posterior.posteriors(tasks)
    return {
        f"{name} {field}": getattr(q, field).detach().clone()
        for name, q in held.items()
        for field in ("mean", "prior_mean", "prior_precision", "precision")
    }


def assert_equal(first, second):
    assert first.keys() == second.keys()
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


# ---- Bayesian linear regression with an orthogonal design: a diagonal posterior is exact ----

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
            "vcl_radial.strategies.base.categorical_nll",
            lambda output, labels: gaussian_nll(output.squeeze(-1), table[labels], NOISE),
        )

    def learner(self, method, **settings):
        torch.manual_seed(0)
        settings = {"train_mb_size": 2 * D, "train_epochs": 400, "loss_value": False, **settings}
        return strategy(method, nn.Linear(D, 1, bias=False), self.stream, **settings)


def posterior(learner):
    (q,) = learner.posterior.posteriors([0]).values()
    return q.mean.detach().flatten().clone(), q.precision.flatten().clone()


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
            gradients.append(strategy.posterior.network.weight.grad.flatten().clone())

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
        learner.accumulate = False
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


# ---- A network on digits ----


@EVERY
def test_they_learn_a_task_and_the_posterior_becomes_the_prior(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    scores, penalties = Scores(), []

    class Witness(SupervisedPlugin):
        def after_training_exp(self, strategy, **kwargs):
            penalties.append(float(strategy.penalty()))

    learner = strategy(
        method,
        make_network(None),
        multi_head_stream,
        train_epochs=20,
        plugins=[Witness()],
        prior_scale=0.1,
        evaluator=EvaluationPlugin(scores),
    )
    learner.train(multi_head_benchmark.train_stream[0], eval_streams=[])
    learner.eval([multi_head_benchmark.test_stream[0]])
    assert scores.values["accuracy"] > 95
    assert penalties == [0]
    for q in learner.posterior.posteriors([0]).values():
        assert torch.equal(q.prior_mean, q.mean)
        assert torch.equal(q.prior_precision, q.precision)
        assert (q.precision >= 99.9).all()
    assert learner.posterior.kl([0]) == 0


@EVERY
def test_heads_of_other_tasks_keep_means_posterior_and_prior(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    learner = strategy(method, make_network(None), multi_head_stream)
    train, test = multi_head_benchmark.train_stream, multi_head_benchmark.test_stream
    learner.train(train[0], eval_streams=[])
    learner.eval(list(test)[:3])
    before = everything(learner)
    learner.train(train[1], eval_streams=[])
    after = everything(learner)
    assert before.keys() == after.keys()
    for name in before:
        trained = not name.startswith(("head.heads.0", "head.heads.2"))
        assert torch.equal(before[name], after[name]) is not trained, name
    fresh = {name: t for name, t in after.items() if name.startswith("head.heads.2")}
    assert all((t == 0).all() for name, t in fresh.items() if name.endswith("prior_mean"))
    assert all((t == 1).all() for name, t in fresh.items() if name.endswith("prior_precision"))


@EVERY
def test_the_larger_the_carried_precision_the_less_the_body_moves(method, scenario, make_network):
    multi_head, stream, benchmark = scenario
    first, second = list(benchmark.train_stream)[:2]
    distances = []
    for precision in (1.0, 1e8):
        learner = strategy(method, make_network(None, multi_head), stream, train_epochs=3)
        torch.manual_seed(0)
        learner.train(first, eval_streams=[])
        body = {n: q for n, q in learner.posterior.posteriors([]).items() if "body" in n}
        old = {name: q.mean.detach().clone() for name, q in body.items()}
        for q in body.values():
            q.prior_precision = torch.full_like(q.mean, precision)
        learner.train(second, eval_streams=[])
        distances.append(max((q.mean - old[name]).abs().max().item() for name, q in body.items()))
    assert distances[1] < 0.05 * distances[0]


def losses_of_an_epoch(learner, experience):
    """The loss of one pass over an experience, all under the same draw of the weights."""
    recorded = []

    class Recorder(SupervisedPlugin):
        def before_forward(self, strategy, **kwargs):
            torch.manual_seed(5)

        def before_backward(self, strategy, **kwargs):
            recorded.append(strategy.loss.detach() * len(strategy.mb_y))

    learner.plugins.append(Recorder())
    learner.optimizer_step = lambda: None  # the weights stay
    learner.consolidate = lambda experience: None
    learner.train(experience, eval_streams=[])
    return torch.stack(recorded).sum() / len(experience.dataset)


@EVERY
def test_the_loss_does_not_depend_on_the_batch_size(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    experience = multi_head_benchmark.train_stream[0]
    losses = [
        losses_of_an_epoch(
            strategy(method, make_network(None), multi_head_stream, train_mb_size=size), experience
        )
        for size in (8, 50, 1000)
    ]
    torch.testing.assert_close(losses[1], losses[0])
    torch.testing.assert_close(losses[2], losses[0])


@DRAWING
def test_the_loss_is_the_negative_elbo_over_n(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    """With a KL that has no gradient of its own: the optimiser has it."""
    experience = multi_head_benchmark.train_stream[0]

    def loss(**settings):
        learner = strategy(method, make_network(None), multi_head_stream, **settings)
        return learner, losses_of_an_epoch(learner, experience)

    learner, full = loss()
    _, nll = loss(loss_value=False)
    kl = learner.posterior.kl([0])
    assert kl > 0
    assert not kl.requires_grad
    torch.testing.assert_close(full - nll, kl / len(experience.dataset), rtol=1e-4, atol=1e-4)


@EVERY
def test_a_state_dict_brings_the_strategy_back(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    first = strategy(method, make_network(None), multi_head_stream)
    train = list(multi_head_benchmark.train_stream)
    for experience in train[:2]:
        first.train(experience, eval_streams=[])
        first.eval(list(multi_head_benchmark.test_stream))
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = strategy(method, make_network(None), multi_head_stream)
    second.load_state_dict(torch.load(file, weights_only=True))
    for learner in (first, second):
        torch.manual_seed(8)
        learner.train(train[2], eval_streams=[])
        learner.eval(list(multi_head_benchmark.test_stream))
    assert_equal(everything(first), everything(second))


@EVERY
def test_evaluating_does_not_change_training(method, scenario, make_network):
    multi_head, stream, benchmark = scenario
    ends = []
    for eval_every in (-1, 1):
        learner = strategy(
            method, make_network(None, multi_head), stream, eval_every=eval_every, train_epochs=2
        )
        torch.manual_seed(3)
        for experience in list(benchmark.train_stream)[:2]:
            learner.train(experience, eval_streams=[list(benchmark.test_stream)[:2]])
            if eval_every > 0:
                learner.eval(list(benchmark.test_stream)[:2])
        ends.append(everything(learner))
    assert_equal(*ends)


@EVERY
def test_predictions_average_over_the_same_draws_whatever_the_batch(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    scores = Scores()
    learner = strategy(
        method, make_network(None), multi_head_stream, evaluator=EvaluationPlugin(scores)
    )
    learner.train(multi_head_benchmark.train_stream[0], eval_streams=[])
    values = []
    for size in (500, 7):
        learner.eval_mb_size = size
        torch.manual_seed(size)
        learner.eval([multi_head_benchmark.test_stream[0]])
        values.append(scores.values)
    assert values[0] == pytest.approx(values[1])


@EVERY
def test_without_posterior_samples_the_means_predict(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    x = torch.rand(9, 64)
    for samples in (0, 5):
        learner = strategy(method, make_network(None), multi_head_stream, posterior_samples=samples)
        learner.train(multi_head_benchmark.train_stream[0], eval_streams=[])
        learner.model.eval()
        with torch.no_grad():
            at_means = learner.posterior.network(x, 0).log_softmax(-1)
            same = torch.allclose(learner.model(x, 0), at_means, atol=1e-6)
        assert same is (samples == 0)


def test_several_draws_in_a_step_quieten_ivons_gradient(
    make_network, multi_head_stream, multi_head_benchmark
):
    def spread(samples):
        learner = strategy(
            IVON,
            make_network(None),
            multi_head_stream,
            train_samples=samples,
            train_mb_size=1000,
            initial_noise=0.1,
            train_epochs=40,
        )
        seen = []

        def step():
            seen.append(learner.optimizer.state["avg_grad"].clone())
            learner.optimizer._reset_samples()

        learner.optimizer_step = step
        learner.train(multi_head_benchmark.train_stream[0], eval_streams=[])
        return torch.stack(seen).var(0).mean()

    assert (spread(4) / spread(1)).item() == pytest.approx(1 / 4, rel=0.3)


# ---- What a user can mend ----


def test_ivon_names_the_package_that_is_missing(make_network, monkeypatch):
    monkeypatch.setitem(sys.modules, "ivon", None)
    with pytest.raises(UserError, match="pip install ivon-opt"):
        strategy(IVON, make_network(None))


@EVERY
def test_a_decay_that_is_none_is_named(method, make_network):
    with pytest.raises(UserError, match=r"options\.beta2 = 1\.0"):
        strategy(method, make_network(None), beta2=1.0)


def test_ivon_wants_a_first_hessian(make_network):
    with pytest.raises(UserError, match=r"options\.initial_noise = inf"):
        strategy(IVON, make_network(None), initial_noise=math.inf)


def test_badam_wants_adam(make_network):
    with pytest.raises(UserError, match='set optimizer = "adam"'):
        BAdam(model=make_network(None), optimizer=lambda model: SGD(model.parameters(), lr=0.1))


@DRAWING
def test_a_prior_that_counts_nothing_is_named(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    learner = strategy(method, make_network(None), multi_head_stream, penalty_weight=0.0)
    with pytest.raises(UserError, match="kl_weight = 0"):
        learner.train(multi_head_benchmark.train_stream[0], eval_streams=[])
