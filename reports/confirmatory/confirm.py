"""The numbers of the plan, and the tests that it states.

    python reports/confirmatory/confirm.py power             the effects that N seeds detect
    python reports/confirmatory/confirm.py primary FOLDER    the tests on the primary streams
    python reports/confirmatory/confirm.py fashion FOLDER    the tests on split FashionMNIST
    python reports/confirmatory/confirm.py picture           differences.png, layers on the CPU

FOLDER is the `report` that `vcl-radial run` writes, with BENCHMARK/runs.csv for each stream. With
`--to FILE.csv` the tests are also written to a file.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from vcl_radial.metrics import holm
from vcl_radial.reporting.blocks import signed
from vcl_radial.reporting.figures import layer_movement
from vcl_radial.reporting.figures.drawing import key_line, sheet
from vcl_radial.reporting.figures.names import method_label
from vcl_radial.reporting.figures.style import (
    FAINT,
    QUIET_INK,
    SMALL_SIZE,
    method_styles,
    save,
)

HERE = Path(__file__).parent
PLAN = tomllib.loads((HERE / "confirm.toml").read_text(encoding="utf-8"))
COMPARISONS = [tuple(pair) for pair in PLAN["comparisons"]]
LEVEL, POWER = 0.05, 0.8
_STREAMS = {
    "split-mnist-multi-head": "split MNIST,\nmany heads",
    "split-mnist-single-head": "split MNIST,\none head",
    "split-notmnist-multi-head": "split notMNIST,\nmany heads",
    "permuted-mnist": "permuted MNIST",
    "split-fashion-multi-head": "many heads",
    "split-fashion-single-head": "one head",
}


class Family(NamedTuple):
    """Tests that are corrected together.

    Attributes:
        seeds: seeds of all runs.
        chance: the accuracy of a guess in per cent by stream; a diverged run gets this accuracy.
    """

    seeds: range
    chance: Mapping[str, float]


FAMILIES = {
    name: Family(range(family["seeds"][0], family["seeds"][1] + 1), family["chance"])
    for name, family in PLAN["families"].items()
}
PRIMARY = FAMILIES["primary"]


def power(effect: npt.ArrayLike, seeds: int, level: float) -> npt.NDArray[np.float64]:
    """Power of the two-sided paired t-test, by the noncentral t distribution.

        P( |t| > t_{1 - level/2, n-1} ),   t ~ t'(n - 1, effect sqrt(n))

    Args:
        effect: mean of the differences over their standard deviation, from 0; any shape.
        seeds: n.
        level: significance level of the test.

    Returns:
        The power, without the tail of the other sign; the shape of `effect`.
    """
    beyond = stats.t.ppf(1 - level / 2, seeds - 1)
    return np.asarray(stats.nct.sf(beyond, seeds - 1, np.asarray(effect) * np.sqrt(seeds)))


def detectable(seeds: int, level: float) -> float:
    """The smallest effect with power 0.8, in standard deviations, to 0.001."""
    effects = np.arange(0.05, 5, 0.001)
    return float(effects[power(effects, seeds, level) >= POWER][0])


def seeds_for(effect: float, level: float) -> int:
    """The smallest number of seeds that detects an effect with power 0.8."""
    return next(n for n in range(3, 10_000) if power(effect, n, level) >= POWER)


def accuracies(runs: pd.DataFrame, method: str, seeds: range, chance: float) -> pd.Series:
    """Final average accuracy of every seed; a diverged run has the accuracy of a guess.

    Raises:
        SystemExit: the seeds of the runs are not exactly these.
    """
    names = runs["method"].str.removeprefix("best-")
    values = runs[names == method].set_index("seed")["average_accuracy"]
    if values.empty or not values.index.isin(seeds).all():
        sys.exit(f"{method}: has to have runs of seeds {seeds[0]} to {seeds[-1]}, and no others")
    return values.reindex(seeds, fill_value=chance)


def read(folder: Path, family: Family) -> dict[str, pd.DataFrame]:
    """`runs.csv` of each stream of a family."""
    return {name: pd.read_csv(folder / name / "runs.csv") for name in family.chance}


def table(runs: Mapping[str, pd.DataFrame], family: Family = PRIMARY) -> pd.DataFrame:
    """The tests of the plan, one line for each stream and comparison.

    Args:
        runs: `runs.csv` of each stream.
        family: family of the tests.

    Returns:
        `stream, first, second`, the mean `difference` in points with `lower` and `upper` of its
        95 % interval, the standard deviation `sd` of the differences, `p` of the t-test, `holm`,
        and the difference that the test `detects` with power 0.8 at this spread, as the first test
        of Holm's correction.
    """
    effect = detectable(len(family.seeds), LEVEL / (len(COMPARISONS) * len(family.chance)))
    rows = []
    for stream, chance in family.chance.items():
        for first, second in COMPARISONS:
            names = (first, second)
            a, b = (accuracies(runs[stream], name, family.seeds, chance) for name in names)
            d, sd = (a - b).mean(), (a - b).std()
            half = stats.t.ppf(0.975, len(a) - 1) * sd / np.sqrt(len(a))
            # If all differences are equal, the t-test is not defined.
            p = float(stats.ttest_rel(a, b).pvalue) if sd > 0 else float(d == 0)
            rows.append((stream, first, second, d, d - half, d + half, sd, effect * sd, p))
    columns = ["stream", "first", "second", "difference", "lower", "upper", "sd", "detects", "p"]
    result = pd.DataFrame(rows, columns=columns)
    return result.assign(holm=holm(result["p"].tolist()))


def picture(tests: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the differences with their 95 % intervals, a panel for each family of tests."""
    names = [f"{method_label(first)} − {method_label(second)}" for first, second in COMPARISONS]
    # A difference has the look of the method that a radial one is compared with.
    seconds = [second for _, second in COMPARISONS]
    styles = [method_styles(seconds)[second] for second in seconds]
    notes = ["means with 95 % intervals", f"filled where Holm's p < {LEVEL}"]
    key = [
        key_line(name, style.colour, marker=style.marker)
        for name, style in zip(names, styles, strict=True)
    ]
    look = {"per_line": len(tests), "width": 2.0, "height": 3.0, "key": key}
    with sheet("Differences between methods", notes, list(tests), **look) as (figure, panels):
        for axes, table in zip(panels, tests.values(), strict=True):
            axes.axvline(0, color=QUIET_INK, linewidth=0.8)
            for number, style in enumerate(styles):
                rows = table.iloc[number :: len(names)]
                ends = rows["difference"] - rows["lower"], rows["upper"] - rows["difference"]
                look = {"color": style.colour, "markersize": 5, "linewidth": 1.2}
                axes.errorbar(
                    rows["difference"], rows.index, xerr=ends, fmt=style.marker, mfc="white", **look
                )
                significant = rows[rows["holm"] < LEVEL]
                axes.plot(
                    significant["difference"], significant.index, style.marker, zorder=5, **look
                )
            for place, difference in table["difference"].items():
                axes.annotate(
                    signed(difference, 1 if abs(difference) >= 1 else 2).replace("-", "−"),
                    (1.0, float(str(place))),
                    (-2, 0),
                    xycoords=("axes fraction", "data"),
                    textcoords="offset points",
                    ha="right",
                    va="center",
                    fontsize=SMALL_SIZE,
                    color=QUIET_INK,
                )
            streams = [_STREAMS[name] for name in table["stream"].iloc[:: len(names)]]
            axes.set_yticks(range(1, len(table), len(names)), streams)
            axes.grid(visible=False, axis="y")
            for line in range(len(names), len(table), len(names)):
                axes.axhline(line - 0.5, color=FAINT, linewidth=0.8)
            axes.set(xlim=(-18, 28), ylim=(len(table) - 0.5, -0.5), xlabel="points of accuracy")
    return figure


