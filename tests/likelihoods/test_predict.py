import math

import pytest
import torch

from vcl_radial.likelihoods.predict import draws, log_predictive, sampling
from vcl_radial.nn import MLP
from vcl_radial.nn.weights import PosteriorSettings


def network(posterior="radial"):
    torch.manual_seed(0)
    return MLP(6, 3, hidden=(5,), multi_head=False, posterior=posterior)


def test_predictions_are_log_probabilities():
    log_probs = log_predictive(network(), torch.randn(4, 6), samples=7)
    torch.testing.assert_close(log_probs.logsumexp(-1), torch.zeros(4))


def test_a_prediction_does_not_depend_on_its_batch():
    net, x = network(), torch.randn(10, 6)
    whole = log_predictive(net, x, samples=5, seed=3)
    parts = torch.cat([log_predictive(net, part, samples=5, seed=3) for part in x.split([3, 7])])
    torch.testing.assert_close(parts, whole)


def test_predicting_leaves_the_global_generator_alone():
    net, x = network(), torch.randn(2, 6)
    before = torch.get_rng_state()
    log_predictive(net, x, samples=3, seed=1)
    assert torch.equal(before, torch.get_rng_state())


def test_it_is_the_log_of_the_mean_probability():
    net, x = network(), torch.randn(4, 6)
    torch.manual_seed(11)
    draws = torch.stack([net(x).softmax(-1) for _ in range(9)])
    torch.testing.assert_close(log_predictive(net, x, samples=9, seed=11), draws.mean(0).log())


def test_a_point_estimate_predicts_its_own_softmax():
    net, x = network(None), torch.randn(4, 6)
    torch.testing.assert_close(log_predictive(net, x, samples=3), net(x).log_softmax(-1))


def test_confident_predictions_do_not_underflow():
    log_probs = log_predictive(lambda x: torch.tensor([[1000.0, 0.0]]), torch.zeros(1, 1))
    assert log_probs[0, 1].item() == pytest.approx(-1000)
    assert math.isfinite(log_probs.sum().item())


def moved(probabilities):
    p = torch.as_tensor(probabilities, dtype=torch.float64)
    return sampling(p.log(), p.mean(0).log())


def test_sampling_is_the_standard_deviation_of_the_predicted_class_in_per_cent():
    first, second = [[0.6, 0.3, 0.1], [0.2, 0.8, 0.0]], [[0.5, 0.5, 0.0], [0.4, 0.6, 0.0]]
    sizes = [100 * 0.1 / math.sqrt(2), 100 * 0.2 / math.sqrt(2)]
    torch.testing.assert_close(moved([first, second]).tolist(), sizes)


@pytest.mark.parametrize("draws_made", [1, 2, 9])
def test_sampling_is_0_where_all_draws_agree(draws_made):
    assert moved([[[0.3, 0.7], [1.0, 0.0]]] * draws_made).tolist() == [0.0, 0.0]


def test_of_a_narrow_posterior_half_the_noise_moves_half_as_far():
    torch.manual_seed(0)
    x, log_draws = torch.randn(20, 6, dtype=torch.float64), []
    for noise in (2e-5, 1e-5):
        torch.manual_seed(1)
        posterior = PosteriorSettings("gaussian", initial_noise=noise)
        net = MLP(6, 3, hidden=(5,), multi_head=False, posterior=posterior).double()
        log_draws.append(draws(net, x, samples=50).log_softmax(-1))
    wide, narrow = (sampling(d, d.logsumexp(0) - math.log(50)) for d in log_draws)
    torch.testing.assert_close(wide, 2 * narrow, rtol=1e-3, atol=0)
