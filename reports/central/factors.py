"""The factors of a variational learner, apart: penalty, noise in the forward pass, grouping.

A shipped family ties its penalty to its noise. A family here has the KL of one family and the noise
of another, *at the size that the penalty's family gives to the noise of one weight*: at equal sigma
sigma for the Gaussian penalty and sigma / sqrt(D) for the others. So a cell changes the shape of
the noise (whether a group shares one radius), or takes it away, and never its size.

| penalty          | noise    | grouping    | posterior        | equal to        |
| ---------------- | -------- | ----------- | ---------------- | --------------- |
| corrected radial | radial   | layer, unit | `radial`         | radial-vcl      |
| corrected radial | Gaussian | layer, unit | `RadialGaussian` | -               |
| corrected radial | none     | layer, unit | `RadialMean`     | -               |
| Eq. 44           | radial   | layer, unit | `radial-eq44`    | radial-vcl-eq44 |
| Eq. 44           | Gaussian | layer, unit | `Eq44Gaussian`   | -               |
| Eq. 44           | none     | layer, unit | `Eq44Mean`       | -               |
| Gaussian         | radial   | layer, unit | `GaussianRadial` | -               |
| Gaussian         | Gaussian | (none)      | `gaussian`       | gaussian-vcl    |
| Gaussian         | none     | (none)      | `GaussianMean`   | -               |

These are 16 cells. The Gaussian KL and Gaussian noise know no groups: there `layer` and `unit` are
one cell, up to the order of the draws. At equal sigma the noise of a weight depends on the
grouping, for D does: `initial_noise` starts all cells with the same one. With noise "none" the
network is that of the means in training and in prediction; the penalty still has its scales, which
only the KL moves.

`vcl-radial check` passes where draws and penalty are of one family, and for `GaussianRadial`, whose
draws have the second moments that its density asks for. Of the others it says what they are:
"posterior's entropy" and "posterior's KL" are not those of the draws, and noise that is 0 is not
what "posterior's noise" asks for. A KL that is not that of the draws is a penalty still: the
corrected one and the Gaussian one are 0 and minimal at q = p whatever is drawn, and pass
"consolidates". Eq. 44 is minimal nowhere near, as in `radial-eq44`. All cells pass the other checks
of a method: they train, resume and carry as VCL.

Beside them stand `GroupLasso`, the penalty without a posterior, and `MeanPrediction`, VCL whose
training is that of `vcl`, bit by bit, and whose predictions are the mean network's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Task
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn.weights import at_means
from vcl_radial.posteriors import Gaussian, Posterior, Radial, RadialEq44
from vcl_radial.posteriors.radial import radial_noise


def gaussian_draws(q: Posterior, n: int, generator: torch.Generator | None = None) -> Tensor:
    """N(0, 1) noise `[n, ..., D]`, at the size that the family gives to one weight."""
    shape, like = (n, *q.mean.shape), q.mean
    normal = torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)
    return normal / q.scale_for_weight_noise(1.0, q.group_size)


def radial_draws(q: Posterior, n: int, generator: torch.Generator | None = None) -> Tensor:
    """Radial noise `[n, ..., D]`, at the size that the family gives to one weight."""
    D = q.group_size
    return radial_noise(q, n, generator) * (math.sqrt(D) / q.scale_for_weight_noise(1.0, D))


def no_draws(q: Posterior, n: int, generator: torch.Generator | None = None) -> Tensor:
    """Zeros `[n, ..., D]`."""
    return q.mean.new_zeros((n, *q.mean.shape))


# The closed-form gradient is used where a class itself has one (`ClosedFormGradients.serves`).


class RadialGaussian(Radial):
    """Corrected radial penalty, Gaussian noise."""

    noise = gaussian_draws
    kl_gradients = Radial.kl_gradients


class RadialMean(Radial):
    """Corrected radial penalty, the mean network."""

    noise = no_draws
    kl_gradients = Radial.kl_gradients


class Eq44Gaussian(RadialEq44):
    """Eq. 44 as penalty, Gaussian noise."""

    noise = gaussian_draws
    kl_gradients = RadialEq44.kl_gradients


class Eq44Mean(RadialEq44):
    """Eq. 44 as penalty, the mean network."""

    noise = no_draws
    kl_gradients = RadialEq44.kl_gradients


class GaussianRadial(Gaussian):
    """Gaussian penalty, radial noise: the grouping says which weights share a radius."""

    noise = radial_draws
    kl_gradients = Gaussian.kl_gradients


class GaussianMean(Gaussian):
    """Gaussian penalty, the mean network."""

    noise = no_draws
    kl_gradients = Gaussian.kl_gradients


class GroupLasso(Method):
    """A group lasso around the weights of the last task, of point estimates.

        loss = mean NLL + kl_weight R / N,   R = sum_g sqrt(D_g) ||w_g - w*_g||_2

    with w* the weights at the end of the last task, and D_g the weights of group g: the penalty of
    Yuan and Lin (2006, Eq. 2.2, with identity kernels), as a distance from w* and not from 0. The
    first task has no penalty, nor has a head before its first task: the prior is flat there.

    It is what the corrected radial KL is for a small shift of the means at equal scales, whose cone
    has the slope sqrt(pi / 2) (D - 1) / sigma for ||w - w*||: with noise of one weight
    tau = sigma / sqrt(D) that is kl_weight = sqrt(pi / 2) / tau, up to (D - 1) / D. The KL
    grows by its logarithm only farther away; the lasso stays linear. R is trained as the KL is, by
    a subgradient, 0 at w*.

    Args:
        groups: a layer's weights and bias, or those of one output unit.
        settings: those of `Method`.
    """

    posteriors = frozenset({"none"})

    def __init__(
        self, network: nn.Module, *, groups: Literal["layer", "unit"] = "layer", **settings: Any
    ) -> None:
        super().__init__(network, **settings)
        self.groups = groups
        self.old: dict[str, Tensor] = {}

    def penalty(self) -> Tensor | float:
        """R of the body and the heads in use."""
        shifts = list(self._shifts())
        return sum(math.sqrt(shift.shape[1]) * _norms(shift).sum() for shift in shifts)

    def _shifts(self) -> Iterator[Tensor]:
        """W - w* of the layers that have been trained, `[groups, D]`."""
        layers: dict[str, list[Tensor]] = {}
        for name, weight in self.parameters_in_use().items():
            if name in self.old:
                layers.setdefault(name.rpartition(".")[0], []).append(weight - self.old[name])
        for parts in layers.values():
            rows = 1 if self.groups == "layer" else len(parts[0])
            yield torch.cat([part.reshape(rows, -1) for part in parts], dim=1)

    def end_task(self, task: Task) -> None:
        """Take the weights as w*."""
        trained = self.trained_parameters()
        self.old |= {name: weight.detach().clone() for name, weight in trained.items()}

    def state_dict(self) -> dict[str, Any]:
        """The network and w*."""
        return super().state_dict() | {"old": self.old}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict(state)
        self.old = dict(state["old"])


def _norms(shift: Tensor) -> Tensor:
    """The length of each group, with the gradient 0 where it is 0."""
    norms: Tensor = torch.linalg.vector_norm(shift, dim=1)
    return norms


class MeanPrediction(VCL):
    """VCL that predicts by the network of the posterior means, in place of draws."""

    def draws(self, x: Tensor, task: int | Tensor = 0, **_: Any) -> Tensor:
        """The outputs at the means, `[1, B, C]`."""
        with torch.enable_grad(), at_means(self.network):  # layers take the means for gradients
            return self.output(x, task).detach()[None]
