"""What the plan computes of blocks A to D: start, grid, mechanism and frontier.

Each function takes the table of a block's runs (`reports.central.runs`) and returns a table.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from reports.central.runs import compare, means
from vcl_radial.metrics.seeds import mean_and_standard_error

SOFTPLUS, LOG_VARIANCE = 0.002476, 0.0498
"""The two readings of -6: softplus(-6), and exp(-6 / 2)."""

EQUAL_SIGMA, EQUAL_NOISE = "radial, equal sigma", "radial, equal noise"
NAMES = {"gaussian-vcl": "Gaussian", "radial-vcl-eq44": "Eq. 44"}
FAMILIES = EQUAL_SIGMA, EQUAL_NOISE, *NAMES.values()
LEVELS = 0.5, 1.0, 2.0, 5.0
"""Forgetting, in points, at which methods are compared."""


def with_starts(table: pd.DataFrame) -> pd.DataFrame:
    """The runs of block A with the columns `family` and `start`; `naive` and others have none."""
    table = table.reindex(columns=[*dict.fromkeys([*table, "sigma", "initial_noise"])])
    equal_noise = table["initial_noise"].notna()
    family = table["method"].replace(NAMES).mask(table["method"] == "radial-vcl", EQUAL_SIGMA)
    start = table["sigma"].fillna(table["initial_noise"])
    return table.assign(family=family.mask(equal_noise, EQUAL_NOISE), start=start)


def start(table: pd.DataFrame) -> pd.DataFrame:
    """A: accuracy, learnt and forgotten of each benchmark, family and start."""
    points = means(with_starts(table), ["benchmark", "family", "start"])
    return points.sort_values(["benchmark", "family", "start"], ignore_index=True)


def at_start(table: pd.DataFrame, family: str, start: float) -> pd.DataFrame:
    """The runs of a family at a start."""
    return table[(table["family"] == family) & np.isclose(table["start"], start)]


def start_comparisons(table: pd.DataFrame) -> pd.DataFrame:
    """A: each radial family and Eq. 44 minus the Gaussian, and what the Gaussian forgets more."""
    lines = []
    for benchmark, of in with_starts(table).groupby("benchmark"):
        for at in sorted(of["start"].dropna().unique()):
            gaussian = at_start(of, "Gaussian", at)
            for family in (EQUAL_SIGMA, EQUAL_NOISE, "Eq. 44"):
                other = at_start(of, family, at)
                accuracy = compare(other, gaussian)
                forgotten = compare(gaussian, other, "forgotten")
                if accuracy.values:
                    line = (benchmark, at, family, len(accuracy.values), accuracy, accuracy.side)
                    lines.append((*line, forgotten, forgotten.side))
    columns = ["benchmark", "start", "family", "n", "accuracy", "side", "forgotten", "more"]
    return pd.DataFrame(lines, columns=columns)


def start_sides(comparisons: pd.DataFrame, benchmark: str, family: str) -> dict[float, str]:
    """The side of a family at each start."""
    of = comparisons[(comparisons.benchmark == benchmark) & (comparisons.family == family)]
    return dict(zip(of["start"], of["side"], strict=True))


def h1(comparisons: pd.DataFrame, benchmark: str) -> str:
    """H1: does the sign of radial minus Gaussian, at equal sigma, depend on the reading of -6?"""
    sides = start_sides(comparisons, benchmark, EQUAL_SIGMA)
    small, large = (sides.get(at, "undecided") for at in (SOFTPLUS, LOG_VARIANCE))
    if large == "above" and small in ("below", "within"):
        return "holds"
    return "undecided" if "undecided" in (small, large) else "does not hold"


def h2(comparisons: pd.DataFrame, benchmark: str) -> str:
    """H2: at equal noise per weight, is radial within 0.5 points of the Gaussian everywhere?"""
    sides = set(start_sides(comparisons, benchmark, EQUAL_NOISE).values())
    if sides & {"above", "below"}:
        return "does not hold"
    return "holds" if sides == {"within"} else "undecided"


def grid(table: pd.DataFrame) -> pd.DataFrame:
    """B: mean validation accuracy of each epochs and batch size, a column for method and sigma."""
    kind = table["method"].replace({"radial-vcl": "radial", **NAMES}) + table["sigma"].map(
        " {:.4g}".format
    )
    return (
        table.assign(kind=kind)
        .pivot_table(index=["benchmark", "epochs", "batch_size"], columns="kind", values="accuracy")
        .rename_axis(columns=None)
        .reset_index()
    )


def grid_best(table: pd.DataFrame) -> pd.DataFrame:
    """B: the best cell of each method and start."""
    points = means(table, ["benchmark", "method", "sigma", "epochs", "batch_size"], ["accuracy"])
    best = points.groupby(["benchmark", "method", "sigma"])["accuracy"].idxmax()
    return points.loc[best].reset_index(drop=True)


PENALTIES = {
    "radial-vcl": ("radial", "radial"),
    "radial-penalty-gaussian-noise": ("radial", "Gaussian"),
    "radial-penalty-no-noise": ("radial", "none"),
    "radial-vcl-eq44": ("Eq. 44", "radial"),
    "eq44-penalty-gaussian-noise": ("Eq. 44", "Gaussian"),
    "eq44-penalty-no-noise": ("Eq. 44", "none"),
    "gaussian-penalty-radial-noise": ("Gaussian", "radial"),
    "gaussian-vcl": ("Gaussian", "Gaussian"),
    "gaussian-penalty-no-noise": ("Gaussian", "none"),
    "group-lasso": ("group lasso", "no posterior"),
}
"""Penalty and noise of a method of block C."""

LASSO = 506.0
"""The group lasso's weight that has the slope of the corrected KL at weight 1."""


