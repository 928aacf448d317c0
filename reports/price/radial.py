"""A radial posterior of the linear model: the variational optimum of every task.

    L(m, s) = tau / 2 [tr(m'G m) - 2 tr(B'm) + sum_ij G_ii s_ij^2 / n] + weight * KL(q || p)

is what VCL minimises: the expected negative log-likelihood of the task and the divergence from the
last posterior, with n the weights of a group, as a radial weight has the variance s^2 / n. The
expectation is exact, so that no weight is drawn. With the corrected KL the optimum is found
numerically. With Eq. 44 it has a closed form, in which the past has 1 / n of its weight in Bayes'
rule:

    (w Q + G) m = w Q m_0 + B,    s^2 = n / (tau (Q + diag G)),    Q = 1 / (tau s_0^2)

The means are the optimum at the chosen weight of the prior, and the scales are the optimum at
weight 1 for these means: the weight sets the influence of the past, not its uncertainty.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import LBFGS

from vcl_radial.methods.bayes_linear import Sums
from vcl_radial.posteriors import Gaussian, Posterior, Radial
from vcl_radial.posteriors.radial_eq44 import RadialEq44

_ITERATIONS = 500
_BOUND = 20.0


@dataclass(frozen=True)
class RadialShape:
    """A radial family over the weights of the model.

    Attributes:
        grouping: "layer" for one radius for all weights, "unit" for one radius per output, "weight"
            for one radius per weight, which is a Gaussian.
        corrected: whether the KL has the Jacobian term; otherwise it is Eq. 44 of the paper.
    """

    grouping: str
    corrected: bool

    @property
    def name(self) -> str:
        """The name, with grouping and KL."""
        return f"radial by {self.grouping}" + ("" if self.corrected else ", Eq. 44")

    def in_groups(self, weights: Tensor) -> Tensor:
        """Weights `[D, C]` as groups `[C, D]`, `[1, C D]` or `[C D, 1]`."""
        if self.grouping == "unit":
            return weights.T
        return weights.T.reshape((1, -1) if self.grouping == "layer" else (-1, 1))

    def start(self, d: int, outputs: int, precision: float, noise: float) -> Gaussian:
        """The first prior N(0, 1 / (noise precision)), in groups."""
        zero = self.in_groups(torch.zeros(d, outputs, dtype=torch.float64)).contiguous()
        return Gaussian(zero, torch.full_like(zero, (noise * precision) ** -0.5))

    def variances(self, q: Posterior, d: int) -> Tensor:
        """The variance of every weight, `[D, C]`."""
        n = q.mean.shape[-1] if isinstance(q, Radial) else 1
        return self._scales(q, d).square() / n

    def _scales(self, q: Posterior, d: int) -> Tensor:
        return q.scale.reshape(-1, d).T

    def _held(self, prior: Posterior, sums: Sums, noise: float, weight: float) -> Tensor:
        """The product of weight and Q, the past's precision in units of the noise, `[D]`.

        It is the precision of a Gaussian prior with the same variances. Eq. 44 has only ||a||^2 / 2
        for the means, which holds them with 1 / scale^2, one nth of this precision.
        """
        d = len(sums.cross)
        variance = self.variances(prior, d) if self.corrected else self._scales(prior, d).square()
        # A minimum against rounding, where scales have grown without limit.
        least = 1e-10 * float(sums.squared.diagonal().mean())
        return (weight / (noise * variance.mean(1))).clamp(min=least)

    def update(
        self, prior: Posterior, sums: Sums, noise: float, weight: float
    ) -> tuple[Radial, Tensor]:
        """The posterior after a task's points, and L with L L' = weight Q + G.

        Args:
            prior: the carried posterior, in groups.
            sums: sums of the points.
            noise: noise precision, tau.
            weight: weight of the KL, for the means.
        """
        held = self._held(prior, sums, noise, weight)
        root = torch.linalg.cholesky(sums.squared + held.diag())
        d, outputs = sums.cross.shape
        # These would be the variances of a Gaussian prior.
        precision = noise * (self._held(prior, sums, noise, 1.0) + sums.squared.diagonal())
        n = prior.mean.shape[-1]
        scale = self.in_groups((n / precision).sqrt()[:, None].expand(d, outputs))
        if self.corrected:
            return self._optimum(prior, sums, noise, weight, root, scale), root
        start = prior.mean.reshape(outputs, d).T
        mean = torch.cholesky_solve(held[:, None] * start + sums.cross, root)
        return RadialEq44(self.in_groups(mean).contiguous(), scale.contiguous()), root

    def _optimum(
        self,
        prior: Posterior,
        sums: Sums,
        noise: float,
        weight: float,
        root: Tensor,
        scale: Tensor,
    ) -> Radial:
        """Minimise L from the prior's means and these scales; return the posterior.

        Args:
            prior: the carried posterior.
            sums: sums of the points.
            noise: noise precision, tau.
            weight: weight of the KL.
            root: L with L L' about the curvature along the means, in units of tau.
            scale: initial scales.
        """
        d, outputs = sums.cross.shape
        start, n = prior.mean.reshape(outputs, d).T, scale.shape[-1]
        by_weight = self.in_groups(sums.squared.diagonal()[:, None].expand(d, outputs))

        def means(v: Tensor) -> Tensor:
            moved: Tensor = torch.linalg.solve_triangular(root.T, v, upper=True) / math.sqrt(noise)
            return start + moved

        def scales(grown: Tensor) -> Tensor:
            # Bounded, so that no step of a line search reaches infinity.
            return scale * (_BOUND * torch.tanh(grown / _BOUND)).exp()

        def loss(mean: Tensor, s: Tensor, at: float) -> Tensor:
            mean_term = ((sums.squared @ mean - 2 * sums.cross) * mean).sum()
            scale_term = (by_weight * s.square()).sum() / n
            divergence = Radial(self.in_groups(mean), s).kl(prior).sum()
            return noise / 2 * (mean_term + scale_term) + at * divergence

        v, grown = torch.zeros_like(start), torch.zeros_like(scale)
        v, grown = minimise(lambda v, grown: loss(means(v), scales(grown), weight), v, grown)
        mean = means(v)
        if weight != 1:
            (grown,) = minimise(lambda grown: loss(mean, scales(grown), 1.0), grown)
        return Radial(self.in_groups(mean).contiguous(), scales(grown))


def minimise(loss: Callable[..., Tensor], *start: Tensor) -> list[Tensor]:
    """Minimise a smooth loss by L-BFGS from a start."""
    leaves = [part.clone(memory_format=torch.contiguous_format).requires_grad_() for part in start]
    optimizer = LBFGS(
        leaves,
        max_iter=_ITERATIONS,
        history_size=20,
        tolerance_grad=1e-4,
        tolerance_change=1e-6,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(*leaves)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return [leaf.detach() for leaf in leaves]
