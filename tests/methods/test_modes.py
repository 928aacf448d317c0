"""The mode of a network: steps train, and all else of a method is asked in evaluation mode."""

import copy

import pytest
import torch
from torch import nn
from torch.optim import Adam

from vcl_radial.data.streams import build_stream, to_avalanche
from vcl_radial.integrations.avalanche import ContinualStrategy, Strategy
from vcl_radial.likelihoods.predict import in_mode, log_predictive
from vcl_radial.methods.badam import BAdam
from vcl_radial.methods.deep_ensemble import DeepEnsemble
from vcl_radial.methods.ewc import EWC
from vcl_radial.methods.mc_dropout import MCDropout
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.methods.vadam import VADAM
from vcl_radial.nn import WithHeads
from vcl_radial.training.loop import TaskLoop

HOOKS = (
    "begin_task",
    "end_task",
    "select",
    "fit_likelihood",
    "predict",
    "draws",
    "posterior_outputs",
)


def network(inputs=6, classes=2):
    torch.manual_seed(0)
    body = nn.Sequential(
        nn.Flatten(), nn.Linear(inputs, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3)
    )
    return WithHeads(body, (inputs,), classes, multi_head=False, posterior=None)


def points():
    x = torch.randn(30, 6, generator=torch.Generator().manual_seed(1))
    return Batch(x, (x[:, 0] > 0).long())


def task():
    return Task(0, 30, lambda: points().split(10))


def adam(module):
    return Adam(module.parameters(), lr=1e-2)


def plain_loop(method, between=lambda method: None):
    method.begin_task(task())
    optimizer = method.make_optimizer(adam)
    torch.manual_seed(2)
    for batch in points().split(10):
        method.learn(batch, optimizer)
        between(method)
    method.end_task(method.task)
    return method


def task_loop(method):
    loop = TaskLoop(method, task(), adam)
    torch.manual_seed(2)
    loop.learn(points().split(10), 0.0)
    loop.end()
    return method


def modes(network):
    return [module.training for module in network.modules()]


def looks(method):
    """Calls the network in every way that a method has."""
    for batch in method.task.batches():
        method.network(batch.x)
    for call, _ in method.points():
        method.output(*call)


class LooksAtTheEnd(Naive):
    def end_task(self, task):
        looks(self)


class LooksAtTheStart(Naive):
    def begin_task(self, task):
        super().begin_task(task)
        looks(self)


class Mixin:
    def end_task(self, task):
        looks(self)


class LooksByAMixin(Mixin, Naive):
    pass


def same(a, b):
    return all(map(torch.equal, a.network.state_dict().values(), b.network.state_dict().values()))


@pytest.mark.parametrize("kind", [LooksAtTheEnd, LooksAtTheStart, LooksByAMixin])
@pytest.mark.parametrize("loop", [plain_loop, task_loop])
def test_a_method_that_looks_at_the_points_and_carries_nothing_is_the_naive_one(kind, loop):
    assert same(loop(kind(network())), loop(Naive(network())))


def test_fisher_information_leaves_the_averages_of_norms_as_they_are():
    assert same(plain_loop(EWC(network(), kl_weight=0)), plain_loop(Naive(network())))


def seeing(name, seen):
    """A function of this name that notes whether a module is in training mode."""

    def function(self, *args, **kwargs):
        seen.append((name, any(modes(self.network))))
        return getattr(Naive, name)(self, *args, **kwargs)

    return function


@pytest.mark.parametrize("training", [True, False])
def test_steps_train_and_every_hook_evaluates_whatever_mode_the_user_sets(training):
    seen = []
    names = (*HOOKS, "outputs")
    kind = type("Sees", (Naive,), {name: seeing(name, seen) for name in names})
    method = kind(network().train(training))
    method.select(points)
    plain_loop(method, lambda m: (m.network.train(training), m.predict(points().x)))
    method.fit_likelihood()
    assert next(method.points())
    method.posterior_outputs(points().x)
    assert {name for name, _ in seen} == {*names}
    assert all(trains == (name == "outputs") for name, trains in seen)


