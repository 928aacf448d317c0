"""What heads share that know the posterior of their outputs in closed form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, Self, TypeVar

import torch
from torch import Tensor, nn

from vcl_radial.likelihoods.calibration import Sharpness

Posterior = TypeVar("Posterior", bound=Any)


class ExactHead(nn.Module, ABC, Generic[Posterior]):
    """Outputs `[B, C]` of features `[B, D]` and a 1, from a posterior.

    Args:
        prior: a dataclass of tensors.
        parameter: the one of them that is a parameter; the others are buffers.
        of_classes: whether outputs are those of classes.

    Attributes:
        sharpness: of the probabilities of classes; None of numbers.
    """

    def __init__(self, prior: Posterior, parameter: str, *, of_classes: bool) -> None:
        super().__init__()
        self._class, self._parameter = type(prior), parameter
        self._names = [field.name for field in fields(prior)]
        for name in self._names:
            tensor = getattr(prior, name)
            if name == parameter:
                self.register_parameter(name, nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)
        self.sharpness = Sharpness() if of_classes else None
        self._known: tuple[Any, Posterior] | None = None

    @property
    def posterior(self) -> Posterior:
        """As it is now; what follows from it, such as its root, is computed once."""
        if self._known is None or self._known[0] != self._state():
            self._known = self._state(), self._class(*self._tensors())
        return self._known[1]

    @property
    def frozen(self) -> bool:
        """Whether the user froze it: no task alters it."""
        return not getattr(self, self._parameter).requires_grad

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Follow a network to its device, and keep the precision: sums are of many points."""
        super()._apply(lambda tensor: tensor.to(fn(tensor).device), recurse)  # type: ignore[no-untyped-call]
        return self

    def _tensors(self) -> list[Tensor]:
        return [getattr(self, name).detach() for name in self._names]

    def _state(self) -> list[tuple[int, int]]:
        return [(tensor.data_ptr(), tensor._version) for tensor in self._tensors()]

    @torch.no_grad()
    def take(self, posterior: Posterior) -> None:
        """Have another posterior."""
        for name in self._names:
            tensor = getattr(posterior, name)
            if name == self._parameter:
                getattr(self, name).copy_(tensor)
            else:
                setattr(self, name, tensor)
        self._known = self._state(), posterior

    @abstractmethod
    def without_itself(self, phi: Tensor, y: Tensor) -> Tensor:
        """Outputs `[n, C]` of points that were learned, of known classes, from all others."""
