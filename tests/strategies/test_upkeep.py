"""What is looked at while a method runs; the faults themselves are in tests/conformance."""

import pytest
import torch
from failing import refuses
from learners import Driven
from scenarios import digits, network, quick_recipe

from vcl_radial.errors import Diverged, UserError
from vcl_radial.integrations.avalanche import ContinualStrategy, Strategy
from vcl_radial.integrations.avalanche.upkeep import Upkeep
from vcl_radial.methods.base import Method
from vcl_radial.tracks.continual.methods import make_strategy
from vcl_radial.tracks.continual.networks import make_network

QUICK = {"epochs": 2, "batch_size": 100, "hidden": [8]}


def ended(name, plugins):
    """The weights of a shipped method after two tasks."""
    torch.manual_seed(0)
    recipe = quick_recipe(name, QUICK)
    net = make_network(digits(), recipe)

    def made(model, **settings):
        return make_strategy(recipe, model, tensor_stream=digits(), plugins=plugins)

    return Driven(made, net).train(0, 1).weights()


@pytest.mark.parametrize("name", ["radial-vcl", "ewc", "replay", "vadam"])
def test_a_method_trains_under_it_as_without(name):
    assert torch.equal(ended(name, []), ended(name, [Upkeep()]))


class DecaysToZero(ContinualStrategy):
    """A penalty that is always the same needs nothing stored."""

    def penalty(self):
        return sum(w.square().sum() for w in self.network.parameters())


class StoresAsATaskStarts(ContinualStrategy):
    """What it reads is stored elsewhere than in consolidate()."""

    old = ()

    def penalty(self):
        pairs = zip(self.network.body.parameters(), self.old, strict=False)
        return sum(((new - old) ** 2).sum() for new, old in pairs)

    def _before_training_exp(self, **kwargs):
        super()._before_training_exp(**kwargs)
        if self.experience.current_experience:
            self.old = [w.detach().clone() for w in self.network.body.parameters()]


class ReadsTheBatch(ContinualStrategy):
    """Its penalty cannot be asked before there is a batch."""

    def penalty(self):
        return self.model(self.mb_x, self.mb_task_id).square().mean()


class CarriesNothing(ContinualStrategy):
    memoryless = True

    def penalty(self):
        return 0.0


@pytest.mark.parametrize(
    "method", [DecaysToZero, StoresAsATaskStarts, ReadsTheBatch, CarriesNothing]
)
def test_what_is_in_order_is_left_alone(method):
    Driven(method, network(None), plugins=[Upkeep()]).train(0, 1, 2)


class Forgets(StoresAsATaskStarts):
    def _before_training_exp(self, **kwargs):
        ContinualStrategy._before_training_exp(self, **kwargs)


class ForgetsWithATensor(Forgets):
    def penalty(self):
        return torch.zeros(()) + super().penalty()


@pytest.mark.parametrize("method", [Forgets, ForgetsWithATensor])
@pytest.mark.parametrize("epochs", [1, 3])
def test_a_method_that_stores_nothing_is_stopped_early_in_its_second_task(method, epochs):
    driven = Driven(method, network(None), plugins=[Upkeep()], train_epochs=epochs).train(0)
    with refuses(method.__name__, "penalty()", "task 2", "consolidate()"):
        driven.train(1)
    assert driven.strategy.clock.train_exp_epochs == 0


class Draws(ContinualStrategy):
    def penalty(self):
        noise = torch.randn(())
        return sum(w.square().sum() for w in self.network.parameters()) * noise.square()


def test_asking_for_a_penalty_that_draws_does_not_change_training():
    ends = [
        Driven(Draws, network(None), plugins=plugins).train(0, 1).weights()
        for plugins in ([], [Upkeep()])
    ]
    assert torch.equal(*ends)


class IsNaN(ContinualStrategy):
    def penalty(self):
        return torch.nan * sum(w.sum() for w in self.network.parameters())


class IsNaNMethod(Method):
    penalty = IsNaN.penalty


class SpoilsAWeight(Method):
    @torch.no_grad()
    def end_task(self, task):
        self.network.body[0].bias[0] = torch.nan


@pytest.mark.parametrize(
    ("kind", "error", "hook"),
    [
        (IsNaN, Diverged, "consolidate()"),
        (IsNaNMethod, Diverged, "end_task()"),
        (SpoilsAWeight, UserError, "end_task()"),
    ],
)
def test_what_is_to_be_looked_at_is_called_as_the_class_calls_it(kind, error, hook):
    def driving(model, eval_samples, **settings):
        return Strategy(kind(model), **settings)

    made = driving if issubclass(kind, Method) else kind
    with refuses(kind.__name__, hook, kind=error):
        Driven(made, network(None), plugins=[Upkeep()]).train(0)


class Detached(ContinualStrategy):
    def penalty(self):
        return sum(w.detach().square().sum() for w in self.network.parameters())


class Decays(Detached):
    """The gradient of its penalty is where a step begins."""

    def _before_update(self, **kwargs):
        super()._before_update(**kwargs)
        for weight in self.network.body.parameters():
            weight.grad.add_(weight.detach(), alpha=1e-4)


def test_a_value_without_a_gradient_is_refused_where_no_step_of_its_own_has_it():
    with refuses("penalty()", "Detached", "gradient"):
        Driven(Detached, network(None), plugins=[Upkeep()]).train(0)
    Driven(Decays, network(None), plugins=[Upkeep()]).train(0)


class PullsBack(ContinualStrategy):
    """A quadratic penalty, of which the KL of a posterior is no part."""

    old = ()

    def penalty(self):
        pairs = zip(self.network.parameters(), self.old, strict=False)
        return sum(((new - old) ** 2).sum() for new, old in pairs)

    def consolidate(self, experience):
        self.old = [w.detach().clone() for w in self.network.parameters()]


@pytest.mark.parametrize("method", [PullsBack, ContinualStrategy])
def test_a_posterior_without_its_kl_is_refused_before_anything_is_trained(method):
    driven = Driven(method, network("radial"), plugins=[Upkeep()])
    before = driven.weights()
    with refuses("posterior = 'none'"):
        driven.train(0)
    assert torch.equal(before, driven.weights()[: len(before)])
