"""Interleaved measurement: a machine's mood is shared by all variants, and shows as spread.

Variants run in turn, round after round, each round in the reverse order of the one before. Ratios
are taken within a round, so that a slow minute is slow for numerator and denominator alike.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

Clock = Callable[[], float]
"""Seconds since some moment."""

Work = Callable[[], object]
"""One unit of what is measured."""


class Spread(NamedTuple):
    """The median of some values, the lowest, the highest, and how many there were."""

    median: float
    low: float
    high: float
    repeats: int


def spread(values: Sequence[float]) -> Spread:
    """Median and range of at least one value."""
    return Spread(statistics.median(values), min(values), max(values), len(values))


def rounds(names: Iterable[str], repeats: int) -> Iterator[str]:
    """Every name once a round, the order reversed every other round."""
    order = list(names)
    for number in range(repeats):
        yield from order if number % 2 == 0 else reversed(order)


def interleaved(
    variants: Mapping[str, Work], repeats: int, clock: Clock = time.perf_counter, warm_up: int = 1
) -> dict[str, list[float]]:
    """Seconds of every variant in every round, after warm-up rounds that do not count.

    Args:
        variants: work by name.
        repeats: rounds that count.
        clock: what is read before and after each unit of work.
        warm_up: rounds before the first that counts.

    Returns:
        For each variant one duration per round, in the order of the rounds.
    """
    for name in rounds(variants, warm_up):
        variants[name]()
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for name in rounds(variants, repeats):
        started = clock()
        variants[name]()
        seconds[name].append(clock() - started)
    return seconds


def ratios(seconds: Mapping[str, Sequence[float]], reference: str) -> dict[str, list[float]]:
    """Each variant's duration over the reference's of the same round; the reference left out."""
    return {
        name: [a / b for a, b in zip(values, seconds[reference], strict=True)]
        for name, values in seconds.items()
        if name != reference
    }


def times_to_fill(seconds: float, work: Work, clock: Clock) -> int:
    """How often `work` has to be done to last so long, from one try after a warm-up."""
    work()
    started = clock()
    work()
    once = clock() - started
    return max(1, math.ceil(seconds / once)) if once > 0 else 1
