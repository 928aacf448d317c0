"""Parameters that the user froze (`requires_grad = False`) keep their bits, in every method."""

from functools import partial

import pytest
import torch
from failing import refuses
from scenarios import OF_CLASSES, Learner, copies, network, posterior_for
from test_every_method import CASES, ONE_AFTER_ANOTHER, learner, posterior_of
from torch import nn
from torch.optim import SGD, Adam

from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import MLP, WithHeads

PARTS = [
    *((case, part) for case in CASES for part in ("body.", "head.heads.0.")),
    # A network for `ivon` has no scales; it cannot be made where its package is missing.
    *((case, "rho") for case in CASES if case != "ivon" and posterior_of(case) is not None),
]
"""What is frozen: all parameters whose names hold these letters."""


def freeze(network, part):
    for name, parameter in network.named_parameters():
        if part in name:
            parameter.requires_grad_(False)


def frozen(network):
    """Copies of what is frozen, by name."""
    held = {name for name, p in network.named_parameters() if not p.requires_grad}
    return {name: weight for name, weight in copies(network).items() if name in held}


def same(before, network):
    now = copies(network)
    return all(torch.equal(weight, now[name]) for name, weight in before.items())


@pytest.mark.parametrize(("case", "part"), PARTS)
def test_they_rest_while_others_learn(case, part):
    trained = learner(case)
    trained.adapt(0, 1)
    freeze(trained.network, part)
    held, start = frozen(trained.network), copies(trained.network)
    if case == "laplace_linearised last-layer" and "head" in part:
        with refuses("frozen"):
            trained.train(0)
        return
    trained.train(0, 1)
    assert same(held, trained.network)
    assert frozen(trained.network).keys() >= held.keys()
    assert not same(start, trained.network)
    assert trained.predictions(0, 1).isfinite().all()


@pytest.mark.parametrize("one", [0, 1])
@pytest.mark.parametrize("name", OF_CLASSES)
def test_one_parameter_of_a_layer_rests(name, one):
    """The weight or bias of point estimates, the means or scales of a posterior."""
    net = network(posterior_for(name), hidden=(16,))
    trained = Learner(name, net, lr=1e-2, batch_size=100)
    list(net.body.parameters())[one].requires_grad_(False)
    held = frozen(trained.network)
    if name == "laplace_linearised":
        with refuses("trained in full"):
            trained.train(0)
        return
    assert same(held, trained.train(0, 1).network)


@pytest.mark.parametrize("case", [case for case in ONE_AFTER_ANOTHER if case != "learning_body"])
def test_they_rest_between_two_tasks_and_learn_again_after_them(case):
    """The body of `learning_body` is held between tasks anyway: it is frozen before the first."""
    trained = learner(case).train(0)
    before = {name for name, p in trained.network.named_parameters() if p.requires_grad}
    freeze(trained.network, "body.")
    held = frozen(trained.network)
    assert same(held, trained.train(1).network)
    for name, parameter in trained.network.named_parameters():
        parameter.requires_grad_(name in before or name not in held)
    trained.train(2)
    assert trained.predictions(0, 1, 2).isfinite().all()
    free = {name: weight for name, weight in held.items() if name in before and weight.numel()}
    assert not free or case.startswith("frozen_body") or not same(free, trained.network)


SGD_THAT_DECAYS = partial(SGD, momentum=0.9, weight_decay=0.1)


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [
        ("vcl", Adam),
        ("vcl", SGD_THAT_DECAYS),
        ("vcl", torch.optim.RMSprop),
        ("proximal_vcl", Adam),
        ("proximal_vcl", SGD_THAT_DECAYS),
    ],
)
@pytest.mark.parametrize("loss_value", [True, False])
def test_they_rest_from_the_middle_of_a_task_on(name, optimizer, loss_value):
    settings = {"loss_value": loss_value, "train_samples": 2, "optimizer": optimizer}
    trained = Learner(name, network(hidden=(16,)), batch_size=100, **settings).train(0)
    trained.begin(1)
    for part in ("body.", "mean", "rho"):
        trained.network.requires_grad_(True)
        trained.loop.learn(trained.batches(), 0.0)
        freeze(trained.network, part)
        held = frozen(trained.network)
        trained.loop.learn(trained.batches(), 0.0)
        assert same(held, trained.network)
    trained.loop.end()
    assert same(held, trained.network)


