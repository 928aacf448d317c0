"""What a pruned LeNet-5 costs: parameters, and FLOPs by the formula of Oh et al. (2020).

    convolution: (K^2 C_in + 1) x places x C_out        fully connected: (I_in + 1) I_out

These count a multiplication and an addition as one, and biases (Section 5.2). An architecture is
written as in their Table 2: filters, filters, inputs of the first fully connected layer that are
left, hidden units.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

KERNEL, CLASSES = 5, 10
_SIDES = (24, 8)
"""Height and width of what the two convolutions give for an image of 28 x 28."""
_POOLED = 4 * 4
"""Numbers that each filter of the second convolution hands on."""


@dataclass(frozen=True)
class Architecture:
    """How many units there are; the names are those of `LeNet5`'s sets of units."""

    conv1: int
    conv2: int
    inputs: int
    hidden: int

    def __str__(self) -> str:
        """As in Table 2."""
        return f"{self.conv1}-{self.conv2}-{self.inputs}-{self.hidden}"

    def flops(self, *, as_in_table_2: bool = False) -> int:
        """FLOPs of one image.

        Args:
            as_in_table_2: whether to add a layer from all 16 conv2 numbers to the kept ones, which
                the published numbers contain and the network does not.
        """
        first, second = (side**2 for side in _SIDES)
        return (
            first * self._conv1 + second * self._conv2 + self._dense + as_in_table_2 * self._extra
        )

    def parameters(self, *, as_in_table_2: bool = False) -> int:
        """Weights and biases; `as_in_table_2` as for `flops`."""
        return self._conv1 + self._conv2 + self._dense + as_in_table_2 * self._extra

    @property
    def _conv1(self) -> int:
        return (KERNEL**2 + 1) * self.conv1

    @property
    def _conv2(self) -> int:
        return (KERNEL**2 * self.conv1 + 1) * self.conv2

    @property
    def _dense(self) -> int:
        return (self.inputs + 1) * self.hidden + (self.hidden + 1) * CLASSES

    @property
    def _extra(self) -> int:
        return (_POOLED * self.conv2 + 1) * self.inputs


WHOLE = Architecture(20, 50, 800, 500)
"""LeNet-5-Caffe."""


@dataclass(frozen=True)
class Published:
    """A row of Table 2: FLOPs and parameters as they are rounded there, the error in per cent."""

    method: str
    architecture: Architecture
    flops: int
    parameters: int
    error: float


@lru_cache(maxsize=1)
def published() -> tuple[Published, ...]:
    """Table 2 of Oh et al. (2020), in its order."""
    text = Path(__file__).with_name("published.csv").read_text(encoding="utf-8")
    return tuple(
        Published(
            row["method"],
            Architecture(*(int(row[name]) for name in ("conv1", "conv2", "inputs", "hidden"))),
            int(row["flops"]),
            int(row["parameters"]),
            float(row["error"]),
        )
        for row in csv.DictReader(text.splitlines())
    )
