"""The factors of the squared radii of an RDP, of whatever distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor


class RadiusFactors(ABC):
    """Independent factors of squared radii, r_g^2 = a b a_g b_g, with log x = loc + scale * noise.

    In the last two axes, `[2, groups + 1]`, row 0 has a_g and row 1 has b_g, whose half-Cauchy
    priors are gamma and inverse gamma; the last column has a and b of the layer.

    Args:
        loc: location of the factors' logs, `[..., 2, groups + 1]`.
        scale: scale of their logs, positive, of the same shape.
    """

    name: ClassVar[str]
    """Name in recipes: the key `radius`."""

    def __init__(self, loc: Tensor, scale: Tensor) -> None:
        self.loc = loc
        self.scale = scale

    @staticmethod
    @abstractmethod
    def noise(
        shape: Sequence[int],
        generator: torch.Generator | None,
        dtype: torch.dtype,
        device: torch.device,
    ) -> Tensor:
        """Draw standard noise of the logs, of a shape `[..., 2, groups + 1]`."""

    @staticmethod
    @abstractmethod
    def start(share: float) -> tuple[float, float]:
        """One scale of all factors such that Var r = share (E r)^2, and log E r at loc 0."""

    @abstractmethod
    def mean_radius(self) -> Tensor:
        """E r_g, `[..., groups]`."""

    @abstractmethod
    def kl(self, prior: Self) -> Tensor:
        """KL of each factor to a prior of the same distribution, in nats."""

    @abstractmethod
    def kl_to_half_cauchy(self, scale: float) -> Tensor:
        """KL of each factor to its gamma or inverse gamma prior, `[..., 2 (groups + 1)]`, in nats.

        Args:
            scale: scale of the layer's half-Cauchy number; that of a group is 1.
        """