@pytest.mark.parametrize("case", ["ivon", "si", "vadam", "ewc", "badam"])
def test_thawed_in_the_middle_of_a_task_they_learn(case):
    trained = learner(case).train(0)
    freeze(trained.network, "body.")
    trained.begin(1)
    trained.loop.learn(trained.batches(), 0.0)
    held = frozen(trained.network)
    trained.network.requires_grad_(True)
    trained.loop.learn(trained.batches(), 0.0)
    trained.loop.end()
    # An optimiser of posteriors has those that were trainable where the task began.
    assert same(held, trained.network) is (case in {"ivon", "vadam"})


@pytest.mark.parametrize("posterior", ["radial", "low-rank", "rdp"])
def test_a_restart_leaves_frozen_scales(posterior):
    net = MLP(64, 2, hidden=(16,), posterior=posterior)
    trained = Learner("vcl", net, restart=True, lr=1e-2).train(0)
    freeze(net, "body.")
    held = frozen(net)
    assert same(held, trained.train(1).network)


@pytest.mark.parametrize("posterior", [None, "radial", "rdp"])
def test_the_members_of_an_ensemble_share_frozen_weights_alone(posterior):
    net = MLP(64, 2, hidden=(16, 16), posterior=posterior)
    freeze(net, "body.0.")
    first, second = Learner("deep_ensemble", net, members=2).method.members
    assert same(frozen(first), second)
    assert frozen(second).keys() == frozen(first).keys()
    assert not same(copies(first.body[1]), second.body[1])


def test_a_network_that_is_frozen_as_a_whole_is_refused():
    net = network("radial", multi_head=False)
    net.requires_grad_(False)
    with refuses("frozen"):
        Learner("vcl", net).train(0)


@pytest.mark.parametrize(
    ("posterior", "point_heads"),
    [("none", False), ("radial", True), ("radial", False), ("low-rank", False)],
)
def test_heads_learn_on_a_frozen_body_of_the_users_own(posterior, point_heads):
    body = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU()).requires_grad_(False)
    net = WithHeads(body, (64,), 2, posterior=posterior, point_heads=point_heads)
    held = frozen(net)
    assert held.keys() == {name for name, _ in net.named_parameters() if "body" in name}
    kind = "naive" if posterior == "none" else "vcl"
    trained = Learner(kind, net, lr=3e-2, epochs=4).train(0, 1)
    assert same(held, net)
    assert trained.accuracy(0) > 80


@pytest.mark.parametrize("read", [True, False])
def test_what_is_trainable_goes_where_it_goes_with_the_frozen_part_left_out(read):
    """The gradient of the others is the same whether the body asks for one or not."""
    ends = []
    for part in ("body.", "nothing"):
        torch.manual_seed(0)
        net = MLP(6, 2, hidden=[8], multi_head=False, posterior="radial").double()
        freeze(net, part)
        trained = VCL(net)
        trained.gradients_are_read = read
        ends.append((trained, net))
    x = torch.randn(20, 6, dtype=torch.float64)
    heads = []
    for trained, net in ends:
        batch = Batch(x, (x[:, 0] > 0).long())
        trained.begin_task(Task(0, 20, lambda batch=batch: iter([batch])))
        torch.manual_seed(1)
        trained.learn(batch, SGD(net.parameters(), lr=0.1))
        heads.append(torch.cat([p.flatten() for p in net.head.parameters()]))
    assert torch.equal(*heads)
