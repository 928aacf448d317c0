"""BAdam, VADAM, VOGN and IVON on digits: carrying a posterior forward."""

import math
import sys

import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.models import MTSimpleMLP
from avalanche.training.plugins import EvaluationPlugin
from gaussian_learners import DRAWING, EVERY, strategy
from learners import loss_of_an_epoch, make, train, weights
from torch.optim import SGD, Adam

from vcl_radial.errors import UserError
from vcl_radial.strategies import Scores
from vcl_radial.strategies.badam import BAdam
from vcl_radial.strategies.ivon import IVON
from vcl_radial.strategies.vadam import VADAM
from vcl_radial.strategies.vogn import VOGN


def everything(learner):
    """All means, priors and precisions, of all heads."""
    tasks = range(10)
    held = learner.posterior.posteriors(tasks)
    return {
        f"{name} {field}": getattr(q, field).detach().clone()
        for name, q in held.items()
        for field in ("mean", "prior_mean", "prior_precision", "precision")
    }


@EVERY
def test_a_model_whose_heads_cannot_be_told_apart_is_named(method):
    with pytest.raises(UserError, match=r"\w+ cannot tell the heads of a MTSimpleMLP apart"):
        strategy(method, MTSimpleMLP(64), None)


@EVERY
def test_they_learn_a_task_and_the_posterior_becomes_the_prior(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    scores, penalties = Scores(), []

    class Witness(SupervisedPlugin):
        def after_training_exp(self, strategy, **kwargs):
            penalties.append(strategy.penalty().item())

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
    for q in learner.posterior.posteriors([0]).values():
        assert torch.equal(q.prior_mean, q.mean)
        assert torch.equal(q.prior_precision, q.precision)
        assert (q.precision >= 99.9).all()
    assert penalties == [learner.posterior.kl([0])] == [0]


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


@EVERY
def test_the_loss_does_not_depend_on_the_batch_size(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    experience = multi_head_benchmark.train_stream[0]
    losses = [
        loss_of_an_epoch(
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
        return learner, loss_of_an_epoch(learner, experience)

    learner, full = loss()
    _, nll = loss(loss_value=False)
    kl = learner.posterior.kl([0])
    assert kl > 0
    assert not kl.requires_grad
    torch.testing.assert_close(full - nll, kl / len(experience.dataset), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("method", "left"), [(VADAM, 1e-4), (VOGN, 1e-4), (IVON, 1e-3)])
@pytest.mark.parametrize("epochs", [1, 10])
def test_weights_that_the_data_do_not_touch_carry_their_prior(
    epochs, method, left, make_network, multi_head_stream, multi_head_benchmark
):
    """And next to nothing of the curvature that a task starts with, task after task."""
    network = make_network(None)
    with torch.no_grad():
        network.body[0].bias[0] = -1e3  # this unit never answers
    settings = {"train_epochs": epochs, "prior_scale": 10.0, "initial_noise": 0.03}
    if method is IVON:
        settings |= {
            "beta2": 0.999,
            "debias": True,
        }  # with which nine tenths of it are left in the optimiser
    learner = strategy(method, network, multi_head_stream, lr=1e-6, **settings)
    for task, experience in enumerate(list(multi_head_benchmark.train_stream)[:2]):
        learner.train(experience, eval_streams=[])
        precision = learner.posterior.posteriors([])["body.0.weight"].prior_precision
        assert (precision[0] >= 0.0099).all()
        assert (precision[0] < 0.01 + (task + 1) * 1.01 * left / 0.03**2).all()
        assert precision[1:].mean() > 1


def test_debiased_ivon_predicts_by_its_optimisers_posterior(
    make_network, multi_head_stream, multi_head_benchmark
):
    """What it carries would draw weights of which little is known with the prior's noise."""
    learner = strategy(IVON, make_network(None), multi_head_stream, debias=True)
    learner.train(multi_head_benchmark.train_stream[0], eval_streams=[])
    (group,) = learner.optimizer.param_groups
    held = learner.posterior.posteriors([0]).values()
    found = torch.cat([q.precision.flatten() for q in held])
    assert torch.equal(found, group["ess"] * (group["hess"] + group["weight_decay"]))
    assert (found > 0.5 / 0.03**2).all()


def test_of_no_step_debiased_ivon_carries_its_prior(
    make_network, multi_head_stream, multi_head_benchmark
):
    settings = {"train_epochs": 0, "debias": True}
    learner = strategy(IVON, make_network(None), multi_head_stream, **settings)
    learner.train(multi_head_benchmark.train_stream[0], eval_streams=[])
    assert all((q.prior_precision == 1).all() for q in learner.posterior.posteriors([0]).values())


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
@pytest.mark.parametrize("at_means", [True, False])
def test_the_means_predict_where_this_is_asked_for(
    method, at_means, make_network, multi_head_stream, multi_head_benchmark
):
    x = torch.rand(9, 64)
    settings = {"predict_at_means": at_means, "eval_samples": 5}
    learner = strategy(method, make_network(None), multi_head_stream, **settings)
    learner.train(multi_head_benchmark.train_stream[0], eval_streams=[])
    assert learner.model.eval_samples == (1 if at_means else 5)
    learner.model.eval()
    with torch.no_grad():
        expected = learner.posterior.network(x, 0).log_softmax(-1)
        same = torch.allclose(learner.model(x, 0), expected, atol=1e-6)
    assert same is at_means


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


def test_ivon_names_the_package_that_is_missing(make_network, monkeypatch):
    monkeypatch.setitem(sys.modules, "ivon", None)
    with pytest.raises(UserError, match=r"pip install 'vcl-radial\[ivon\]'"):
        strategy(IVON, make_network(None))


@EVERY
def test_a_decay_that_is_none_is_named(method, make_network):
    with pytest.raises(UserError, match=r"options\.beta2 = 1\.0"):
        strategy(method, make_network(None), beta2=1.0)


def test_ivon_wants_a_first_hessian(make_network):
    with pytest.raises(UserError, match=r"^initial_noise = inf"):
        strategy(IVON, make_network(None), initial_noise=math.inf)


def test_badam_wants_adam(make_network):
    with pytest.raises(UserError, match='set optimizer = "adam"'):
        BAdam(model=make_network(None), optimizer=lambda model: SGD(model.parameters(), lr=0.1))


@pytest.mark.parametrize("amsgrad", [True, False])
def test_badam_reads_the_moment_that_adam_steps_by(
    amsgrad, make_network, multi_head_stream, multi_head_benchmark
):
    """With AMSGrad that is the largest one so far."""
    learner = BAdam(
        model=make_network(None),
        optimizer=lambda model: Adam(model.parameters(), lr=1e-2, amsgrad=amsgrad),
        tensor_stream=multi_head_stream,
        beta2=0.9,
        prior_scale=0.5,
        train_mb_size=16,
        train_epochs=3,
        eval_mb_size=500,
        evaluator=EvaluationPlugin(),
    )
    experience = multi_head_benchmark.train_stream[0]
    learner.train(experience, eval_streams=[])
    q = learner.posterior.posteriors([0])["body.0.weight"]
    moments = learner.optimizer.state[q.mean]
    assert ("max_exp_avg_sq" in moments) is amsgrad
    square = moments["max_exp_avg_sq" if amsgrad else "exp_avg_sq"]
    root = (square / (1 - 0.9 ** float(moments["step"]))).sqrt()
    points = len(multi_head_stream.rows(0, "train"))
    torch.testing.assert_close(q.precision, points * root + 4)
    if amsgrad:
        assert (square > moments["exp_avg_sq"]).any()


@EVERY
@pytest.mark.parametrize("posterior", ["gaussian", "radial"])
def test_a_network_with_a_posterior_is_refused(method, posterior, make_network):
    with pytest.raises(UserError, match="set posterior = 'none'"):
        strategy(method, make_network(posterior))


@DRAWING
def test_a_prior_that_counts_nothing_is_named(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    learner = strategy(method, make_network(None), multi_head_stream, penalty_weight=0.0)
    with pytest.raises(UserError, match="kl_weight = 0"):
        learner.train(multi_head_benchmark.train_stream[0], eval_streams=[])


@pytest.mark.parametrize("at_means", [True, False])
def test_without_accumulation_badam_draws_what_nothing_has_moved_from_the_first_prior(
    at_means, make_network, multi_head_stream, multi_head_benchmark
):
    """Eq. 12 gives the inputs of a unit that is dead the precision 0."""
    scores, network = Scores(), make_network(None)
    torch.nn.init.constant_(network.body[0].bias[3:4], -100.0)
    learner = strategy(
        BAdam,
        network,
        multi_head_stream,
        prior_scale=0.5,
        accumulate=False,
        penalty_weight=0.0,
        predict_at_means=at_means,
        evaluator=EvaluationPlugin(scores),
    )
    learner.train(multi_head_benchmark.train_stream[0], eval_streams=[])
    q = learner.posterior.posteriors([0])
    assert (q["body.0.weight"].precision[3] == (0 if at_means else 4)).all()
    if not at_means:
        assert all((each.precision >= 4).all() for each in q.values())
    learner.eval([multi_head_benchmark.test_stream[0]])
    assert scores.predictions.isfinite().all()


@DRAWING
def test_an_optimiser_of_ones_own_gives_its_learning_rate_to_every_task(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    """As an instance and as a function that makes one."""
    ends = []
    for made in (True, False):
        network = make_network(None)
        optimizer = Adam(network.parameters(), lr=0.03) if made else _adam
        learner = make(method, network, multi_head_stream, optimizer=optimizer)
        train(learner, list(multi_head_benchmark.train_stream)[:3])
        ends.append(weights(learner))
    assert torch.equal(*ends)


def _adam(model):
    return Adam(model.parameters(), lr=0.03)
