"""MESU: on a quadratic loss it ends at the exact posterior of a window of mini-batches."""

import pytest
import torch
from scenarios import ALL, KnownNoise, Learner, digits, network
from torch import nn
from torch.optim import SGD

from vcl_radial.methods.mesu import MESU
from vcl_radial.methods.tasks import Task
from vcl_radial.nn import BayesianLinear, PosteriorSettings, posterior_blocks
from vcl_radial.posteriors import Gaussian


class Expected(MESU):
    """MESU on C = sum_i h_i/2 E_q (w_i - a_i)^2, whose expectation has a closed form."""

    curvature, optimum = torch.tensor([[2.0, 0.5, 0.0]]), torch.tensor([[1.0, -1.0, 5.0]])

    def free_energy(self):
        (block,) = posterior_blocks(self.network, [0])
        q = block.posterior
        squares = (q.mean - self.optimum).square() + q.scale.square()
        return (self.curvature * squares).sum() / 2 + self.penalty()


@pytest.mark.parametrize("window", [1, 10, 100])
def test_the_fixed_point_is_the_exact_posterior_of_the_window(window):
    """W mini-batches of one point and the prior N(m, s^2) have a Gaussian posterior."""
    torch.manual_seed(0)
    layer = BayesianLinear(
        3, 1, bias=False, posterior=PosteriorSettings("gaussian", prior_scale=0.5)
    )
    method = Expected(layer.double(), window=window, likelihood=KnownNoise(1.0), rate=0.3)
    method.begin_task(Task(0, 1, list, batch_size=1))
    method._size = 1
    (block,) = posterior_blocks(layer, [0])
    block.prior_mean.copy_(prior_mean := torch.tensor([[0.3, 0.0, -0.2]]))
    for _ in range(60 * window + 2000):
        method.free_energy().backward()
        method.step(SGD([nn.Parameter(torch.zeros(1))], lr=1.0))
    precision = 4 + window * Expected.curvature
    torch.testing.assert_close(block.scale(), precision.double() ** -0.5, rtol=1e-4, atol=0)
    expected = (4 * prior_mean + window * Expected.curvature * Expected.optimum) / precision
    torch.testing.assert_close(block.mean.detach(), expected.double(), rtol=1e-4, atol=1e-6)


def learner(kind=MESU, batch_size=32, stream=None, **settings):
    net = network("gaussian", hidden=(8,), prior_scale=0.5, initial_noise=0.1)
    return Learner(kind, net, stream, optimizer=SGD, batch_size=batch_size, **settings)


class Watched(MESU):
    """MESU, and its state and the gradients before each step."""

    def step(self, optimizer):
        self.before = [
            (b, b.mean.detach().clone(), b.scale(), b.mean.grad.clone(), b.rho.grad.clone())
            for b in posterior_blocks(self.network, self.heads)
        ]
        super().step(optimizer)


@pytest.mark.parametrize("batch_size", [20, ALL])
def test_a_step_is_the_update_of_the_paper(batch_size):
    """C is a sum over the points of the batch, also of a last and smaller one."""
    made = learner(Watched, batch_size, window=50, rate=1e-2, largest_move=0.9).train(0)
    points = len(made.points(0).y)
    size = (points % 20 or 20) if batch_size == 20 else points
    for block, mean, sigma, slope, by_rho in made.method.before:
        part = size / (50 * batch_size * 0.25)  # of a smaller batch, a part of the way back
        p, q = Gaussian(torch.zeros_like(mean), torch.full_like(mean, 0.5)), Gaussian(mean, sigma)
        of_kl = torch.autograd.functional.jacobian(
            lambda m, s, p=p: Gaussian(m, s).kl(p).sum(), (q.mean, q.scale)
        )
        dc_dmu = size * slope - size / (50 * batch_size) * of_kl[0]
        dc_dsigma = size * by_rho / (1 - torch.exp(-sigma)) - size / (50 * batch_size) * of_kl[1]
        by_mean = -(sigma**2) * dc_dmu - sigma**2 * part * mean
        by_scale = -(sigma**2) / 2 * dc_dsigma + sigma / 2 * part * (0.25 - sigma**2)
        torch.testing.assert_close(block.mean - mean, 1e-2 * by_mean, rtol=1e-3, atol=1e-6)
        torch.testing.assert_close(block.scale() - sigma, 1e-2 * by_scale, rtol=1e-3, atol=1e-6)


def test_no_step_moves_further_than_a_share_of_the_scale():
    made = learner(Watched, rate=1e6, largest_move=0.1).train(0)
    for block, mean, sigma, _, _ in made.method.before:
        limit = 0.1 * sigma * (1 + 1e-3)
        assert ((block.mean - mean).abs() <= limit).all()
        assert ((block.scale() - sigma).abs() <= limit).all()
        assert ((block.mean - mean).abs() > 0.09 * sigma).any()


class Blank:
    """The digits, with the first pixels dark in every image."""

    def __init__(self):
        self.task_label, self.labels = digits().task_label, digits().labels

    def inputs(self, number, part):
        x = digits().inputs(number, part).clone()
        x[:, :4] = 0
        return x


def test_a_weight_without_data_goes_back_to_the_prior():
    made = learner(stream=Blank(), window=20, epochs=40).train(0)
    block = posterior_blocks(made.network, [0])[0]
    scale = block.scale().flatten()[: 8 * 64].view(8, 64)
    torch.testing.assert_close(scale[:, :4], torch.full((8, 4), 0.5), rtol=1e-2, atol=0)
    assert scale[:, 4:].min() < 0.35


def test_the_prior_is_the_first_one_in_every_task():
    made = learner().train(0, 1)
    for block in posterior_blocks(made.network, [0, 1]):
        assert not block.prior_mean.any()
        assert block.prior_scale.unique().tolist() == [0.5]


def test_parameters_without_a_posterior_take_the_steps_of_the_optimiser():
    made = learner()
    made.begin(0)
    extra = nn.Parameter(torch.ones(3))
    extra.grad = torch.full((3,), 2.0)
    made.method.step(SGD([extra], lr=0.1))
    torch.testing.assert_close(extra.detach(), torch.full((3,), 0.8))


def test_a_frozen_scale_stays_and_its_mean_moves():
    made = learner()
    made.begin(0)
    block = posterior_blocks(made.network, [0])[0]
    block.rho.requires_grad_(False)
    mean, rho = block.mean.detach().clone(), block.rho.clone()
    made.train(0)
    assert torch.equal(block.rho, rho)
    assert not torch.equal(block.mean, mean)
