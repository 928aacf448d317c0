"""Linearised Laplace with the full Gauss-Newton matrix, prior and noise by the evidence.

About the maximum a posteriori w* the network is f(x; w*) + J(x) (w - w*), a Bayesian linear model
in the Jacobian's columns. Its prior precision alpha and noise precision beta maximise MacKay's
(1992) evidence, by his fixed point with gamma effective parameters:

    gamma = sum_i beta l_i / (alpha + beta l_i),    l_i the eigenvalues of H = sum_n J_n' J_n
    alpha = gamma / ||w*||^2,    beta = (N - gamma) / sum_n (y_n - f_n)^2

    y | x ~ N(f(x; w*), J (alpha I + beta H)^-1 J' + 1 / beta)
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from vcl_radial.mixture import Mixture
from vcl_radial.tracks.regression.jacobian import ROWS, jacobians, lane_network
from vcl_radial.tracks.regression.job import Job
from vcl_radial.tracks.regression.lanes import Lane

LANE = Lane()

_ROUNDS = 200
_TOLERANCE = 1e-6


def predict(job: Job) -> Mixture:
    """Train point estimates, then predict by the linearised posterior about them."""
    lanes, noise = job.point_lanes(), job.noise()
    job.fit(lanes, noise)
    found = [
        laplace(lane_network(lanes, lane), x[:points], y[:points], x_new)
        for lane, (x, y, points, x_new) in enumerate(
            zip(job.train.x, job.train.y, job.train.points.tolist(), job.x, strict=True)
        )
    ]
    means, variances = zip(*found, strict=True)
    return Mixture(torch.stack(means)[None], torch.stack(variances).sqrt()[None])


def laplace(module: nn.Module, x: Tensor, y: Tensor, x_new: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of the targets at new inputs, `[n]` each.

    Args:
        module: the network at w*.
        x: training inputs `[N, d]`.
        y: their targets `[N]`.
        x_new: inputs of the predictions `[n, d]`.
    """
    parameters = sum(p.numel() for p in module.parameters())
    gram, error = torch.zeros(parameters, parameters, dtype=torch.float64), 0.0
    for (f, J), targets in zip(jacobians(module, x), torch.split(y.double(), ROWS), strict=True):
        gram.addmm_(J.T, J)
        error += float((targets - f).square().sum())
    if not torch.isfinite(gram).all():  # training diverged: so do the scores of this lane alone
        nothing = torch.full((len(x_new),), math.nan, dtype=torch.float64)
        return nothing, nothing
    values, vectors = torch.linalg.eigh(gram)
    values = values.clamp(min=0)
    weights = nn.utils.parameters_to_vector(module.parameters()).detach()
    alpha, beta = maximise_evidence(values, len(y), float(weights.square().sum()), error)
    means, variances = [], []
    for f, J in jacobians(module, x_new):
        means.append(f)
        rotated = J @ vectors
        variances.append((rotated.square() / (alpha + beta * values)).sum(1) + 1 / beta)
    return torch.cat(means), torch.cat(variances)


def maximise_evidence(
    eigenvalues: Tensor, points: int, squared_norm: float, squared_error: float
) -> tuple[float, float]:
    """The alpha and beta of the fixed point; see the module.

    Args:
        eigenvalues: l, `[P]`, at least 0.
        points: N.
        squared_norm: ||w*||^2.
        squared_error: sum_n (y_n - f_n)^2.
    """
    alpha, beta = len(eigenvalues) / squared_norm, points / squared_error
    for _ in range(_ROUNDS):
        gamma = float((beta * eigenvalues / (alpha + beta * eigenvalues)).sum())
        new = gamma / squared_norm, (points - gamma) / squared_error
        change = max(abs(new[0] / alpha - 1), abs(new[1] / beta - 1))
        alpha, beta = new
        if change < _TOLERANCE:
            break
    return alpha, beta
