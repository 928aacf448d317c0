"""What all features are: a map of inputs that is fitted once, or not at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from torch import Tensor, nn

InputsOf = Callable[[], Iterable[Tensor]]
"""Gives all inputs of a task in batches `[B, ...]`, whenever it is called."""


class Features(nn.Module, ABC):
    """phi(x), `[B, D]`, of inputs `[B, ...]`; no gradient reaches the map.

    Attributes:
        size: D.
    """

    size: int

    def fit(self, inputs: InputsOf) -> None:
        """Look at the first task's inputs, before anything is learned of it.

        Raises:
            UserError: the map is none of such inputs.
        """

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """The features of inputs."""


def moments(inputs: InputsOf) -> tuple[float, float]:
    """Mean and standard deviation of all numbers of some inputs, the second at least 1e-6."""
    count, total, squares = 0, 0.0, 0.0
    for x in inputs():
        numbers = x.double()
        count += numbers.numel()
        total, squares = total + float(numbers.sum()), squares + float(numbers.square().sum())
    mean = total / max(count, 1)
    return mean, max(squares / max(count, 1) - mean**2, 1e-12) ** 0.5