def _factors(table: pd.DataFrame) -> pd.DataFrame:
    table = table.reindex(columns=[*dict.fromkeys([*table, "grouping", "options.groups"])])
    lasso = table["method"] == "group-lasso"
    weight = table["kl_weight"].mask(lasso, (table["kl_weight"] / LASSO).round(9))
    pairs = table["method"].map(lambda method: PENALTIES.get(method, (method, "–")))
    return table.assign(
        penalty=pairs.str[0],
        noise=pairs.str[1],
        grouping=table["grouping"].fillna(table["options.groups"]).fillna("–"),
        weight=weight,
    )


def mechanism(table: pd.DataFrame) -> pd.DataFrame:
    """C: accuracy, learnt, forgotten, how far layers move and how many units rest, per cell."""
    kinds = ["benchmark", "penalty", "noise", "grouping", "weight"]
    scores = ["accuracy", "learnt", "forgotten", "moved", "units_at_rest"]
    factors = _factors(table[~table["method"].str.endswith("-mean")])
    return means(factors.reindex(columns=[*kinds, *scores]), kinds, scores)


def mechanism_comparisons(table: pd.DataFrame) -> pd.DataFrame:
    """C: H3 and H4, at every benchmark, grouping and weight: radial VCL minus another cell."""
    others = {
        "H3, Gaussian noise": "radial-penalty-gaussian-noise",
        "H3, no noise": "radial-penalty-no-noise",
        "H4, group lasso": "group-lasso",
    }
    return _compared(_factors(table), "radial-vcl", others, ["benchmark", "grouping", "weight"])


def mean_networks(table: pd.DataFrame) -> pd.DataFrame:
    """C: sampled prediction minus that of the mean network, of the same posteriors."""
    lines = []
    factors = _factors(table)
    for method in ("radial-vcl", "radial-vcl-eq44", "gaussian-vcl"):
        sampled = factors[(factors["method"] == method) & factors["grouping"].isin(["layer", "–"])]
        mean = factors[factors["method"] == f"{method}-mean"]
        both = pd.concat([sampled, mean])
        others = {method: f"{method}-mean"}
        lines.append(_compared(both, method, others, ["benchmark", "weight"]))
    return pd.concat(lines, ignore_index=True)


