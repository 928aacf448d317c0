"""MC dropout as a method: what its masks and its prior do."""

import pytest
import torch

from vcl_radial.errors import UserError
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


def test_a_draw_is_of_the_weights_and_depends_on_its_seed_alone(batch):
    dropout = method(0.5, eval_samples=7)
    dropout.network.eval()
    together = dropout.draws(batch.x, seed=3)
    apart = torch.cat([dropout.draws(x, seed=3) for x in batch.x.split(9)], dim=1)
    torch.testing.assert_close(together, apart)
    assert not torch.equal(together, dropout.draws(batch.x, seed=4))
    assert together.std(0).min() > 0


def test_in_training_each_row_has_a_mask_of_its_own():
    dropout = method(0.5)
    outputs = dropout.output(torch.ones(30, 6), 0)
    assert len({tuple(row) for row in outputs.tolist()}) > 20


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan")])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(UserError, match=r"options\.rate = .* must be at least 0 and below 1"):
        method(rate)


def test_a_posterior_is_refused():
    with pytest.raises(UserError, match="set posterior = 'none'"):
        MCDropout(MLP(6, 3, hidden=(4,)))
