"""The likelihood of a chosen action's reward; the network has an output for each action."""

from __future__ import annotations

import torch
from torch import Tensor

from vcl_radial.likelihoods import Likelihood
from vcl_radial.likelihoods.objectives import gaussian_nll


class ChosenReward(Likelihood):
    """The reward r of the chosen action a, with Gaussian noise: p(r | f, a) = N(r; f_a, noise^2).

    Outputs are the expected rewards of all K actions, `[..., B, K]`; targets hold the actions and
    their rewards, `[B, 2]`.

    Args:
        noise: standard deviation of the noise. Without it the NLL is the squared error (r - f_a)^2,
            which is the NLL for a variance of 1/2 up to a constant.
    """

    name = "gaussian"

    def __init__(self, noise: float | None = None) -> None:
        self.noise = noise
        self.precision = 2.0 if noise is None else noise**-2

    def nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean over samples and points, in nats."""
        actions, rewards = targets.unbind(1)
        rows = actions.long().unsqueeze(1).expand(*outputs.shape[:-1], 1)
        expected = outputs.gather(-1, rows).squeeze(-1)
        if self.noise is None:
            return (expected - rewards).square().mean()
        return gaussian_nll(expected, rewards, self.noise)

    def mean_output(self, outputs: Tensor) -> Tensor:
        """The mean over the samples."""
        return outputs.mean(0)

    def predictive(self, outputs: Tensor) -> Tensor:
        """The expected reward of every action, `[B, K]`."""
        return self.mean_output(outputs)

    def hessian_root(self, outputs: Tensor, targets: Tensor) -> list[Tensor]:
        """1 / noise at the chosen action, and 0 at the others."""
        return [self._chosen(outputs, targets) * self.precision**0.5]

    def residual(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """(f_a - r) / noise^2 at the chosen action, and 0 at the others."""
        error = outputs - targets[:, 1:].to(outputs)
        return self._chosen(outputs, targets) * error * self.precision

    def _chosen(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """1 at the chosen action, and 0 at the others."""
        return torch.zeros_like(outputs).scatter_(1, targets[:, :1].long(), 1.0)
