"""Optimisers and schedulers as users of Avalanche give them: instances, groups, plugins."""

import pytest
import torch
from avalanche.training.plugins import LRSchedulerPlugin
from failing import refuses
from learners import Driven, witness
from scenarios import network
from torch.optim import SGD, Adam
from torch.optim.lr_scheduler import StepLR

from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.optimizers.schedules import SCHEDULES, constant, cosine


def stock(name, net, kind=Adam, lr=1e-3, **settings):
    """With an optimiser of the user's own, as any Avalanche strategy takes it."""
    return Driven(name, net, optimizer=kind(net.parameters(), lr=lr), **settings)


def test_the_optimiser_starts_afresh_with_every_task():
    moments = []
    look = witness(before_training_exp=lambda s: moments.append(len(s.optimizer.state)))
    Driven("vcl", plugins=[look]).train(0, 1)
    stock("vcl", network(), plugins=[look]).train(0, 1)
    assert moments == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "posterior", "options"),
    [("ml_init_vcl", "gaussian", {"ml_epochs": 1}), ("vadam", None, {}), ("vogn", None, {}),
     ("ivon", None, {}), ("single_task", None, {})],
)  # fmt: skip
def test_an_instance_is_as_a_function_that_makes_one(name, posterior, options):
    """For every task and network anew: afresh, with the learning rate that it was given."""
    lr, ends = 0.03 if posterior is None else 1e-3, []
    for learner in (stock, Driven):
        net = network(posterior)
        net.head.adapt(range(3))
        ends.append(learner(name, net, lr=lr, **options).train(0, 1, 2).weights())
    torch.testing.assert_close(*ends, rtol=0, atol=1e-6)


def test_an_instance_trains_heads_that_come_later():
    net = network()
    driven = stock("vcl", net)
    net.head.adapt([1])
    before = net.head.head(1).weights.mean()[0].clone()
    driven.train(1)
    assert not torch.equal(net.head.head(1).weights.mean()[0], before)


@pytest.mark.parametrize("kind", [Adam, SGD])
def test_an_instance_fine_tunes_on_coresets_and_a_loaded_state_predicts_the_same(kind):
    """Its heads are none of those that the optimiser was made for."""
    options = {"lr": 0.05 if kind is SGD else 1e-3, "coreset_epochs": 10}
    first, second = (
        stock("coreset_vcl", network("gaussian", initial_noise=0.05), kind, **options)
        for _ in range(2)
    )
    second.strategy.load_state_dict(first.train(0, 1).strategy.state_dict())
    tuned = first.predictions(0, 1)
    assert torch.equal(second.predictions(0, 1), tuned)
    first.method.coreset = ()
    assert not torch.allclose(first.predictions(0, 1), tuned, atol=0.01)


def in_groups(net):
    """Means are trained, and scales are not."""
    parameters = dict(net.named_parameters())
    means = [p for name, p in parameters.items() if name.endswith("mean")]
    rhos = [p for name, p in parameters.items() if name.endswith("rho")]
    return Adam([{"params": means}, {"params": rhos, "lr": 0.0}], lr=1e-2)


def test_fine_tuning_keeps_the_groups_of_an_instance():
    net = network("gaussian", False)
    settings = {"coreset_epochs": 3, "train_epochs": 2, "schedule": lambda share: 1 - share}
    method = Driven("coreset_vcl", net, optimizer=in_groups(net), **settings).train(0).method
    tuned, trained = (
        [m for m in module.modules() if isinstance(m, PosteriorBlock)]
        for module in (method._prediction, net)
    )
    for copied, block in zip(tuned, trained, strict=True):
        assert torch.equal(copied.rho, block.rho)
        assert not torch.equal(copied.mean, block.mean)
    fresh = method._optimizer_for(method._prediction)
    assert [group["lr"] for group in fresh.param_groups] == [1e-2, 0.0]
    assert not fresh.state
    held = {id(p) for group in fresh.param_groups for p in group["params"]}
    assert held == {id(p) for p in method._prediction.parameters()}


def test_groups_that_have_no_place_for_a_new_head_are_refused():
    net = network()
    with refuses("head", "optimizer as a function"):
        Driven("vcl", net, optimizer=in_groups(net)).train(0)


def test_a_cosine_falls_from_one_to_zero_by_its_middle_to_a_half():
    assert cosine(0.0) == 1.0
    assert cosine(0.5) == pytest.approx(0.5)
    assert cosine(1.0) == pytest.approx(0.0, abs=1e-15)
    assert cosine(0.2) + cosine(0.8) == pytest.approx(1.0)


def rates(name, net, plugins=(), **settings):
    """The learning rates of every epoch of two tasks, as they are when it ends."""
    seen = []
    look = witness(
        after_training_epoch=lambda s: seen.append([g["lr"] for g in s.optimizer.param_groups])
    )
    Driven(name, net, plugins=[look, *plugins], train_epochs=4, **settings).train(0, 1)
    return torch.tensor(seen, dtype=torch.float64)


def two_groups(model):
    rho = [p for name, p in model.named_parameters() if name.endswith("rho")]
    means = [p for name, p in model.named_parameters() if not name.endswith("rho")]
    return Adam([{"params": means}, {"params": rho, "lr": 0.02}], lr=0.001)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("whole", [False, True], ids=["made for each task", "one optimiser"])
def test_every_task_begins_with_the_full_rate_of_each_group(name, whole):
    net = network()
    optimizer, full = two_groups, [0.001, 0.02]
    if whole:
        optimizer, full = Adam(net.parameters(), lr=0.01), [0.01]
    seen = rates("vcl", net, optimizer=optimizer, schedule=SCHEDULES[name])
    factors = torch.tensor([SCHEDULES[name](epoch / 4) for epoch in range(4)] * 2)
    torch.testing.assert_close(seen, factors.double()[:, None] * torch.tensor([full]))


def test_somebody_elses_schedule_is_left_alone():
    net = network(None)
    optimizer = Adam(net.parameters(), lr=0.1)
    halving = LRSchedulerPlugin(StepLR(optimizer, 1, 0.5), reset_lr=False)
    seen = rates("naive", net, [halving], optimizer=optimizer, schedule=constant)
    expected = [0.1 * 0.5**epoch for epoch in range(8)]
    assert sorted(seen.flatten().tolist(), reverse=True) == pytest.approx(expected)


def test_a_scheduler_of_an_optimiser_that_is_made_anew_is_refused():
    net = network(None)
    plugin = LRSchedulerPlugin(StepLR(Adam(net.parameters(), lr=0.1), 1, 0.5))
    driven = Driven("naive", net, plugins=[plugin])
    with refuses("LRSchedulerPlugin", "optimizer as an instance"):
        driven.train(0)
