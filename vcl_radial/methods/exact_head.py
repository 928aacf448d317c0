"""The base class of heads whose posterior has a closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, Self, TypeVar

import torch
from torch import Tensor, nn

from vcl_radial.likelihoods.calibration import Sharpness

Posterior = TypeVar("Posterior", bound=Any)


class ExactHead(nn.Module, Generic[Posterior]):
    """Compute outputs `[B, C]` from features `[B, D]`, which include a 1, and a posterior.

    Args:
        prior: dataclass of tensors.
        parameter: name of the tensor that is a parameter; the others are buffers.
        classes: whether the outputs are classes whose sharpness is learned.

    Attributes:
        sharpness: sharpness of the probabilities of classes; None if it is not learned.
    """

    def __init__(self, prior: Posterior, parameter: str, *, classes: bool) -> None:
        super().__init__()
        self._class, self._parameter = type(prior), parameter
        self._names = [field.name for field in fields(prior)]
        for name in self._names:
            tensor = getattr(prior, name)
            if name == parameter:
                self.register_parameter(name, nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)
        self.sharpness = Sharpness() if classes else None
        self._cached: tuple[Any, Posterior] | None = None

    @property
    def posterior(self) -> Posterior:
        """The current posterior; derived values, such as its root, are computed once."""
        if self._cached is None or self._cached[0] != self._state():
            self._cached = self._state(), self._class(*self._tensors())
        return self._cached[1]

    @property
    def frozen(self) -> bool:
        """Whether the user froze the head: no task changes it."""
        return not getattr(self, self._parameter).requires_grad

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move to a network's device, but keep float64: the sums are over many points."""
        super()._apply(lambda tensor: tensor.to(fn(tensor).device), recurse)  # type: ignore[no-untyped-call]
        return self

    def _tensors(self) -> list[Tensor]:
        return [getattr(self, name).detach() for name in self._names]

    def _state(self) -> list[tuple[int, int]]:
        return [(tensor.data_ptr(), tensor._version) for tensor in self._tensors()]

    @torch.no_grad()
    def take(self, posterior: Posterior) -> None:
        """Replace the posterior."""
        for name in self._names:
            tensor = getattr(posterior, name)
            if name == self._parameter:
                getattr(self, name).copy_(tensor)
            else:
                setattr(self, name, tensor)
        self._cached = self._state(), posterior

    def without_itself(self, phi: Tensor, y: Tensor) -> Tensor:
        """Leave-one-out outputs `[n, C]` of learned points; a head with a sharpness defines it."""
        raise NotImplementedError