def test_a_step_and_a_prediction_leave_the_mode_of_each_module():
    method = Naive(network())
    norm = method.network.body[2].eval()
    before = modes(method.network)
    plain_loop(method, lambda m: m.predict(points().x))
    assert modes(method.network) == before
    assert int(norm.num_batches_tracked) == 0
    method.network.eval()
    method.learn(points(), adam(method.network))
    assert not any(modes(method.network))
    assert int(norm.num_batches_tracked) == 1


def test_training_goes_on_as_if_nothing_had_been_predicted():
    plain = plain_loop(Naive(network()))
    assert same(plain_loop(Naive(network()), lambda m: m.predict(points().x)), plain)


@pytest.mark.parametrize("kind", [Naive, MCDropout])
def test_a_prediction_does_not_depend_on_the_other_rows(kind):
    method = plain_loop(kind(network()))
    x = points().x
    torch.testing.assert_close(method.predict(x[:3]), method.predict(x)[:3])
    torch.testing.assert_close(log_predictive(network(), x[:1]), log_predictive(network(), x)[:1])


def test_the_draws_of_mc_dropout_differ():
    method = plain_loop(MCDropout(network(), rate=0.5))
    assert float(method.draws(points().x, samples=20).std(0).max()) > 0


def test_an_end_that_fails_leaves_the_mode():
    class Fails(Naive):
        def end_task(self, task):
            raise ZeroDivisionError

    method = Fails(network())
    with pytest.raises(ZeroDivisionError):
        plain_loop(method)
    assert all(modes(method.network))


def test_points_that_are_left_half_way_leave_the_mode():
    method = Naive(network())
    method.begin_task(task())
    for _ in method.points():
        assert not any(modes(method.network))
        break
    assert all(modes(method.network))


def test_a_copy_of_a_method_predicts_the_same():
    method = plain_loop(LooksAtTheEnd(network()))
    x = points().x
    assert torch.equal(copy.deepcopy(method).predict(x), method.predict(x))


def test_a_module_that_rests_while_its_network_trains_is_left_alone():
    net = network()
    net.body[2].eval()
    with in_mode(net, training=True):
        assert net.training
        assert not net.body[2].training


class Consolidates(ContinualStrategy):
    def consolidate(self, experience):
        for batch in self.method.task.batches():
            self.network(batch.x)


def test_avalanche_ends_a_task_in_evaluation_mode_too():
    stream = build_stream({"kind": "split", "dataset": "digits", "heads": "single"})
    (first, *_) = to_avalanche(stream).train_stream
    states = []
    for make in (
        lambda **kw: Strategy(LooksAtTheEnd(network(64, 10)), **kw),
        lambda **kw: Consolidates(model=network(64, 10), **kw),
        lambda **kw: Strategy(Naive(network(64, 10)), **kw),
    ):
        strategy = make(optimizer=adam, train_mb_size=64, evaluator=None, tensor_stream=stream)
        torch.manual_seed(2)
        strategy.train(first)
        states.append(strategy)
    assert same(states[0], states[2])
    assert same(states[1], states[2])


@pytest.mark.parametrize("kind", [Naive, BAdam, VADAM, DeepEnsemble])
def test_a_network_that_was_left_in_evaluation_mode_is_trained_in_training_mode(kind):
    method = kind(network().eval())
    method.begin_task(task())
    optimizer = method.make_optimizer(adam)
    before = [m.running_mean.clone() for m in norms(method)]
    method.learn(next(points().split(10)), optimizer)
    assert before
    for mean, norm in zip(before, norms(method), strict=True):
        assert not torch.equal(mean, norm.running_mean)


def norms(method):
    return [m for m in method.network.modules() if isinstance(m, nn.BatchNorm1d)]


def test_a_norm_that_rests_stays_so_when_heads_are_added():
    body = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8))
    body[1].eval()
    made = WithHeads(body, (6,), 2, posterior=None)
    assert made.body[0].training
    assert not made.body[1].training
