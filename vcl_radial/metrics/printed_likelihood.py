"""The test log-likelihood as published code computes it, beside which ours cannot stand."""

from __future__ import annotations

import math


def log_likelihood_over_points(
    rmse: float, deviation: float, points: float, samples: int = 100
) -> float:
    """What Oh, Adamczewski and Park's published code prints as the test log-likelihood, in nats.

    Its `train_double_uci.py` (github.com/ChangYong-Oh/RadiusDirectionPosteriors) has

        1/S sum_s [ log sum_n exp(-tau/2 (y_n - f_ns)²) - log S - log(2 pi) / 2 + log(tau) / 2 ]

    for n of N test points and s of S draws of the weights: the sum is over points in the place of
    draws, and tau, learned on standardised targets, meets errors in the target's own unit. For
    normal errors of size RMSE, and tau = (deviation / RMSE)² as it is learned, this is

        log(N / S) - log(2 pi) / 2 + log(deviation / RMSE) - log(1 + deviation²) / 2

    Args:
        rmse: of the test points, in the target's unit.
        deviation: standard deviation of the training targets.
        points: N.
        samples: S, 100 in their code.
    """
    return (
        math.log(points / samples)
        - math.log(2 * math.pi) / 2
        + math.log(deviation / rmse)
        - math.log1p(deviation**2) / 2
    )
