"""How fast a cost grows: the exponent b of a power law, cost ~ size^b."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import linear_regression

from benchmarks.speed.setting import Row

NOTE = (
    "Exponent: the slope of log(median) over log(size) by least squares, over the upper half of an "
    "axis. 1 is linear, 0 is constant."
)


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope b of log(cost) = a + b log(size) by least squares over the upper half of sizes.

    The upper half has the middle size too, where their number is odd, and two sizes at least.

    Args:
        sizes: sizes in ascending order.
        costs: cost at each size, above 0.
    """
    upper = slice((len(sizes) - 1) // 2, None)
    logs = ([math.log(value) for value in values[upper]] for values in (sizes, costs))
    return linear_regression(*logs).slope


def exponents(section: str, rows: Sequence[Row]) -> list[Row]:
    """The exponents of the medians of seconds and megabytes, if there are two sizes or more.

    Sizes are such as "width=400". A cost that was 0 somewhere has no exponent: a small peak of
    memory may not rise above an earlier one of the process.
    """
    costs: dict[tuple[str, str, str], list[tuple[int, Row]]] = {}
    for r in rows:
        axis, equals, value = r.size.rpartition("=")
        if equals and (r.metric.startswith("seconds") or r.metric.endswith("(MB)")):
            costs.setdefault((r.metric, axis, r.variant), []).append((int(value), r))
    fitted = []
    for (metric, axis, variant), points in costs.items():
        if len(points) > 1 and all(r.median > 0 for _, r in points):
            sizes, of = zip(*sorted(points), strict=True)
            b = exponent(sizes, [r.median for r in of])
            cost = f"{metric.removeprefix('memory: ')} over {axis}"
            fitted.append(Row(section, cost, "", f"exponent, {variant}", b, b, b, of[0].repeats))
    return fitted