def _compared(
    table: pd.DataFrame, first: str, others: dict[str, str], by: list[str]
) -> pd.DataFrame:
    """A method minus each of the others, for all kinds of runs that both have."""
    lines: list[dict[str, Any]] = []
    for name, other in others.items():
        for kind, of in table.groupby(by, dropna=False):
            result = compare(of[of["method"] == first], of[of["method"] == other])
            if result.values:
                line = dict(zip(by, kind, strict=True))
                lines.append(line | {"of": name, "difference": result, "side": result.side})
    return pd.DataFrame(lines, columns=[*by, "of", "difference", "side"])


def tally(comparisons: pd.DataFrame, name: str) -> str:
    """How often a comparison is within, above, below or undecided: `within 3, undecided 2 of 5`."""
    of = comparisons[comparisons["of"].str.startswith(name)]
    counts = of["side"].value_counts()
    return ", ".join(f"{side} {count}" for side, count in counts.items()) + f" of {len(of)}"


def crossing(forgotten: list[float], learnt: list[float], level: float) -> float:
    """The place on a curve, a number between two weights, at which it forgets so many points.

    Between neighbouring weights both scores are linear. Of several places the one that has learnt
    most is taken; nan where the curve does not reach the level.
    """
    places = []
    for i, (here, there) in enumerate(pairwise(forgotten)):
        if min(here, there) <= level <= max(here, there):
            share = 0.0 if here == there else (level - here) / (there - here)
            places.append((learnt[i] + share * (learnt[i + 1] - learnt[i]), i + share))
    return max(places)[1] if places else math.nan


def frontier(table: pd.DataFrame) -> pd.DataFrame:
    """D: each seed's test scores where its validation curve has forgotten 0.5, 1, 2, 5 points.

    Returns:
        `benchmark, method, sigma, seed, level, weight, learnt, accuracy`, nan where not reached.
    """
    columns = ["sigma", "kl_weight", "options.hessian_weight"]
    table = table.reindex(columns=[*dict.fromkeys([*table, *columns])])
    strength = table["kl_weight"].fillna(table["options.hessian_weight"])
    table = table.assign(strength=strength)[strength.notna()]
    lines: list[dict[str, Any]] = []
    keys = ["benchmark", "method", "sigma", "seed"]
    for kind, of in table.groupby(keys, dropna=False):
        curve, test = (
            of[of["part"] == part].sort_values("strength") for part in ("validation", "test")
        )
        at = np.arange(len(curve))
        for level in LEVELS:
            place = crossing(curve["forgotten"].tolist(), curve["learnt"].tolist(), level)
            line = dict(zip(keys, kind, strict=True)) | {"level": level}
            line["weight"] = float(np.exp(np.interp(place, at, np.log(curve["strength"]))))
            for score in ("learnt", "accuracy"):
                line[score] = float(np.interp(place, at, test[score]))
            lines.append(line)
    return pd.DataFrame(lines)


def frontier_means(points: pd.DataFrame) -> pd.DataFrame:
    """D: means over the seeds that reach a level; `reached` counts them."""
    lines = []
    for kind, of in points.groupby(["benchmark", "level", "method", "sigma"], dropna=False):
        benchmark, level, method, sigma = kind
        reached = of.dropna(subset="weight")
        line = {"benchmark": benchmark, "forgotten": level, "method": method, "sigma": sigma}
        line |= {"reached": f"{len(reached)} of {len(of)} seeds"}
        for score in ("weight", "learnt", "accuracy"):
            line[score] = mean_and_standard_error(reached[score])[0]
        lines.append(line)
    return pd.DataFrame(lines)


def frontier_comparisons(points: pd.DataFrame) -> pd.DataFrame:
    """D: H5, radial minus Gaussian and minus Eq. 44 in learnt accuracy, at equal forgetting."""
    lines = []
    for kind, of in points.groupby(["benchmark", "sigma", "level"]):
        for method, name in NAMES.items():
            radial, other = (of[of["method"] == m] for m in ("radial-vcl", method))
            result = compare(radial, other, "learnt")
            side = result.side if result.values else "not reached by both"
            lines.append((*kind, f"radial − {name}", result, side))
    columns = ["benchmark", "sigma", "forgotten", "of", "difference", "side"]
    return pd.DataFrame(lines, columns=columns)
