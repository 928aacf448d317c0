import math
import warnings
from functools import partial

import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.evaluation.metrics import accuracy_metrics, forgetting_metrics, loss_metrics
from avalanche.logging import TextLogger
from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin
from learners import loss_of_an_epoch, make, score, scores_of
from torch.optim import SGD, Adam

from vcl_radial.errors import Diverged
from vcl_radial.nn import kl_divergence, variational_weights
from vcl_radial.strategies import Scores
from vcl_radial.strategies.vcl import VCL

FAMILIES = ["gaussian", "radial", "radial-eq44"]


strategy = partial(make, VCL)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_learns_a_task_and_the_posterior_becomes_the_prior(
    family, make_network, multi_head_stream, multi_head_benchmark
):
    vcl = strategy(make_network(family), multi_head_stream, train_epochs=20)
    first, second = list(multi_head_benchmark.train_stream)[:2]
    vcl.train(first, eval_streams=[])
    assert score(vcl, multi_head_benchmark.test_stream[:1]) > 95
    for weights in variational_weights(vcl.network, [0]):
        for block in weights.blocks:
            torch.testing.assert_close(block.prior.mean, block.posterior.mean)
            torch.testing.assert_close(block.prior.scale, block.posterior.scale)
    assert kl_divergence(vcl.network, [0]).item() == pytest.approx(0, abs=1e-3)
    vcl.train(second, eval_streams=[])
    assert kl_divergence(vcl.network, [0, 1]).item() == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_does_not_depend_on_the_batch_size(
    family, make_network, multi_head_stream, multi_head_benchmark
):
    experience = multi_head_benchmark.train_stream[0]
    losses = [
        loss_of_an_epoch(
            strategy(make_network(family), multi_head_stream, train_mb_size=size), experience
        )
        for size in (8, 50, 1000)
    ]
    torch.testing.assert_close(losses[1], losses[0])
    torch.testing.assert_close(losses[2], losses[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_expected_loss_does_not_depend_on_the_number_of_samples(
    family, make_network, multi_head_stream, multi_head_benchmark
):
    """Means over many draws agree within four standard errors; the KL part is the same exactly."""
    experience = multi_head_benchmark.train_stream[0]

    def draws(samples, n):
        network = make_network(family, initial_noise=0.1)
        vcl = strategy(network, multi_head_stream, train_samples=samples, train_mb_size=1000)
        vcl.optimizer_step = lambda: None
        losses = []

        class Recorder(SupervisedPlugin):
            def before_backward(self, strategy, **kwargs):
                losses.append(strategy.loss.detach())

        vcl.plugins.append(Recorder())
        vcl.train_epochs = n
        vcl.train(experience, eval_streams=[])
        return torch.stack(losses).double()

    one, eight = draws(1, 400), draws(8, 100)
    error = math.sqrt(one.var() / len(one) + eight.var() / len(eight))
    assert abs(one.mean() - eight.mean()) < 4 * error
    # And more samples do mean less noise, or the comparison would say nothing.
    assert eight.std() < 0.6 * one.std()


def test_the_penalty_weight_tempers_the_kl(make_network, multi_head_stream, multi_head_benchmark):
    experience = multi_head_benchmark.train_stream[0]

    def loss(weight):
        vcl = strategy(make_network(), multi_head_stream, penalty_weight=weight)
        return loss_of_an_epoch(vcl, experience)

    none, half, full = loss(0.0), loss(0.5), loss(1.0)
    torch.testing.assert_close(half - none, 0.5 * (full - none))
    fresh = make_network()
    fresh.head.adapt([0])
    expected = kl_divergence(fresh, [0]) / len(experience.dataset)
    torch.testing.assert_close(full - none, expected, rtol=1e-4, atol=1e-4)


def test_two_evaluations_of_one_network_agree(
    make_network, multi_head_stream, multi_head_benchmark
):
    vcl = strategy(make_network(), multi_head_stream)
    values = []
    for size in (500, 7):
        vcl.eval_mb_size = size
        torch.manual_seed(size)
        vcl.eval([multi_head_benchmark.test_stream[1]])
        values.append(scores_of(vcl).values)
    assert values[0] == pytest.approx(values[1])


def test_plugins_see_the_new_prior_when_training_of_a_task_ends(
    make_network, multi_head_stream, multi_head_benchmark
):
    seen = []

    class Witness(SupervisedPlugin):
        def after_training_exp(self, strategy, **kwargs):
            seen.append(kl_divergence(strategy.network, [0]).item())

    vcl = strategy(make_network(), multi_head_stream, plugins=[Witness()])
    vcl.train(multi_head_benchmark.train_stream[0], eval_streams=[])
    assert seen == [pytest.approx(0, abs=1e-3)]


def test_the_optimiser_starts_afresh_with_every_task(
    make_network, multi_head_stream, multi_head_benchmark
):
    moments = []

    class Witness(SupervisedPlugin):
        def before_training_exp(self, strategy, **kwargs):
            moments.append(len(strategy.optimizer.state))

    vcl = strategy(make_network(), multi_head_stream, plugins=[Witness()])
    network = make_network()
    # An optimiser of the user's own, as any Avalanche strategy takes it.
    optimizer = Adam(network.parameters(), lr=1e-3)
    stock = strategy(network, multi_head_stream, optimizer=optimizer, plugins=[Witness()])
    for each in (vcl, stock):
        for experience in list(multi_head_benchmark.train_stream)[:2]:
            each.train(experience, eval_streams=[])
    assert moments == [0, 0, 0, 0]


def test_a_stock_optimiser_trains_heads_that_come_later(
    make_network, multi_head_stream, multi_head_benchmark
):
    network = make_network()
    optimizer = Adam(network.parameters(), lr=1e-3)
    vcl = strategy(network, multi_head_stream, optimizer=optimizer)
    network.head.adapt([1])
    before = network.head.head(1).weights.mean()[0].clone()
    vcl.train(multi_head_benchmark.train_stream[1], eval_streams=[])
    assert not torch.equal(network.head.head(1).weights.mean()[0], before)


def test_stock_plugins_metrics_and_loggers_work(
    tmp_path, make_network, multi_head_stream, multi_head_benchmark
):
    scores = Scores()
    with (tmp_path / "log").open("w") as log:
        evaluator = EvaluationPlugin(
            accuracy_metrics(epoch=True, experience=True, stream=True),
            loss_metrics(experience=True),
            forgetting_metrics(experience=True),
            scores,
            loggers=[TextLogger(log)],
        )
        vcl = strategy(
            make_network(), multi_head_stream, evaluator=evaluator, plugins=[ReplayPlugin(50)]
        )
        with warnings.catch_warnings(record=True):  # the plugin calls what Avalanche deprecates
            for experience in list(multi_head_benchmark.train_stream)[:2]:
                vcl.train(experience, eval_streams=[])
                results = vcl.eval(list(multi_head_benchmark.test_stream)[:2])
    end = "_Exp/eval_phase/test_stream/Task001/Exp001"
    assert 100 * results["Top1_Acc" + end] == pytest.approx(results["accuracy" + end])
    assert results["Loss" + end] == pytest.approx(results["nll" + end], rel=1e-5)
    assert "accuracy_Exp" in (tmp_path / "log").read_text()


def test_avalanche_loaders_and_tensor_batches_train_alike(
    make_network, multi_head_stream, multi_head_benchmark
):
    """Without the tensor stream it runs as on any Avalanche benchmark, only slower."""
    vcl = strategy(make_network(), None, train_epochs=20)
    vcl.train(multi_head_benchmark.train_stream[0], eval_streams=[])
    assert score(vcl, multi_head_benchmark.test_stream[:1]) > 95


def test_a_loss_that_is_no_number_ends_the_run_in_words(
    make_network, multi_head_stream, multi_head_benchmark
):
    vcl = strategy(
        make_network(), multi_head_stream, optimizer=lambda model: SGD(model.parameters(), lr=1e30)
    )
    with pytest.raises(Diverged, match=r"the loss became (nan|inf) in epoch 1 of task 1"):
        vcl.train(multi_head_benchmark.train_stream[0], eval_streams=[])
