"""The loop over a task: what it does beside the steps, which the methods' tests look at."""

import copy
import math
from contextlib import nullcontext

import pytest
import torch
from failing import refuses
from scenarios import copies, network
from torch.optim import SGD, Adam

from vcl_radial.errors import Diverged
from vcl_radial.likelihoods import Gaussian
from vcl_radial.methods.ml_init_vcl import MLInitVCL
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.si import SI
from vcl_radial.methods.tasks import Batch, Task, WarmUp
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import MLP
from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.training.loop import TaskLoop, selected


def points(count=40):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(count, 64, generator=generator)
    return Batch(x, (x[:, 0] > 0).long())


def adam(module):
    return Adam(module.parameters(), lr=1e-2)


def sgd(module):
    return SGD(module.parameters(), lr=1.0)


def training(kind=Naive, posterior=None, make=adam, clip=None, **settings):
    whole = points()
    method = kind(network(posterior, multi_head=False), **settings)
    task = Task(0, 40, lambda: whole.split(7), epochs=4, steps=24, schedule=lambda d: 1 - d / 2)
    return TaskLoop(method, task, make, clip=clip)


def epochs(made, *numbers):
    for number in numbers:
        torch.manual_seed(number)
        made.learn(points().split(7), number / 4)


def test_points_come_by_their_numbers_or_in_their_order():
    whole = Batch(torch.arange(10.0)[:, None], torch.arange(10), torch.arange(10) % 3)
    some = whole.at(torch.tensor([7, 2]))
    assert [column.flatten().tolist() for column in some] == [[7, 2], [7, 2], [1, 2]]
    parts = [*whole.split(4)]
    assert [len(part.y) for part in parts] == [4, 4, 2]
    for column, of_parts in zip(whole, zip(*parts, strict=True), strict=True):
        assert torch.equal(torch.cat(of_parts), column)
    assert whole._replace(task=5).at(torch.tensor([0])).task == 5


def test_a_method_may_select_what_it_trains_on():
    whole = points()

    class Odd(Naive):
        def select(self, points):
            return torch.arange(1, len(points().y), 2)

    net = network(None, multi_head=False)
    assert torch.equal(selected(Odd(net), whole).x, whole.x[1::2])
    assert selected(Naive(net), whole) is whole


@pytest.mark.parametrize(("kind", "posterior"), [(SI, None), (VCL, "gaussian")])
def test_a_task_goes_on_in_its_middle_as_if_it_had_not_been_left(kind, posterior):
    straight, stopped = training(kind, posterior), training(kind, posterior)
    for made in (straight, stopped):
        epochs(made, 0, 1)
        state = copy.deepcopy(made.state_dict())
    epochs(straight, 2, 3)
    again = training(kind, posterior)
    again.load_state_dict(state)
    epochs(again, 2, 3)
    ends = []
    for made in (straight, again):
        made.end()
        ends.append(copies(made.method.network))
    for name, weight in ends[0].items():
        assert torch.equal(weight, ends[1][name]), name


@pytest.mark.parametrize("done", [0.0, 0.5])
def test_the_schedule_sets_the_rate(done):
    made = training(make=sgd)
    made.learn([], done)
    assert made.optimizer.param_groups[0]["lr"] == 1 - done / 2


class Warm(Naive):
    """Has two epochs of its own before every task."""

    def warm_up(self):
        return WarmUp(2, nullcontext())


@pytest.mark.parametrize("kind", [Naive, Warm])
def test_a_step_of_sgd_is_as_long_as_the_clipped_gradient_and_in_its_direction(kind):
    made = training(kind, make=sgd, clip=1e-2)
    made.warm_up(lambda: points().split(7))
    before = copies(made.method.network)
    loss = made.method.loss(points(), made.method.outputs(points()))
    weights = made.method.parameters_in_use()
    gradients = dict(zip(weights, torch.autograd.grad(loss, [*weights.values()]), strict=True))
    norm = torch.cat([gradient.flatten() for gradient in gradients.values()]).norm()
    assert norm > 2e-2
    made.learn([points()], 0)
    for name, weight in weights.items():
        step = weight.detach() - before[name]
        torch.testing.assert_close(step, -gradients[name] / norm * 1e-2, rtol=1e-3, atol=1e-7)


def test_a_start_at_the_likelihood_moves_means_alone_and_leaves_no_moments():
    made = training(MLInitVCL, "gaussian", ml_epochs=2)
    blocks = [m for m in made.method.network.modules() if isinstance(m, PosteriorBlock)]
    start = copy.deepcopy(blocks)
    orders = iter([points().split(7), points().split(10)])
    made.warm_up(lambda: next(orders))
    assert next(orders, None) is None
    assert not made.optimizer.state
    for block, old in zip(blocks, start, strict=True):
        assert torch.equal(block.rho, old.rho)
        assert not torch.equal(block.mean, old.mean)


def test_a_loss_that_is_no_number_is_said_where_it_came_from():
    made = training()
    made.check_loss("in slice 3")
    made.loss = torch.tensor(math.nan)
    with refuses("slice 3; lower learning_rate", kind=Diverged):
        made.check_loss("in slice 3")


def test_the_likelihood_ends_with_what_all_points_say():
    """1 / E tau is the mean square of the residuals, but for a weak prior."""
    whole = points(200)
    likelihood = Gaussian(noise_rate=1e-9)
    net = MLP(64, 1, hidden=[8], multi_head=False, posterior=None)
    task = Task(0, 200, lambda: whole.split(64))
    made = TaskLoop(Naive(net, likelihood=likelihood), task, sgd)
    made.end(samples=3, seed=1)
    squares = (net(whole.x).squeeze(1) - whole.y).square().mean().detach()
    torch.testing.assert_close(1 / likelihood.noise.mean, 100 / 101 * squares)
