"""The predictive distribution of a target: a mixture over weight samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from scipy import special
from torch import Tensor

from vcl_radial.likelihoods.noise_precision import NoisePrecision

_HALVINGS = 50
"""Halvings of an interval that holds a quantile; float64 has 53 binary digits."""


@dataclass(frozen=True)
class Mixture:
    """The mixture p(y | x) = 1/T sum_t p_t(y | x) for every row.

    Attributes:
        mean: means of the components, `[T, n]`, or `[T, R, n]` for R lanes.
        scale: scales of the components; broadcasts to the mean.
        degrees: degrees of freedom of Student-t components, which broadcasts to the mean; None for
            Gaussian components.
    """

    mean: Tensor
    scale: Tensor
    degrees: Tensor | None = None

    @classmethod
    def under_noise(cls, mean: Tensor, noise: NoisePrecision) -> Mixture:
        """The mixture of Student-t components: outputs f_t with the noise precision integrated out.

        int N(y; f, 1/tau) Gamma(tau; a, b) dtau = St(y; 2a, f, sqrt(b/a))

        Shapes: mean `[T, n]` with one noise precision, or `[T, R, n]` with one per lane.
        """
        shape, rate = noise.shape.double(), noise.rate.double()
        return cls(mean, (rate / shape).sqrt()[..., None], 2 * shape[..., None])

    def moments(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, `[n]` or `[R, n]`; float64.

        A component of up to 2 degrees of freedom has no finite variance.
        """
        mean, variance = self.mean.double(), self.scale.double().square()
        if self.degrees is not None:
            v = self.degrees.double()
            variance = torch.where(v > 2, variance * v / (v - 2), math.inf)
        centre = mean.mean(0)
        spread = ((mean - centre).square() + variance).mean(0)
        return centre, spread.sqrt()

    def cdf(self, y: Tensor) -> Tensor:
        """P(Y <= y | x) = 1/T sum_t F_t(y | x), `[n]` or `[R, n]`; float64."""
        z = (y - self.mean.double()) / self.scale.double()
        if self.degrees is None:
            below = special.ndtr(z.cpu().numpy())
        else:
            below = special.stdtr(self.degrees.double().cpu().numpy(), z.cpu().numpy())
        return torch.from_numpy(below).to(z).mean(0)

    def quantile(self, p: float) -> Tensor:
        """The y with P(Y <= y | x) = p, `[n]` or `[R, n]`; float64.

        It lies between the smallest and the largest p-quantile of a component. That interval is
        halved until it is as small as rounding.

        Args:
            p: a probability, above 0 and below 1.
        """
        mean, scale = self.mean.double(), self.scale.double()
        if self.degrees is None:
            z = torch.tensor(special.ndtri(p)).to(mean)
        else:
            degrees = self.degrees.double()
            z = torch.as_tensor(special.stdtrit(degrees.cpu().numpy(), p)).to(mean)
        of_components = mean + scale * z
        lower, upper = of_components.amin(0), of_components.amax(0)
        for _ in range(_HALVINGS if len(of_components) > 1 else 0):
            middle = (lower + upper) / 2
            is_below = self.cdf(middle) < p
            lower, upper = middle.where(is_below, lower), upper.where(is_below, middle)
        return (lower + upper) / 2

    def interval(self, coverage: float) -> tuple[Tensor, Tensor]:
        """Lower and upper end of the central interval, `[n]` or `[R, n]`; float64.

        Args:
            coverage: its probability, above 0 and below 1.
        """
        tail = (1 - coverage) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def split(self, rows: int) -> tuple[Mixture, Mixture]:
        """The mixture of the first rows, and that of the others."""

        def part(chosen: slice) -> Mixture:
            def of(t: Tensor) -> Tensor:
                return t[..., chosen] if t.ndim and t.shape[-1] > 1 else t

            degrees = None if self.degrees is None else of(self.degrees)
            return replace(self, mean=self.mean[..., chosen], scale=of(self.scale), degrees=degrees)

        return part(slice(None, rows)), part(slice(rows, None))

    def log_density(self, y: Tensor) -> Tensor:
        """The log predictive density, `[n]` or `[R, n]` in nats; float64.

        log p(y | x) = log 1/T sum_t p_t(y | x)

        It is the log of the mean over components. The mean of their logs would be a lower bound,
        which puts a wide posterior at a disadvantage.
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
