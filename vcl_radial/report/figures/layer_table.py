"""What a figure of layers shows: means over the seeds, and one scale for each quantity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from vcl_radial.metrics import mean_and_standard_error


class Quantity(NamedTuple):
    """A row of the figure: a column of `layers.csv`, its title, whether its axis is in decades."""

    column: str
    title: str
    logarithmic: bool


QUANTITIES = (
    Quantity("moved", "shift of the means\nin the prior's noise", True),
    Quantity("units_at_rest", "units at rest (%)", False),
    Quantity("noise", "noise of a weight", True),
    Quantity("kl", "KL to the prior (nats)", True),
)
"""`vcl_radial.nn.movement.LayerMovement` defines them."""

SPREAD = "mean ± standard error over seeds"
FIRST_PRIOR = "task 1 is held against the initial prior, later ones against the posterior carried"


class Means(NamedTuple):
    """A line: a quantity of a layer of a method after each task.

    Attributes:
        tasks: The tasks, ascending.
        mean: Over the seeds.
        error: The standard error of that mean; nan for one seed.
    """

    tasks: list[int]
    mean: list[float]
    error: list[float]


def layer_means(layers: pd.DataFrame, quantity: Quantity) -> dict[tuple[str, str], Means]:
    """The lines of a quantity.

    Args:
        layers: The `layers.csv` of runs of one benchmark, with `benchmark, method, seed`.
        quantity: One of `QUANTITIES`.

    Returns:
        By layer and method, both in the order in which they first appear.
    """
    lines = {}
    for (layer, method), runs in layers.groupby(["layer", "method"], sort=False):
        tasks = [int(task) for task in sorted(runs["task_trained"].unique())]
        pairs = [
            mean_and_standard_error(runs.loc[runs["task_trained"] == task, quantity.column])
            for task in tasks
        ]
        means, errors = ([pair[k] for pair in pairs] for k in (0, 1))
        lines[str(layer), str(method)] = Means(tasks, means, errors)
    return lines


@dataclass(frozen=True)
class Scale:
    """An axis: even, in decades, or in decades on both sides of an even middle around 0.

    Attributes:
        low: The value at the lower end.
        high: The value at the upper end.
        threshold: Where decades begin, on both sides of 0; 0 where all values are positive, and
            infinite for an even axis.
    """

    low: float
    high: float
    threshold: float

    @property
    def ticks(self) -> list[float]:
        """Values to write at the axis, ascending."""
        if math.isinf(self.threshold):
            return [0.0, 25.0, 50.0, 75.0, 100.0]
        if self.threshold:
            return self._signed_ticks()
        decades = _decades(self.low, self.high)
        if len(decades) > 1:
            return _thinned(decades)
        for digits in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)):
            first = math.floor(math.log10(self.low))
            values = [d * 10.0**n for n in (first, first + 1) for d in digits]
            shown = [value for value in values if self.low <= value <= self.high]
            if len(shown) > 1:
                break
        return _thinned(shown)

    def _signed_ticks(self) -> list[float]:
        above, below = (
            _decades(self.threshold, end) if end > self.threshold else []
            for end in (self.high, -self.low)
        )
        step = math.ceil((len(above) + len(below)) / 6) or 1
        return [*(-tick for tick in reversed(below[::step])), 0.0, *above[::step]]


def scale_of(lines: Iterable[Means], quantity: Quantity) -> Scale:
    """The axis that shows all lines of a quantity with their spread.

    Args:
        lines: What `layer_means` returned.
        quantity: One of `QUANTITIES`.

    Returns:
        The axis. It has decades on both sides of 0 where a mean is not positive: Eq. 44 is no KL
        and falls below 0, and means that rest exactly have moved by 0.
    """
    if not quantity.logarithmic:
        return Scale(0.0, 100.0, math.inf)
    means = [m for line in lines for m in line.mean if math.isfinite(m)]
    ends = [
        m + side * e
        for line in lines
        for m, e in zip(line.mean, line.error, strict=True)
        if math.isfinite(m) and math.isfinite(e)
        for side in (-1, 1)
    ]
    if not means:
        return Scale(0.1, 1.0, 0.0)
    if min(means) > 0.0:
        # A band that reaches 0 ends at the lowest mean.
        low = min([*means, *(end for end in ends if end > min(means) / 10)])
        high = max([*means, *ends])
        return Scale(low / 1.2, high * 1.2, 0.0)
    sizes = [abs(m) for m in means if m]
    threshold = 10.0 ** math.floor(math.log10(min(sizes))) if sizes else 1.0
    low, high = min([*means, *ends]), max([*means, *ends])
    return Scale(1.2 * low if low < 0 else -threshold / 4, max(1.2 * high, threshold), threshold)


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Numbers at an axis, all written in one way: plain, or as powers of ten.

    Args:
        ticks: The numbers.

    Returns:
        `0.001, 0.01` where all lie between 0.001 and 1,000, else `10⁻⁴, 2·10⁻⁴, 10⁻³`.
    """
    plain = all(tick == 0 or 0.999e-3 <= abs(tick) <= 1.001e3 for tick in ticks)
    return [f"{tick:g}".replace("-", "−") if plain else _power(tick) for tick in ticks]


def _power(value: float) -> str:
    if value == 0:
        return "0"
    digits, _, exponent = f"{abs(value):.1e}".partition("e")
    power = f"10{str(int(exponent)).translate(_RAISED)}"
    factor = f"{float(digits):g}"
    return ("−" if value < 0 else "") + (power if factor == "1" else f"{factor}·{power}")


def _decades(low: float, high: float) -> list[float]:
    """The powers of ten between two positive numbers."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**n for n in range(first, last + 1)]


def _thinned(values: list[float]) -> list[float]:
    """Every value, or every second, third ... of so many that they would not fit."""
    return values[:: max(1, math.ceil(len(values) / 5))]
