"""The axis of accuracies: even, or stretched towards 100 % to tell small errors apart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

_SOFTENING = 0.5  # per cent: at 100 % the axis has an end
_STRETCHED_TICKS = (100.0, 99.5, 99.0, 98.0, 95.0, 90.0, 80.0, 70.0, 50.0, 20.0, 0.0)


@dataclass(frozen=True)
class AccuracyScale:
    """Accuracies in per cent as places on an axis.

        even: a,        stretched: -log10(100.5 - a)

    Attributes:
        low: The accuracy at the lower end.
        high: The accuracy at the upper end.
        stretched: Whether errors, not accuracies, set the distances.
    """

    low: float
    high: float
    stretched: bool = False

    def place(self, accuracy: float) -> float:
        """Where an accuracy lies: 0 at the lower end, 1 at the upper."""
        low, high = self._along(self.low), self._along(self.high)
        return (self._along(accuracy) - low) / (high - low)

    @property
    def ticks(self) -> list[float]:
        """Accuracies to write at the axis, ascending."""
        if not self.stretched:
            step = _step(self.high - self.low)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            return [step * n for n in range(first, last + 1)]
        chosen: list[float] = []
        for tick in _STRETCHED_TICKS:
            at = self.place(tick)
            if -1e-9 <= at <= 1 + 1e-9 and (not chosen or self.place(chosen[-1]) - at > 0.07):
                chosen.append(tick)
        return chosen[::-1]

    def _along(self, accuracy: float) -> float:
        return -math.log10(100.0 + _SOFTENING - accuracy) if self.stretched else accuracy


def accuracy_scale(values: Iterable[float], stretched: bool | None = None) -> AccuracyScale:
    """The axis that shows all of some accuracies.

    Args:
        values: In per cent; nan is left out.
        stretched: None for: where most are above 90, some above 97, and others far below.

    Returns:
        The axis, its ends at round numbers.
    """
    shown = [min(max(v, 0.0), 100.0) for v in values if not math.isnan(v)] or [0.0, 100.0]
    low, high = min(shown), max(shown)
    if stretched is None:
        stretched = median(shown) > 90.0 and high > 97.0 and high - low > 5.0
    if stretched:
        above = [tick for tick in _STRETCHED_TICKS if tick >= high and tick > 0.0]
        below = [tick for tick in _STRETCHED_TICKS if tick <= low and tick < above[-1]]
        return AccuracyScale(below[0], above[-1], stretched=True)
    step = _step(max(high - low, 1.0))
    low, high = step * math.floor(low / step), step * math.ceil(high / step)
    if low == high:
        low, high = low - step, high + step
    return AccuracyScale(max(low, 0.0), min(high, 100.0))


def _step(span: float) -> float:
    """A round number, four to ten of which make the span."""
    power = 10.0 ** math.floor(math.log10(span))
    return next(power * f for f in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0) if span / (power * f) <= 6.0)