def _print_power() -> None:
    tests, planned = len(COMPARISONS) * len(PRIMARY.chance), len(PRIMARY.seeds)
    first = LEVEL / tests
    print(f"{tests} tests; Holm's first step is at p < {first:.4f}")
    for seeds in (12, 16, 20, 24):
        effects = [detectable(seeds, level) for level in (LEVEL, first)]
        print(f"{seeds} seeds detect {effects[0]:.2f} sd alone, {effects[1]:.2f} sd as the first")
    for heads, name in PLAN["exploratory"].items():
        runs = pd.read_csv(HERE.parent / "split-fashion-tuned" / name / "runs.csv")
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
    parser.add_argument("what", choices=["power", "picture", *FAMILIES])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument(
        "--to", metavar="FILE.csv", type=Path, help="also write the tests to this file"
    )
    options = parser.parse_args()
    if options.what == "power":
        _print_power()
        return
    if options.what == "picture":
        blocks = PLAN["blocks"].items()
        tests = {block["title"]: pd.read_csv(HERE / f"{name}.csv") for name, block in blocks}
        save(picture(tests), HERE / "differences")
        layers = pd.read_csv(HERE / "on-cpu/split-mnist-single-head-layers.csv")
        layers["method"] = layers["method"].str.removeprefix("best-")
        save(layer_movement(layers), HERE / "on-cpu/split-mnist-single-head-layers")
        return
    if options.folder is None:
        parser.error("name the folder of the reports")
    family = FAMILIES[options.what]
    tests = table(read(options.folder, family), family)
    print(tests.to_string(index=False, float_format="{:.4g}".format))
    if options.to is not None:
        tests.to_csv(options.to, index=False)


if __name__ == "__main__":
    main()
