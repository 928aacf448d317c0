"""A method as an Avalanche strategy: loaders, plugins, metrics and loggers around its steps."""

import warnings

import pytest
import torch
from avalanche.evaluation.metrics import accuracy_metrics, forgetting_metrics, loss_metrics
from avalanche.logging import TextLogger
from avalanche.models import MTSimpleMLP
from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin
from failing import refuses
from learners import Driven, witness
from scenarios import QUADRATIC, Learner, network, posterior_for
from torch import nn
from torch.optim import SGD, Adam

from vcl_radial.errors import Diverged
from vcl_radial.integrations.avalanche import Scores
from vcl_radial.integrations.avalanche.methods import VCL
from vcl_radial.nn import BayesianLinear, kl_divergence


@pytest.mark.parametrize(
    ("name", "multi_head", "options"),
    [
        ("vcl", True, {}),
        ("vcl", False, {}),
        ("coreset_vcl", True, {"coreset_epochs": 3, "ml_epochs": 2}),
        ("joint", True, {}),
        ("lwf", False, {}),
        ("replay", False, {"buffer_size": 60, "selection": "class-balanced"}),
        ("single_task", True, {}),
        ("ivon", False, {"lr": 0.1, "train_samples": 2}),
        ("si", True, {"kl_weight": 3.0}),
        ("laplace_kronecker", True, {}),
    ],
)
def test_a_strategy_ends_where_the_method_does_in_plain_pytorch(name, multi_head, options):
    """Bit for bit: batches, warm-up, schedule, steps and predictions are the method's."""
    settings = {"schedule": lambda share: 1 - share / 2, **options}
    plain, driven = (
        maker(name, network(posterior_for(name), multi_head), **{epochs: 2}, **settings)
        for maker, epochs in ((Learner, "epochs"), (Driven, "train_epochs"))
    )
    assert torch.equal(driven.train(0, 1).weights(), plain.train(0, 1).weights())
    torch.testing.assert_close(driven.predictions(0, 1, 2), plain.predictions(0, 1, 2))


@pytest.mark.parametrize("name", ["vcl", "lwf", "single_task", "ewc"])
def test_avalanche_loaders_serve_as_well(name):
    """Without the tensor stream it runs as on any Avalanche benchmark, only slower."""
    driven = Driven(name, tensors=False, lr=1e-2, train_epochs=5).train(0, 1)
    assert driven.accuracy(0, 1) > 90


@pytest.mark.parametrize("name", QUADRATIC)
def test_a_past_is_kept_of_avalanches_own_multi_head_model(name):
    torch.manual_seed(0)
    driven = Driven(name, model := MTSimpleMLP(input_size=64, hidden_size=8))
    driven.evaluate(3)  # makes a head that no task has trained
    past = driven.train(0, 1).method.past
    assert "3" in model.classifier.classifiers
    heads = {name.split(".")[2] for name in past.precision if "classifiers" in name}
    assert heads == {"0", "1"}
    assert max(P.max() for P in past.precision.values()) > 0


@pytest.mark.parametrize("name", ["lwf", "badam", "vadam", "vogn", "ivon", "sfsvi"])
def test_a_model_whose_heads_cannot_be_told_apart_is_named(name):
    model = MTSimpleMLP(64)
    if name == "sfsvi":
        model.features = BayesianLinear(64, 512)
    with refuses("MTSimpleMLP", "vcl_radial.nn.MultiHead"):
        Driven(name, model)


def adds_to_the_loss(strategy):
    """As Avalanche's EWC and MAS plugins do."""
    means = [p for n, p in strategy.model.named_parameters() if n.endswith("mean")]
    strategy.loss += 10 * sum(mean.square().sum() for mean in means)


class ByAutograd(VCL):
    """As VCL, but with a penalty that only autograd can see through."""

    def penalty(self):
        return super().penalty() * 1.0


