"""The base of all features: a map of inputs that is fitted once, or not at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from torch import Tensor, nn

InputsOf = Callable[[], Iterable[Tensor]]
"""Returns all inputs of a task, in batches `[B, ...]`, at every call."""


class Features(nn.Module, ABC):
    """A map phi of inputs `[B, ...]` to features `[B, D]`, without gradient in its weights.

    Attributes:
        size: D, the number of features.
    """

    size: int

    def fit(self, inputs: InputsOf) -> None:
        """Fit the map to the first task's inputs, before training.

        Raises:
            UserError: The map does not take such inputs.
        """

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """The features of inputs."""


def moments(inputs: InputsOf) -> tuple[float, float]:
    """Mean and standard deviation of all numbers of the inputs; the deviation is at least 1e-6."""
    count, total, squares = 0, 0.0, 0.0
    for x in inputs():
        numbers = x.double()
        count += numbers.numel()
        total, squares = total + float(numbers.sum()), squares + float(numbers.square().sum())
    mean = total / max(count, 1)
    return mean, max(squares / max(count, 1) - mean**2, 1e-12) ** 0.5
