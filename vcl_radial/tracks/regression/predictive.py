"""The predictive distribution of a target: a mixture over weight samples, and its scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.noise import NoisePrecision


@dataclass(frozen=True)
class Mixture:
    """p(y | x) = 1/T sum_t p_t(y | x), of every lane and row.

    Attributes:
        mean: of the components, `[T, R, n]`.
        scale: of the components; broadcasts to the mean.
        degrees: of freedom where they are Student-t distributions, which broadcasts to the mean;
            None where they are Gaussian.
    """

    mean: Tensor
    scale: Tensor
    degrees: Tensor | None = None

    @classmethod
    def under_noise(cls, mean: Tensor, noise: NoisePrecision) -> Mixture:
        """Components f_t with the noise integrated out, which makes them Student-t.

        int N(y; f, 1/tau) Gamma(tau; a, b) dtau = St(y; 2a, f, sqrt(b/a))

        Shapes: mean `[T, R, n]`.
        """
        shape, rate = noise.shape.double(), noise.rate.double()
        return cls(mean, (rate / shape).sqrt()[:, None], 2 * shape[:, None])

    def log_density(self, y: Tensor) -> Tensor:
        """The log predictive density, `[R, n]` in nats; float64.

        log p(y | x) = log 1/T sum_t p_t(y | x)

        The log of the mean over components, not the mean of their logs: the latter is a lower bound
        that a wide posterior pays for.
        """
        z2 = ((y - self.mean.double()) / self.scale.double()).square()
        if self.degrees is None:
            log_p = -z2 / 2 - math.log(2 * math.pi) / 2
        else:
            v = self.degrees.double()
            log_p = (
                torch.lgamma((v + 1) / 2)
                - torch.lgamma(v / 2)
                - (v * math.pi).log() / 2
                - (v + 1) / 2 * torch.log1p(z2 / v)
            )
        log_p = log_p - self.scale.double().log()
        return log_p.logsumexp(0) - math.log(len(self.mean))

    def scores(self, test: LaneData, y_scale: Tensor) -> dict[str, Tensor]:
        """Scores in the original units, `[R]` each.

        Args:
            test: the standardised rows to score on.
            y_scale: what a standardised unit is in the original ones, `[R]`.

        Returns:
            `log_likelihood`, the mean log predictive density in nats per row, and `rmse`, the root
            of the mean squared error of the predictive mean.
        """
        y = test.y.double()
        lanes = [self._lane(k) for k in range(len(y))]  # each as if it were alone, to the last bit
        log_density = torch.cat([q.log_density(own) for q, own in zip(lanes, y, strict=True)])
        means = torch.cat([q.mean.double().mean(0) for q in lanes])
        return {
            "log_likelihood": test.mean_over_points(log_density) - y_scale.log(),
            "rmse": test.mean_over_points((means - y).square()).sqrt() * y_scale,
        }

    def _lane(self, k: int) -> Mixture:
        def part(t: Tensor) -> Tensor:
            return t if t.ndim < 2 or t.shape[-2] == 1 else t[..., k : k + 1, :].contiguous()

        degrees = None if self.degrees is None else part(self.degrees)
        return Mixture(part(self.mean), part(self.scale), degrees)
