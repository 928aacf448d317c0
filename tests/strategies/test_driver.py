"""A method as an Avalanche strategy: loaders, plugins, metrics and optimisers around its steps."""

import warnings
from functools import partial

import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.evaluation.metrics import accuracy_metrics, forgetting_metrics, loss_metrics
from avalanche.logging import TextLogger
from avalanche.models import MTSimpleMLP
from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin
from learners import loss_of_an_epoch, make, predictions, score, scores_of, train, weights
from scenarios import Learner, network
from torch.optim import SGD, Adam

from vcl_radial.errors import Diverged, UserError
from vcl_radial.nn import kl_divergence
from vcl_radial.strategies import Scores
from vcl_radial.strategies.registry import find_strategy
from vcl_radial.strategies.vcl import VCL

strategy = partial(make, VCL)
DRIVEN = {
    "vcl": ("radial", {}),
    "coreset_vcl": ("gaussian", {"coreset_epochs": 3, "ml_epochs": 2}),
    "joint": (None, {}),
    "lwf": (None, {}),
    "replay": (None, {"buffer_size": 60, "selection": "class-balanced"}),
    "single_task": (None, {}),
    "ivon": (None, {"lr": 0.1, "train_samples": 2}),
    "si": (None, {"penalty_weight": 3.0}),
    "laplace_kronecker": (None, {}),
}


@pytest.mark.parametrize("name", DRIVEN)
def test_a_strategy_ends_where_the_method_does_in_plain_pytorch(name, scenario):
    """Bit for bit: batches, warm-up, schedule, steps and predictions are the method's."""
    multi_head, stream, benchmark = scenario
    posterior, settings = DRIVEN[name]
    settings = {"schedule": lambda share: 1 - share / 2, **settings}
    plain = Learner(name, network(posterior, multi_head), epochs=2, **settings)
    kind, tasks = find_strategy(name), list(benchmark.train_stream)[:3]
    driven = make(kind, network(posterior, multi_head), stream, train_epochs=2, **settings)
    plain.train(0, 1, 2)
    if kind.needs_whole_stream:
        torch.manual_seed(0)
        driven.train(tasks, eval_streams=[])
    else:
        train(driven, tasks)
    assert torch.equal(weights(driven), plain.weights())
    tests = benchmark.test_stream[:3]
    torch.testing.assert_close(predictions(driven, tests), plain.predictions(0, 1, 2))


@pytest.mark.parametrize("name", ["vcl", "lwf", "single_task", "ewc"])
def test_avalanche_loaders_serve_as_well(name, make_network, multi_head_benchmark):
    """Without the tensor stream it runs as on any Avalanche benchmark, only slower."""
    posterior = "radial" if name == "vcl" else None
    learner = make(find_strategy(name), make_network(posterior), None, lr=1e-2, train_epochs=5)
    train(learner, list(multi_head_benchmark.train_stream)[:2])
    assert score(learner, list(multi_head_benchmark.test_stream)[:2]) > 90


@pytest.mark.parametrize("name", ["l2", "ewc", "ewc_separate", "si", "mas"])
def test_a_past_is_kept_of_avalanches_own_multi_head_model(name, multi_head_benchmark):
    torch.manual_seed(0)
    model = MTSimpleMLP(input_size=64, hidden_size=8)
    learner = make(find_strategy(name), model)
    learner.eval([multi_head_benchmark.test_stream[3]])  # makes a head that no task has trained
    train(learner, list(multi_head_benchmark.train_stream)[:2])
    assert "3" in model.classifier.classifiers
    names = learner.method.past.precision.keys()
    assert {name.split(".")[2] for name in names if "classifiers" in name} == {"0", "1"}
    assert max(P.max() for P in learner.method.past.precision.values()) > 0


