import math

import pytest
import torch

from vcl_radial.metrics.conformal import COVERAGE, FEWEST, limit_of, limit_of_intervals, sets


def drawn(n, wrong, seed=0):
    """Log-probabilities `[n, 4]` that do not belong to the labels, as of a poor model."""
    generator = torch.Generator().manual_seed(seed)
    log_probs = (3 * torch.randn(n, 4, generator=generator)).log_softmax(1)
    labels = torch.multinomial((wrong * log_probs).softmax(1), 1, generator=generator)[:, 0]
    return log_probs, labels


@pytest.mark.parametrize("wrong", [1.0, 0.2, -0.5])
def test_sets_cover_new_points_as_often_as_stated_whatever_the_model(wrong):
    covered = []
    for seed in range(40):
        log_probs, labels = drawn(2_100, wrong, seed)
        limit = limit_of(log_probs[:100], labels[:100])
        inside = sets(log_probs[100:], limit).gather(1, labels[100:, None])
        covered.append(inside.double().mean())
    # The mean of k / (n + 1) over calibrations of n = 100; each varies by 0.03.
    assert float(torch.stack(covered).mean()) == pytest.approx(0.905, abs=0.015)


def test_the_limit_of_intervals_is_the_distance_that_nine_tenths_of_rows_keep():
    lower, upper = torch.zeros(99), torch.ones(99)
    inside = torch.linspace(0.01, 0.99, 99)
    assert limit_of_intervals(lower, upper, inside) == pytest.approx(-0.05, abs=1e-6)
    assert limit_of_intervals(lower, upper, inside + 3) == pytest.approx(2.9, abs=1e-6)
    assert limit_of_intervals(lower[:8], upper[:8], inside[:8]) == math.inf


def test_the_limit_is_finite_from_the_fewest_points_on():
    log_probs, labels = drawn(FEWEST, 1.0)
    assert limit_of(log_probs, labels) == pytest.approx(
        float(-log_probs.gather(1, labels[:, None]).min()), rel=1e-6
    )
    assert limit_of(log_probs[1:], labels[1:]) == math.inf
    assert math.ceil((FEWEST + 1) * COVERAGE) == FEWEST


def test_a_set_always_holds_the_most_probable_class():
    log_probs, _ = drawn(50, 1.0)
    assert (sets(log_probs, 0.0).sum(1) == 1).all()
    assert sets(log_probs, 0.0)[torch.arange(50), log_probs.argmax(1)].all()
    assert sets(log_probs, math.inf).all()
