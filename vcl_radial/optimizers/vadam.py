"""Variational Adam, with a Gaussian prior of any mean and precision."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from vcl_radial.optimizers.natural_gradient import NaturalGradient


class Vadam(NaturalGradient):
    """Natural-gradient variational inference in the shape of Adam.

    It is `NaturalGradient` with the squared mean gradient of a mini-batch as the curvature, and the
    square root of s in the metric, as in Adam:

        h = g^2,    metric = sqrt(s) + delta

    The mean has the right stationary point. The precision has not: near an optimum, g^2 is about
    1/B of the mean squared gradient of single points. It agrees with VOGN only at B = 1.

    Source: Khan et al. 2018, Fig. 1 (Vadam), where s starts at 0 and its bias is corrected.
    """

    def squares(self) -> Mapping[Tensor, Tensor]:
        """The squared gradients of the mini-batch's mean loss."""
        means = [q.mean for q in self.posteriors]
        return {mean: mean.grad.square() for mean in means if mean.grad is not None}

    def metric(self, curvature: Tensor, delta: Tensor) -> Tensor:
        """The root of the curvature plus the prior: sqrt(s) + delta."""
        return curvature.sqrt().add_(delta)
