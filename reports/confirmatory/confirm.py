"""The numbers of the plan, and the tests that it states.

    python reports/confirmatory/confirm.py power             what so many seeds detect
    python reports/confirmatory/confirm.py primary FOLDER    the tests on the primary streams
    python reports/confirmatory/confirm.py fashion FOLDER    those on split FashionMNIST

FOLDER is the `report` that `vcl-radial run` writes, with BENCHMARK/runs.csv for each stream.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from vcl_radial.metrics import holm

COMPARISONS = (
    ("radial-vcl", "gaussian-vcl"),
    ("radial-vcl", "radial-vcl-eq44"),
    ("radial-vcl-proximal", "gaussian-vcl-proximal"),
)


class Family(NamedTuple):
    """Tests that are corrected together.

    Attributes:
        seeds: of all runs.
        chance: the streams, and the accuracy of a guess in per cent, that of a run that diverged.
    """

    seeds: range
    chance: Mapping[str, float]


FAMILIES = {
    "primary": Family(
        range(100, 116),
        {
            "split-mnist-multi-head": 50.0,
            "split-mnist-single-head": 10.0,
            "split-notmnist-multi-head": 50.0,
            "permuted-mnist": 10.0,
        },
    ),
    "fashion": Family(
        range(100, 112), {"split-fashion-multi-head": 50.0, "split-fashion-single-head": 10.0}
    ),
}
PRIMARY = FAMILIES["primary"]

LEVEL, POWER = 0.05, 0.8
EXPLORATORY = {
    "many heads": "split-fashion-multi-head",
    "one head": "split-fashion-single-head",
}
"""The reports of `split-fashion-tuned` that tell the spread of radial minus Gaussian."""


def power(effect: float, seeds: int, level: float) -> float:
    """Of the two-sided paired t-test, by the noncentral t distribution.

        P( |t| > t_{1 - level/2, n-1} ),   t ~ t'(n - 1, effect sqrt(n))

    Args:
        effect: mean of the differences over their standard deviation, from 0.
        seeds: n.
        level: of the test.

    Returns:
        The power, without the tail of the other sign.
    """
    beyond = stats.t.ppf(1 - level / 2, seeds - 1)
    return float(stats.nct.sf(beyond, seeds - 1, effect * np.sqrt(seeds)))


def detectable(seeds: int, level: float) -> float:
    """The smallest effect with power 0.8, in standard deviations, to 0.001."""
    return next(e for e in np.arange(0.05, 5, 0.001) if power(e, seeds, level) >= POWER)


def seeds_for(effect: float, level: float) -> int:
    """The smallest number of seeds that detects an effect with power 0.8."""
    return next(n for n in range(3, 10_000) if power(effect, n, level) >= POWER)


def accuracies(runs: pd.DataFrame, method: str, seeds: range, chance: float) -> pd.Series:
    """Final average accuracy of each seed; of a run that diverged that of a guess.

    Raises:
        SystemExit: no seed is there, or another one is.
    """
    names = runs["method"].str.removeprefix("best-")
    values = runs[names == method].set_index("seed")["average_accuracy"]
    if values.empty or not values.index.isin(seeds).all():
        sys.exit(f"{method}: has to have runs of seeds {seeds[0]} to {seeds[-1]}, and no others")
    return values.reindex(seeds, fill_value=chance)


def table(runs: Mapping[str, pd.DataFrame], family: Family = PRIMARY) -> pd.DataFrame:
    """The tests of the plan, one line for each stream and comparison.

    Args:
        runs: `runs.csv` of each stream.
        family: of the tests.

    Returns:
        `stream, first, second`, the mean `difference` in points with `lower` and `upper` of its
        95 % interval, the standard deviation `sd` of the differences, `p` of the t-test and `holm`.
    """
    rows = []
    for stream, chance in family.chance.items():
        for first, second in COMPARISONS:
            names = (first, second)
            a, b = (accuracies(runs[stream], name, family.seeds, chance) for name in names)
            d, sd = (a - b).mean(), (a - b).std()
            half = stats.t.ppf(0.975, len(a) - 1) * sd / np.sqrt(len(a))
            # Where all differences are 0 there is nothing to be seen.
            p = float(stats.ttest_rel(a, b).pvalue) if sd > 0 else float(d == 0)
            rows.append((stream, first, second, d, d - half, d + half, sd, p))
    columns = ["stream", "first", "second", "difference", "lower", "upper", "sd", "p"]
    result = pd.DataFrame(rows, columns=columns)
    return result.assign(holm=holm(result["p"].tolist()))


def _print_power() -> None:
    tests, planned = len(COMPARISONS) * len(PRIMARY.chance), len(PRIMARY.seeds)
    first = LEVEL / tests
    print(f"{tests} tests; Holm's first step is at p < {first:.4f}")
    for seeds in (12, 16, 20, 24):
        effects = [detectable(seeds, level) for level in (LEVEL, first)]
        print(f"{seeds} seeds detect {effects[0]:.2f} sd alone, {effects[1]:.2f} sd as the first")
    reports = Path(__file__).parent.parent / "split-fashion-tuned"
    for heads, name in EXPLORATORY.items():
        runs = pd.read_csv(reports / name / "runs.csv")
        of = runs.pivot_table(index="seed", columns="method", values="average_accuracy")
        d = (of["radial-vcl"] - of["gaussian-vcl"]).dropna()
        size, n = detectable(planned, first) * d.std(), seeds_for(abs(d.mean() / d.std()), first)
        print(
            f"{heads}: radial minus Gaussian {d.mean():+.3f}, sd {d.std():.3f} points over "
            f"{len(d)} seeds; {planned} seeds detect {size:.2f} points, {n} the mean"
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["power", *FAMILIES])
    parser.add_argument("folder", nargs="?", type=Path)
    options = parser.parse_args()
    if options.what == "power":
        _print_power()
        return
    if options.folder is None:
        parser.error("name the folder of the reports")
    family = FAMILIES[options.what]
    runs = {name: pd.read_csv(options.folder / name / "runs.csv") for name in family.chance}
    print(table(runs, family).to_string(index=False, float_format="{:.4g}".format))


if __name__ == "__main__":
    main()