@pytest.mark.parametrize("optimizer", [Adam, SGD])
def test_what_a_plugin_adds_to_the_loss_counts_and_it_sees_gradients(optimizer):
    ends, seen = [], set()

    def look(strategy):
        seen.update(n for n, p in strategy.model.named_parameters() if p.grad is not None)

    pulls = witness(before_backward=adds_to_the_loss, before_update=look)
    for kind, plugins in ((VCL, [pulls]), (ByAutograd, [pulls]), (VCL, [])):
        make = lambda model: optimizer(model.parameters(), lr=1e-3)  # noqa: E731
        driven = Driven(kind, optimizer=make, plugins=plugins).train(0)
        ends.append(driven.weights())
    torch.testing.assert_close(ends[0], ends[1], rtol=1e-4, atol=1e-6)
    assert ends[0].norm() < ends[2].norm()
    names = [name for name, _ in driven.strategy.model.named_parameters()]
    assert seen == {name for name in names if "head" not in name or ".0." in name}


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
def test_a_step_of_a_subclasss_own_is_taken(kind):
    driven = Driven(kind, optimizer=lambda model: SGD(model.parameters(), lr=1e-3)).train(0)
    same = dict(driven.network.named_parameters())
    for name, parameter in network().named_parameters():
        torch.testing.assert_close(same[name], parameter, rtol=0, atol=1e-7)


def test_two_evaluations_of_one_network_agree():
    driven, values = Driven("vcl"), []
    for size in (500, 7):
        driven.strategy.eval_mb_size = size
        torch.manual_seed(size)
        values.append(driven.evaluate(1))
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_plugins_see_the_new_prior_when_training_of_a_task_ends():
    seen = []
    look = witness(
        after_training_exp=lambda strategy: seen.append(kl_divergence(strategy.network, [0]).item())
    )
    Driven("vcl", plugins=[look]).train(0)
    assert seen == [pytest.approx(0, abs=1e-3)]


def test_stock_plugins_metrics_and_loggers_work(tmp_path):
    with (tmp_path / "log").open("w") as log:
        evaluator = EvaluationPlugin(
            accuracy_metrics(epoch=True, experience=True, stream=True),
            loss_metrics(experience=True),
            forgetting_metrics(experience=True),
            Scores(),
            loggers=[TextLogger(log)],
        )
        driven = Driven("vcl", evaluator=evaluator, plugins=[ReplayPlugin(50)])
        with warnings.catch_warnings(record=True):  # the plugin calls what Avalanche deprecates
            for task in (0, 1):
                results = driven.train(task).strategy.eval(driven.tests[:2])
    end = "_Exp/eval_phase/test_stream/Task001/Exp001"
    assert 100 * results["Top1_Acc" + end] == pytest.approx(results["accuracy" + end])
    assert results["Loss" + end] == pytest.approx(results["nll" + end], rel=1e-5)
    assert "accuracy_Exp" in (tmp_path / "log").read_text()


def test_a_loss_that_is_no_number_ends_the_run():
    driven = Driven("vcl", optimizer=lambda model: SGD(model.parameters(), lr=1e30))
    with refuses("epoch 1 of task 1", "learning_rate", kind=Diverged):
        driven.train(0)


@pytest.mark.parametrize(
    "criterion", [nn.MSELoss(), nn.CrossEntropyLoss(label_smoothing=0.1), lambda output, y: 0]
)
def test_another_criterion_is_refused_and_not_passed_by(criterion):
    Driven("naive", criterion=nn.CrossEntropyLoss())
    with refuses("criterion = ", "criterion()"):
        Driven("naive", criterion=criterion)


@pytest.mark.parametrize("name", ["vcl", "proximal_vcl", "gvcl", "ml_init_vcl", "ewc", "vadam"])
def test_frozen_weights_keep_their_bits(name):
    driven = Driven(name)
    driven.network.requires_grad_(True)
    body = [p for n, p in driven.network.named_parameters() if "head" not in n]
    for parameter in body:
        parameter.requires_grad_(False)
    before = [parameter.detach().clone() for parameter in body]
    driven.train(0, 1)
    assert body
    assert all(map(torch.equal, before, body))
