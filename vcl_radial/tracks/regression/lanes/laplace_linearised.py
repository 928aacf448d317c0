"""Linearised Laplace with the full Gauss-Newton matrix, prior and noise by the evidence.

This is `vcl_radial.methods.laplace_linearised` for one task, where the noise has no prior and the
predictive distribution in closed form replaces draws: with H = sum_n J_n' J_n, and alpha and beta
that maximise the evidence,

    y | x ~ N(f(x; w*), J (alpha I + beta H)^-1 J' + 1 / beta)
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.methods.laplace_linearised import maximise_evidence
from vcl_radial.tracks.regression.jacobian import ROWS, jacobians, lane_network
from vcl_radial.tracks.regression.lane_method import LaneMethod


class Lanes(LaneMethod):
    """Linearised Laplace in lanes, about point estimates."""

    fixed: ClassVar = {"structure": "full", "evidence": True}
    state_predicts = False

    def predict(self) -> Mixture:
        """Predict by the linearised posterior about the weights."""
        data = self.slices[-1].of_lanes(self.trainer.trained)
        moments = [
            laplace(lane_network(self.lanes, lane), x[:points], y[:points], x_new)
            for lane, (x, y, points, x_new) in enumerate(
                zip(data.x, data.y, data.points.tolist(), self.x, strict=True)
            )
        ]
        means, variances = zip(*moments, strict=True)
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
    if not torch.isfinite(gram).all():  # training diverged: only this lane's scores do too
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