@pytest.mark.parametrize("name", ["lwf", "badam", "vadam", "vogn", "ivon"])
def test_a_model_whose_heads_cannot_be_told_apart_is_named(name):
    with pytest.raises(UserError, match=r"\w+ cannot tell the heads of a MTSimpleMLP apart"):
        make(find_strategy(name), MTSimpleMLP(64))


def test_the_loss_does_not_depend_on_the_batch_size(
    make_network, multi_head_stream, multi_head_benchmark
):
    experience = multi_head_benchmark.train_stream[0]
    losses = [
        loss_of_an_epoch(
            strategy(make_network(), multi_head_stream, train_mb_size=size), experience
        )
        for size in (8, 50, 1000)
    ]
    torch.testing.assert_close(losses[1], losses[0])
    torch.testing.assert_close(losses[2], losses[0])


class Pulls(SupervisedPlugin):
    """Adds to the loss as Avalanche's EWC and MAS plugins do, and sees the gradients."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def before_backward(self, strategy, **kwargs):
        means = [p for n, p in strategy.model.named_parameters() if n.endswith("mean")]
        strategy.loss += 10 * sum(mean.square().sum() for mean in means)

    def before_update(self, strategy, **kwargs):
        self.found |= {n for n, p in strategy.model.named_parameters() if p.grad is not None}


class ByAutograd(VCL):
    """As VCL, but with a penalty that only autograd can see through."""

    def penalty(self):
        return super().penalty() * 1.0


@pytest.mark.parametrize("optimizer", [Adam, SGD])
def test_what_a_plugin_adds_to_the_loss_counts_and_it_sees_gradients(
    optimizer, make_network, multi_head_stream, multi_head_benchmark
):
    ends, plugin = [], Pulls()
    settings = {"optimizer": lambda model: optimizer(model.parameters(), lr=1e-3)}
    for kind, plugins in ((VCL, [plugin]), (ByAutograd, [Pulls()]), (VCL, [])):
        vcl = make(kind, make_network(), multi_head_stream, plugins=plugins, **settings)
        train(vcl, list(multi_head_benchmark.train_stream)[:1])
        ends.append(weights(vcl))
    torch.testing.assert_close(ends[0], ends[1], rtol=1e-4, atol=1e-6)
    assert ends[0].norm() < ends[2].norm()
    names = [name for name, _ in vcl.model.named_parameters()]
    assert plugin.found == {name for name in names if "head" not in name or ".0." in name}


class StepsShort(VCL):
    """Clips gradients that it wants to find."""

    def optimizer_step(self):
        gradients = [p for group in self.optimizer.param_groups for p in group["params"]]
        assert torch.nn.utils.clip_grad_norm_(gradients, 1e-9) > 0
        super().optimizer_step()


class StandsStill(VCL):
    """Throws its gradients away."""

    def backward(self):
        super().backward()
        self.optimizer.zero_grad()


@pytest.mark.parametrize("kind", [StepsShort, StandsStill])
def test_a_step_of_a_subclasss_own_is_taken(
    kind, make_network, multi_head_stream, multi_head_benchmark
):
    start = make_network()
    settings = {"optimizer": lambda model: SGD(model.parameters(), lr=1e-3)}
    vcl = make(kind, make_network(), multi_head_stream, **settings)
    train(vcl, list(multi_head_benchmark.train_stream)[:1])
    same = dict(vcl.network.named_parameters())
    for name, parameter in start.named_parameters():
        torch.testing.assert_close(same[name], parameter, rtol=0, atol=1e-7)


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


def test_a_loss_that_is_no_number_ends_the_run_in_words(
    make_network, multi_head_stream, multi_head_benchmark
):
    vcl = strategy(
        make_network(), multi_head_stream, optimizer=lambda model: SGD(model.parameters(), lr=1e30)
    )
    with pytest.raises(Diverged, match=r"the loss became (nan|inf) in epoch 1 of task 1"):
        vcl.train(multi_head_benchmark.train_stream[0], eval_streams=[])
