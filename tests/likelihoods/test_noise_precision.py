import numpy as np
import torch
from scipy import optimize, special

from vcl_radial.likelihoods.noise_precision import NoisePrecision


def test_known_noise_is_found():
    torch.manual_seed(0)
    points = torch.tensor([20_000, 20_000])
    errors = torch.randn(2, 20_000) * torch.tensor([[0.1], [2.0]])
    noise = NoisePrecision(points, (1.0, 1e-3))
    noise.update(errors.square().mean(1))
    np.testing.assert_allclose(noise.mean.rsqrt(), [0.1, 2.0], rtol=0.02)
    # The posterior is as wide as the data leave it: Var tau / (E tau)^2 = 1 / shape.
    np.testing.assert_allclose(1 / noise.shape, 2 / points, rtol=1e-3)


def test_the_update_is_the_maximum_of_the_evidence_lower_bound():
    """Against a search over shape and rate of the bound itself, with SciPy's special functions."""
    a0, b0, N, squared_error = 6.0, 6.0, 37, 0.3

    def minus_bound(log_shape_and_rate):
        a, b = np.exp(log_shape_and_rate)
        fit = N / 2 * (special.digamma(a) - np.log(b)) - a / b * N * squared_error / 2
        kl = (
            (a - a0) * special.digamma(a)
            - special.gammaln(a)
            + special.gammaln(a0)
            + a0 * (np.log(b) - np.log(b0))
            + a * (b0 - b) / b
        )
        return kl - fit

    best = optimize.minimize(minus_bound, [0.0, 0.0], method="Nelder-Mead", tol=1e-10)
    noise = NoisePrecision(torch.tensor([N]), (a0, b0))
    noise.update(torch.tensor([squared_error]))
    np.testing.assert_allclose([noise.shape[0], noise.rate[0]], np.exp(best.x), rtol=1e-4)


def test_noisy_updates_end_near_the_optimum_that_one_whole_update_reaches():
    torch.manual_seed(1)
    points = torch.tensor([1000])
    noise, exact = (NoisePrecision(points, (1.0, 1e-3)) for _ in range(2))
    exact.update(torch.tensor([0.25]))
    for _ in range(3000):
        noise.update(0.25 * torch.randn(1, 16).square().mean(1), 0.01)
    torch.testing.assert_close(noise.mean, exact.mean, rtol=0.1, atol=0)


def test_it_starts_at_its_initial_precision():
    noise = NoisePrecision(torch.tensor([10, 1000]), (1.0, 1e-3), torch.tensor([4.0, 9.0]))
    torch.testing.assert_close(noise.mean, torch.tensor([4.0, 9.0]))


def test_data_in_two_parts_leave_the_posterior_of_all_of_them():
    first, second = torch.tensor([30]), torch.tensor([70])
    at_once = NoisePrecision(first + second, (2.0, 0.5))
    at_once.update(torch.tensor([(30 * 0.2 + 70 * 0.4) / 100]))
    noise = NoisePrecision(first, (2.0, 0.5))
    noise.update(torch.tensor([0.2]))
    before = noise.mean
    noise = noise.carry(second)
    torch.testing.assert_close(noise.mean, before)
    noise.update(torch.tensor([0.4]))
    torch.testing.assert_close(noise.shape, at_once.shape)
    torch.testing.assert_close(noise.rate, at_once.rate)
