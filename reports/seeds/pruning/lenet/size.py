"""The cost of a pruned LeNet-5: parameters, and FLOPs by the formula of Oh et al. (2020).

    convolution: (K^2 C_in + 1) x positions x C_out        fully connected: (I_in + 1) I_out

These count a multiplication and an addition as one, and biases (Section 5.2). An architecture is
written as in their Table 2: filters, filters, remaining inputs of the first fully connected layer,
hidden units.
"""

from __future__ import annotations

from dataclasses import dataclass

from vcl_radial.reporting.rows import Rows

KERNEL, CLASSES = 5, 10
_POSITIONS = (24 * 24, 8 * 8)
"""Outputs of each filter of the two convolutions for an image of 28 x 28."""
_POOLED = 4 * 4
"""Outputs of each filter of the second convolution after pooling."""


@dataclass(frozen=True)
class Architecture:
    """Number of units in each set: filters, filters, inputs of fc1, hidden units."""

    conv1: int
    conv2: int
    inputs: int
    hidden: int

    @classmethod
    def of(cls, row: Rows) -> Architecture:
        """The architecture of a row with the columns `conv1, conv2, inputs, hidden`."""
        return cls(*(int(row.number(name)) for name in cls.__annotations__))

    def __str__(self) -> str:
        """As in Table 2."""
        return f"{self.conv1}-{self.conv2}-{self.inputs}-{self.hidden}"

    @property
    def flops(self) -> int:
        """FLOPs of one image."""
        first, second, dense = self._layers
        return _POSITIONS[0] * first + _POSITIONS[1] * second + dense

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return sum(self._layers)

    @property
    def extra(self) -> int:
        """FLOPs, and parameters, of a layer that only the published numbers contain.

        It maps all outputs of the second convolution to the remaining inputs of fc1.
        """
        return (_POOLED * self.conv2 + 1) * self.inputs

    @property
    def _layers(self) -> tuple[int, int, int]:
        """Parameters of the two convolutions and of the dense layers."""
        dense = (self.inputs + 1) * self.hidden + (self.hidden + 1) * CLASSES
        area = KERNEL**2
        return (area + 1) * self.conv1, (area * self.conv1 + 1) * self.conv2, dense


WHOLE = Architecture(20, 50, 800, 500)
"""LeNet-5-Caffe."""
