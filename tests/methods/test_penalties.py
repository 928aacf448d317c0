"""What is looked at of a penalty while a method is trained, whoever trains it."""

import pytest
import torch
from failing import refuses
from scenarios import Learner, network
from torch import nn

from vcl_radial.errors import Diverged
from vcl_radial.methods.base import Method
from vcl_radial.methods.penalties import malformed
from vcl_radial.methods.vcl import VCL
from vcl_radial.training.loop import TaskLoop


@pytest.mark.parametrize(
    ("penalty", "fault"),
    [
        (torch.tensor(1.0, requires_grad=True), None),
        (torch.ones(1, 1, requires_grad=True), None),
        (torch.tensor(0.0), None),
        (torch.tensor(torch.nan), None),
        (0, None),
        (0.0, None),
        (3.25, "gives 3.25 "),
        (float("nan"), "gives nan "),
        (None, "gives NoneType"),
        ("abc", "gives str"),
        ((1.0,), "gives tuple"),
        (torch.ones(3, requires_grad=True), "gives shape (3,)"),
        (torch.tensor(3.25), "gives 3.25 "),
    ],
)
def test_a_penalty_is_one_number_with_a_gradient_or_0(penalty, fault):
    line = malformed(penalty)
    assert (line is None) is (fault is None)
    assert fault is None or line.startswith(fault)


def test_a_gradient_may_be_elsewhere_than_in_the_value():
    assert malformed(torch.tensor(3.25), gradient_elsewhere=True) is None
    assert malformed(torch.ones(3), gradient_elsewhere=True) is not None


class Gives(Method):
    """A penalty that a test makes of the weights."""

    def __init__(self, net, make, **settings):
        super().__init__(net, **settings)
        self.make, self.times = make, 0

    def penalty(self):
        self.times += 1
        return self.make(sum(w.square().sum() for w in self.network.parameters()))


@pytest.mark.parametrize(
    "make",
    [lambda squares: "abc", lambda squares: squares.item(), lambda squares: squares.detach()],
)
@pytest.mark.parametrize("loss_value", [True, False])
def test_a_malformed_penalty_ends_a_task_where_it_begins(make, loss_value):
    net = network(None, multi_head=False)
    learner = Learner(Gives, net, make=make, loss_value=loss_value)
    before = learner.weights()
    with refuses("penalty() of Gives"):
        learner.begin(0)
    assert torch.equal(before, learner.weights())
    assert learner.method.loss_value is loss_value


def test_one_that_is_no_number_is_named_with_what_a_method_stores_by():
    learner = Learner(Gives, network(None), make=lambda squares: squares * torch.nan)
    line = r"^penalty\(\) of Gives is nan .*task 2: .*end_task\(\)"
    with pytest.raises(Diverged, match=line):
        learner.begin(1)


def test_a_shape_is_named_where_a_posterior_is_asked_for_its_kl_too():
    learner = Learner(Gives, network("gaussian"), make=lambda squares: squares * torch.ones(3))
    with refuses("penalty() of Gives", "(3,)"):
        learner.begin(0)


def test_one_that_a_step_makes_infinite_is_left_to_the_loss():
    learner = Learner(Gives, network(None), make=lambda squares: squares, lr=1e30)
    learner.begin(0)
    learner.loop.learn([*learner.batches()][:1], 0.0)
    assert torch.isinf(learner.method.penalty())
    learner.loop.learn([*learner.batches()][:1], 0.0)
    with refuses("the loss", kind=Diverged):
        learner.loop.check_loss("in task 1")


class Pulls(Method):
    """The square of the distance from the last task's weights, with no gradient."""

    old = None

    @torch.no_grad()
    def penalty(self):
        if self.old is None:
            return 0.0
        return sum((w - self.old[name]).square().sum() for name, w in self.parameters())

    def parameters(self):
        return self.network.body.named_parameters()

    def end_task(self, task):
        self.old = {name: w.detach().clone() for name, w in self.parameters()}


def test_a_distance_without_a_gradient_is_0_where_a_task_begins_and_is_named_after_a_step():
    learner = Learner(Pulls, network(None)).train(0)
    learner.begin(1)
    batches = learner.batches()
    with refuses("penalty() of Pulls", "gradient"):
        learner.loop.learn(batches, 0.0)
    assert len([*batches]) > 1


@pytest.mark.parametrize(
    "make",
    [
        lambda squares: 0,
        lambda squares: 0.0,
        lambda squares: torch.zeros(()),
        lambda squares: 0.0 * squares,
        lambda squares: squares.unsqueeze(0),
    ],
)
def test_what_is_in_order_is_left_alone(make):
    Learner(Gives, network(None), make=make, loss_value=False).train(0, 1)


def test_one_that_fails_before_a_step_fails_in_it():
    def needs(squares):
        raise KeyError("old")

    learner = Learner(Gives, network(None), make=needs)
    learner.begin(0)
    with pytest.raises(KeyError, match="old"):
        learner.loop.learn(learner.batches(), 0.0)


class Shrinks(Pulls):
    """The gradient of its penalty is in a step of its own."""

    @torch.no_grad()
    def step(self, optimizer):
        super().step(optimizer)
        for name, weight in self.parameters():
            if self.old is not None:
                weight.lerp_(self.old[name], 0.1)


class Detached(VCL):
    def penalty(self):
        return super().penalty().detach()


def test_a_method_may_have_the_gradient_in_its_step():
    Learner(Shrinks, network(None)).train(0, 1)
    for name in ("vcl", "vadam"):  # in closed form, and in the optimiser
        Learner(name, loss_value=True).train(0, 1)


def test_a_step_that_does_not_know_the_penalty_holds_no_gradient_of_it():
    with refuses("penalty() of Detached", "gradient"):
        Learner(Detached, network("gaussian")).begin(0)


def test_a_task_is_looked_at_twice_however_many_steps_it_has():
    learner = Learner(Gives, network(None), make=lambda squares: squares)
    learner.train(0)
    assert len(learner.losses) > 5
    assert learner.method.times == len(learner.losses) + 2


def test_a_look_at_a_penalty_that_draws_does_not_change_training(monkeypatch):
    def weights(upkeep):
        def loop(*args):
            return TaskLoop(*args, upkeep=upkeep)

        monkeypatch.setattr("scenarios.TaskLoop", loop)
        dropout = nn.Dropout(0.5)
        return Learner(Gives, network(None), make=dropout).train(0, 1).weights()

    assert torch.equal(weights(True), weights(False))
