"""Loss, NLL and penalty of an epoch, the same for every method."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from vcl_radial.likelihoods.objectives import per_point
from vcl_radial.methods.base import Method
from vcl_radial.runs.peers import Peers


class Epoch(NamedTuple):
    """A finished epoch and its measurements.

    Attributes:
        task: number of the task, from 0.
        epoch: number of the epoch, from 1.
        loss: mean loss, with the penalty at the epoch's end; nats per point.
        nll: mean NLL, nats per point.
        penalty: the method's penalty at the epoch's end, in nats.
        validation: score on held-out points; NaN without them.
        seconds: seconds of training and validation.
    """

    task: int
    epoch: int
    loss: float
    nll: float
    penalty: float
    validation: float
    seconds: float


NO_EPOCH = Epoch(0, 0, math.nan, math.nan, math.nan, math.nan, 0.0)
"""Before the first epoch."""


class Losses:
    """Sums over the steps of an epoch.

    Args:
        method: the method in training.
    """

    def __init__(self, method: Method) -> None:
        self._method = method
        self._sums = torch.zeros(3, dtype=torch.float64)

    @torch.no_grad()
    def add(self, outputs: Tensor, targets: Tensor) -> None:
        """Add a step's NLL, as in the method's objective and as a mean over all outputs."""
        method, one = self._method, torch.ones((), device=outputs.device)
        nlls = method.nll(outputs, targets), method.likelihood.nll(outputs, targets)
        self._sums = self._sums.to(outputs.device) + torch.stack([*nlls, one])

    @torch.no_grad()
    def take(self, points: int, peers: Peers) -> tuple[float, float, float]:
        """Return the mean loss and NLL, and the penalty now, and reset the sums.

        Args:
            points: N, the number of training points of the task.
            peers: processes that share every batch.
        """
        method = self._method
        loss, nll = (peers.mean(self._sums[:2]) / self._sums[2]).tolist()
        self._sums = torch.zeros(3, dtype=torch.float64)
        loss_value, method.loss_value = method.loss_value, True
        penalty = torch.as_tensor(method.penalty())
        method.loss_value = loss_value
        if method.kl_weight:
            loss += float(per_point(penalty, points, method.kl_weight))
        return loss, nll, float(penalty)
