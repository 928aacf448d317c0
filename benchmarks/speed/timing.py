"""Interleaved measurement: slow minutes of a machine affect all variants and show as spread.

Variants run in turn, round after round, each round in the reverse order of the one before. Ratios
are taken within a round, so that a slow minute affects numerator and denominator equally.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from torch.utils.benchmark import Timer

Clock = Callable[[], float]
"""A function that returns seconds since a fixed moment."""

Work = Callable[[], object]
"""One measured unit of work."""

Measurement = Callable[[], Mapping[str, float]]
"""One unit of work that returns its measurements by metric."""

Table = dict[str, dict[str, list[float]]]
"""Values of all rounds, by metric and variant."""


class Spread(NamedTuple):
    """Median, lowest, highest and number of values."""

    median: float
    low: float
    high: float
    repeats: int


def spread(values: Sequence[float]) -> Spread:
    """Median and range of at least one value."""
    return Spread(statistics.median(values), min(values), max(values), len(values))


def measure_in_turn(variants: Mapping[str, Measurement], repeats: int, warm_up: int = 0) -> Table:
    """Measure every variant once per round; the order is reversed every other round.

    Args:
        variants: the variants by name.
        repeats: number of rounds that count.
        warm_up: number of rounds before the first that counts.
    """
    table: Table = {}
    for number in range(-warm_up, repeats):
        for name in list(variants)[:: 1 if number % 2 == 0 else -1]:
            for metric, value in variants[name]().items():
                if number >= 0:
                    table.setdefault(metric, {}).setdefault(name, []).append(value)
    return table


def timed(work: Work, clock: Clock, metric: str = "seconds", units: float = 1) -> Measurement:
    """A measurement of the seconds of one unit of `work`."""

    def measure() -> dict[str, float]:
        started = clock()
        work()
        return {metric: (clock() - started) / units}

    return measure


def timed_calls(work: Work, clock: Clock, metric: str, least_seconds: float) -> Measurement:
    """A measurement of one call of `work`: the median of the calls that fill `least_seconds`."""
    timer = Timer("work()", timer=clock, globals={"work": work})
    return lambda: {metric: timer.blocked_autorange(min_run_time=least_seconds).median}


def interleaved(
    variants: Mapping[str, Work], repeats: int, clock: Clock = time.perf_counter, warm_up: int = 1
) -> dict[str, list[float]]:
    """Seconds of every variant in every round that counts; see `measure_in_turn`."""
    measurements = {name: timed(work, clock) for name, work in variants.items()}
    return measure_in_turn(measurements, repeats, warm_up)["seconds"]


def ratios(seconds: Mapping[str, Sequence[float]], reference: str) -> dict[str, list[float]]:
    """The duration of every other variant over the reference's in the same round."""
    return {
        name: [a / b for a, b in zip(values, seconds[reference], strict=True)]
        for name, values in seconds.items()
        if name != reference
    }
