from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest
import torch
from avalanche.core import SupervisedPlugin

from benchmarks.speed.plain_avalanche import PlainBayesianLinear, PlainVCL, second_task
from benchmarks.speed.setting import Setting
from benchmarks.speed.training import (
    EPOCH,
    FIXED,
    STEP,
    Training,
    epochs_to_fill,
    floor,
    number_of_weights,
)
from vcl_radial.posteriors import Gaussian


class Batches(SupervisedPlugin):
    """What a strategy is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[torch.Tensor] = []

    def before_forward(self, strategy, **kwargs) -> None:
        self.seen.append(strategy.mb_x.flatten(1).clone())


def training(method: str, tiny: Setting, **keys) -> Training:
    keys = {"epochs": 2, **tiny.sizes.recipe, **keys}
    return Training(method, keys, tiny.images, tiny)


def with_clock(setting: Setting) -> SimpleNamespace:
    """The setting, with a clock that goes on by a second each time that it is read."""
    now = count(1.0)
    return SimpleNamespace(**{**vars(setting), "clock": lambda: next(now)})


def distinct(images: torch.Tensor) -> set[bytes]:
    return {image.mul(1e3).round().short().numpy().tobytes() for image in images}


def batches_of_one_epoch(strategy, train) -> list[torch.Tensor]:
    batches = Batches()
    strategy.plugins.append(batches)
    train()
    return batches.seen[: len(batches.seen) // 2]


@pytest.mark.parametrize("hidden", [[8], [16, 4, 8]])
def test_the_floor_has_as_many_weights_as_our_networks(tiny, hidden):
    point = training("naive", tiny, hidden=hidden)
    bayesian = training("radial-vcl", tiny, hidden=hidden)
    floors = sum(p.numel() for p in floor(point).network.parameters())
    heads = 2  # the first task was trained too
    for ours, per_weight in ((point, 1), (bayesian, 2)):
        ours.train()
        parameters = sum(p.numel() for p in ours.strategy.network.parameters())
        assert parameters == per_weight * number_of_weights(ours.layers, heads)
    assert floors == number_of_weights(point.layers)


def test_the_floor_is_trained_on_the_batches_that_ours_is_trained_on(tiny):
    ours = training("gaussian-vcl", tiny)
    theirs = [x for x, _ in floor(ours).batches()]
    seen = batches_of_one_epoch(ours.strategy, ours.train)
    assert [len(x) for x in seen] == [len(x) for x in theirs] == [16] * 4
    assert ours.steps == 4
    task = distinct(floor(ours).x)
    assert distinct(torch.cat(seen)) <= task
    assert len(distinct(torch.cat(theirs))) == 64  # none twice


def test_stock_avalanche_is_trained_on_the_same_images_in_batches_of_the_same_sizes(tiny):
    ours = training("gaussian-vcl", tiny)
    layer = partial(PlainBayesianLinear, rho=-6.0)
    strategies = []

    def make(**settings):
        strategies.append(PlainVCL(**settings))
        return strategies[0]

    train = second_task(make, layer, ours, tiny.images, "cpu")
    seen = batches_of_one_epoch(strategies[0], train)
    assert [len(x) for x in seen] == [16] * 4
    nearest = torch.cdist(torch.cat(seen), floor(ours).x).min(1).values
    assert nearest.max() < 0.5  # two noise images are some 40 apart


def test_it_is_the_second_task_that_is_trained_against_a_carried_prior(tiny):
    ours = training("radial-vcl", tiny)
    assert ours.strategy.clock.train_exp_counter == 1
    tasks = []

    class Task(SupervisedPlugin):
        def before_training_exp(self, strategy, **kwargs) -> None:
            tasks.append(strategy.experience.current_experience)

    ours.strategy.plugins.append(Task())
    ours.train()
    ours.train()
    assert tasks == [1, 1]


def test_epochs_and_fixed_costs_add_up_to_a_call(tiny):
    ours = training("naive", with_clock(tiny), epochs=5)
    # The clock is read before, after each of five epochs, and at the end: 6 ticks in all.
    assert ours.train() == {STEP: 1.0 / ours.steps, EPOCH: 1.0, FIXED: 6.0 - 5 * 1.0}


def test_the_floor_learns(tiny):
    loop = floor(training("naive", tiny, epochs=40))
    before = loop.loss(loop.x, loop.y)
    loop.train()
    assert loop.loss(loop.x, loop.y) < before / 2


def test_the_floor_computes_what_ours_does(tiny):
    ours = training("naive", tiny)
    loop = floor(ours)
    network = ours.strategy.network
    parts = (network.body, network.head.head(1))
    of_ours = [p.detach() for part in parts for p in part.parameters()]
    loop.network.load_state_dict(dict(zip(loop.network.state_dict(), of_ours, strict=True)))
    # Not close but equal: the same products in the same precision.
    torch.testing.assert_close(loop.network(loop.x), network(loop.x, 1), rtol=0, atol=0)


@pytest.mark.parametrize(("rows", "epochs", "steps"), [(16, 2, 4), (24, 5, 3)])
def test_a_call_of_the_floor_makes_its_steps(tiny, monkeypatch, rows, epochs, steps):
    loop = floor(training("naive", tiny, batch_size=rows))
    loop.epochs, made = epochs, []
    monkeypatch.setattr(loop.optimizer, "step", lambda: made.append(1))
    loop.train()
    assert len(made) == loop.steps == epochs * steps


def test_a_step_is_its_share_of_an_epoch_without_what_a_task_costs_once(tiny):
    ours = training("naive", with_clock(tiny))
    ours.fill(3.0)  # an epoch lasts a second, from its end to the next one's
    assert ours.strategy.train_epochs == 3
    assert ours.train()[STEP] == 1 / ours.steps


@pytest.mark.parametrize(("epoch", "epochs"), [(0.3, 4), (1.0, 2), (5.0, 2), (0.001, 1000)])
def test_a_unit_is_filled_with_two_epochs_or_more(epoch, epochs):
    assert epochs_to_fill(1.0, epoch) == epochs


def test_the_plain_layer_has_the_gaussian_kl():
    layer = PlainBayesianLinear(3, 2, rho=0.3)
    layer.prior_mean.normal_()
    layer.prior_scale.uniform_(0.5, 2)
    posterior = Gaussian(layer.mean, torch.nn.functional.softplus(layer.rho))
    prior = Gaussian(layer.prior_mean, layer.prior_scale)
    torch.testing.assert_close(layer.kl(), posterior.kl(prior).sum())
    layer.consolidate()
    assert layer.kl().abs() < 1e-6
