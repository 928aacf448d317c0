"""The test log-likelihood as published code computes it, which is not comparable to ours."""

from __future__ import annotations

import math


def log_likelihood_over_points(
    rmse: float, deviation: float, points: float, samples: int = 100
) -> float:
    """The number that Oh et al.'s published code prints as the test log-likelihood, in nats.

    Its `train_double_uci.py` (github.com/ChangYong-Oh/RadiusDirectionPosteriors) has

        1/S sum_s [ log sum_n exp(-tau/2 (y_n - f_ns)²) - log S - log(2 pi) / 2 + log(tau) / 2 ]

    for n of N test points and s of S draws of the weights. The sum is over points instead of draws,
    and tau, learned on standardised targets, multiplies errors in the target's unit. For normal
    errors of size RMSE, and the learned tau = (deviation / RMSE)², this is

        log(N / S) - log(2 pi) / 2 + log(deviation / RMSE) - log(1 + deviation²) / 2

    Args:
        rmse: root mean squared error on the test points, in the target's unit.
        deviation: standard deviation of the training targets.
        points: N, the number of test points.
        samples: S, the number of draws; 100 in their code.
    """
    return (
        math.log(points / samples)
        - math.log(2 * math.pi) / 2
        + math.log(deviation / rmse)
        - math.log1p(deviation**2) / 2
    )
