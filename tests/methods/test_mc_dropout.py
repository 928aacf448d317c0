"""MC dropout as a method: what its masks and its prior do."""

import pytest
import torch

from vcl_radial.methods.mc_dropout import MCDropout
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import MLP


def method(rate, **settings):
    torch.manual_seed(0)
    network = MLP(6, 3, hidden=(20, 10), posterior=None)
    made = MCDropout(network, rate=rate, **settings)
    made.begin_task(Task(0, 50, lambda: [], heads=[0]))
    return made


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(1)
    return Batch(torch.randn(50, 6, generator=generator), torch.arange(50) % 3, 0)


def test_at_a_rate_of_0_it_is_fine_tuning_with_a_gaussian_prior(batch):
    dropout = method(0.0, prior_scale=2.0)
    naive = Naive(dropout.network)
    loss = dropout.loss(batch, dropout.outputs(batch))
    squares = sum(w.square().sum() for w in dropout.network.parameters())
    expected = naive.loss(batch, naive.outputs(batch)) + squares / 8 / 50
    torch.testing.assert_close(loss, expected)


def test_the_masks_keep_the_mean_of_a_linear_network(batch):
    torch.manual_seed(0)
    linear = torch.nn.Sequential(torch.nn.Linear(6, 40), torch.nn.Linear(40, 3))
    with torch.no_grad():
        whole = linear(batch.x)
    dropout = MCDropout(linear, rate=0.3, eval_samples=4000)
    linear.eval()
    draws = dropout.draws(batch.x)
    error = (draws.mean(0) - whole) / (draws.std(0) / 4000**0.5)
    assert error.abs().max() < 5


@pytest.mark.parametrize("training", [True, False])
def test_a_draw_is_of_the_weights_and_depends_on_its_seed_alone(training, batch):
    dropout = method(0.5, eval_samples=7)
    dropout.network.train(training)
    together = dropout.draws(batch.x, seed=3)
    apart = torch.cat([dropout.draws(x, seed=3) for x in batch.x.split(9)], dim=1)
    torch.testing.assert_close(together, apart)
    assert not torch.equal(together, dropout.draws(batch.x, seed=4))
    assert together.std(0).min() > 0


def test_in_training_each_row_has_a_mask_of_its_own():
    dropout = method(0.5)
    outputs = dropout.output(torch.ones(30, 6), 0)
    assert len({tuple(row) for row in outputs.tolist()}) > 20


def test_a_linear_layer_loses_features_and_a_convolution_channels():
    sequence = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 8, bias=False))
    image = torch.nn.Sequential(torch.nn.Conv1d(2, 8, 1), torch.nn.Conv1d(8, 8, 1, bias=False))
    for network, x, axis in ((sequence, torch.ones(3, 5, 4), 2), (image, torch.ones(3, 2, 5), 1)):
        with torch.no_grad():
            network[0].weight.fill_(1.0)
            network[0].bias.fill_(0.0)
            network[1].weight.copy_(torch.eye(8).view_as(network[1].weight))
        MCDropout(network, rate=0.5)
        dropped = network(x) == 0
        along = dropped.movedim(axis, -1)
        assert along.any()
        assert not along.all()
        assert torch.equal(along, along[:, :1].expand_as(along))  # alike at every position


def test_a_rate_of_0_draws_no_numbers(batch):
    dropout = method(0.0)
    before = torch.get_rng_state()
    dropout.outputs(batch)
    assert torch.equal(torch.get_rng_state(), before)
