"""The interface of every variational family: draws, density, entropy and divergence, in nats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol, Self, TypeVar

import torch
from torch import Tensor

from vcl_radial.errors import UserError
from vcl_radial.posteriors.transforms import transformed

Scale = TypeVar("Scale", float, Tensor)


class Prior(Protocol):
    """Anything with a log density over the last axis can be a prior."""

    def log_prob(self, w: Tensor) -> Tensor:
        """Log density in nats of w, shape [..., D], over its last axis; shape [...]."""
        ...


class Family:
    """The traits that a variational family declares.

    A class in a module of `vcl_radial.posteriors` that states its `name` is a family of the suite:
    recipes, networks and methods then know it by that name.
    """

    name: ClassVar[str]
    """The family's name in a recipe."""
    groupings: ClassVar[tuple[str, ...]] = ("layer", "tensor", "unit")
    """The groupings of a layer's weights that the family takes."""
    options: ClassVar[frozenset[str]] = frozenset()
    """The recipe keys that the family takes beyond those of every family."""
    has_lanes: ClassVar[bool] = False
    """Whether runs of task sequences train as lanes of one program. Lanes need `kl_gradients` to a
    Gaussian and to the family itself. A user's own class trains alone, whatever it states."""


class Posterior(Family, ABC):
    """A location-scale family over groups of weights, w = mean + scale * noise.

    The last axis is one *group*: D weights that are drawn together (for a radial, those that share
    one radius). Leading axes are a batch of independent groups.

    Args:
        mean: Location, shape [..., D].
        scale: Positive scale of the same dtype, broadcast with the mean. The sign is not checked,
            because a look at the values would wait for the device.

    Raises:
        UserError: If shapes, dtypes or devices do not fit together.
    """

    uncorrelated: ClassVar[bool] = True
    """Whether the noises of two weights of a group are uncorrelated."""

    def __init__(self, mean: Tensor, scale: Tensor) -> None:
        if mean.dtype != scale.dtype or not mean.is_floating_point():
            raise UserError(
                f"mean and scale must share one floating dtype, got {mean.dtype} and {scale.dtype}"
            )
        if mean.device != scale.device:
            raise UserError(
                f"mean and scale must be on one device, got {mean.device} and {scale.device}"
            )
        if mean.shape != scale.shape:
            try:
                shape = torch.broadcast_shapes(mean.shape, scale.shape)  # type: ignore[no-untyped-call]
            except RuntimeError as error:
                raise UserError(
                    f"mean {list(mean.shape)} and scale {list(scale.shape)} do not broadcast; "
                    "give them one shape"
                ) from error
            mean, scale = mean.expand(shape), scale.expand(shape)
        if mean.ndim == 0 or mean.shape[-1] == 0:
            raise UserError("mean and scale need a last axis of at least one weight: the group")
        self.mean = mean
        self.scale = scale

    @property
    def group_size(self) -> int:
        """D, the number of weights in one group."""
        return self.mean.shape[-1]

    @classmethod
    @abstractmethod
    def scale_for_weight_noise(cls, tau: Scale, D: int) -> Scale:
        """The scale at which the noise of one weight in a group of D has standard deviation tau."""

    @abstractmethod
    def noise(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times the family's standard noise, shape [n, ..., D]; no gradient."""

    @abstractmethod
    def log_prob(self, w: Tensor) -> Tensor:
        """Log density in nats of w, shape [(samples,) ..., D]; shape [(samples,) ...]."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """Differential entropy -E log q(w) in nats, constants included; shape [...]."""

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times w = mean + scale * noise, reparameterised; shape [n, ..., D].

        With a generator, the draws depend on this generator alone, and the global generator does
        not change.
        """
        return torch.addcmul(self.mean, self.scale, self.noise(n, generator))

    def kl(
        self, prior: Prior, samples: int = 1, generator: torch.Generator | None = None
    ) -> Tensor:
        """KL(self || prior) in nats, constants included; shape [...].

        It is `closed_kl` where the family has one for this prior, and then `samples` and
        `generator` are not used. Otherwise it is `kl_monte_carlo`.
        """
        closed = self.closed_kl(prior)
        return self.kl_monte_carlo(prior, samples, generator) if closed is None else closed

    def closed_kl(self, prior: Prior) -> Tensor | None:
        """KL(self || prior) in nats, shape [...]; None where it has no closed form."""
        return None

    def kl_monte_carlo(
        self, prior: Prior, samples: int, generator: torch.Generator | None = None
    ) -> Tensor:
        """Unbiased estimate of KL(self || prior) in nats; shape [...].

        -H(q) - 1/samples sum_k log p(w_k),   w_k ~ q reparameterised

        The entropy is exact, so only the prior's log density is noisy.
        """
        return -self.entropy() - prior.log_prob(self.sample(samples, generator)).mean(0)

    @classmethod
    def kl_gradients(
        cls, prior: type[Posterior], pairs: Sequence[tuple[Tensor, Tensor]]
    ) -> list[tuple[Tensor, Tensor]] | None:
        """Gradients of the closed-form KL in the prior's units, without its value.

        They equal the gradients that autograd computes through `kl`, with fewer passes over the
        weights. One call takes many blocks of groups, because a call costs more than the work per
        group.

        Args:
            prior: the prior's family.
            pairs: for each block of groups a = (mean - mean_p) / scale_p and s = scale / scale_p,
                shape [..., D] each. They may be overwritten.

        Returns:
            dKL/da and dKL/ds of each block; None if there is no closed form.
        """
        return None

    def to_prior(self) -> Self:
        """A copy of the distribution without gradient: the next task's prior."""
        return type(self)(self.mean.detach().clone(), self.scale.detach().clone())

    def _in_units_of(self, prior: Posterior) -> tuple[Tensor, Tensor]:
        """Shift a = (mean - mean_p) / scale_p and ratio s = scale / scale_p."""
        if prior.group_size != self.group_size:
            raise UserError(
                f"posterior and prior must have groups of one size, got {self.group_size} and "
                f"{prior.group_size} weights"
            )
        a = (self.mean - prior.mean) / prior.scale
        s = self.scale / prior.scale
        return a, s

    def _standardise(self, w: Tensor) -> Tensor:
        """Return z = (w - mean) / scale."""
        if w.shape[-1] != self.group_size:
            raise UserError(
                f"w must have {self.group_size} weights on its last axis, got {list(w.shape)}"
            )
        return (w - self.mean) / self.scale

    def _randn(self, shape: Sequence[int], generator: torch.Generator | None) -> Tensor:
        """Draw standard normals with the dtype and on the device of the mean.

        Raises:
            UserError: A transform of `torch.func` allows no draws.
        """
        like = {"dtype": self.mean.dtype, "device": self.mean.device}
        try:
            return torch.randn(shape, generator=generator, **like)  # type: ignore[call-overload, no-any-return]
        except RuntimeError as error:
            if not transformed():
                raise
            raise UserError(
                "the weights are drawn at random: give vmap, jacfwd or jacrev randomness = 'same' "
                "or 'different'; hessian has no such argument, jacfwd(jacrev(f)) has"
            ) from error

    def _sum_log_scale(self) -> Tensor:
        """The sum of log scale over the group, in float64; shape [...]."""
        return self.scale.log().sum(-1, dtype=torch.float64)
