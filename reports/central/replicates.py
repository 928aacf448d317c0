"""What the plan computes of blocks E to J: searches, orders, photographs and repeats."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.central.runs import compare
from vcl_radial.metrics import holm
from vcl_radial.metrics.clusters import two_level_estimate
from vcl_radial.metrics.seeds import mean_and_standard_error
from vcl_radial.metrics.verdicts import LEVEL, POINTS_OF_ACCURACY, side

PAIRS = {
    "H6, radial − Gaussian": ("radial-vcl", "gaussian-vcl"),
    "H7, corrected prior − Eq. 44": ("radial-vcl", "radial-vcl-eq44"),
}
CONFIRMATORY = "omniglot", "cifar10"


def searches(table: pd.DataFrame) -> pd.DataFrame:
    """E2 and E4: the two-level t test of each benchmark and hypothesis.

    Returns:
        `benchmark, of, searches, difference, low, high, p, holm, side`: Holm's correction is over
        the four confirmatory tests, other benchmarks have none (nan) and no p-value.
    """
    lines: list[dict[str, Any]] = []
    for benchmark, of in table.groupby("benchmark", sort=False):
        for name, methods in PAIRS.items():
            first, second = (
                of[of["method"] == m].set_index(["search", "seed"])["accuracy"] for m in methods
            )
            clusters = [d.tolist() for _, d in (first - second).dropna().groupby("search")]
            estimate = two_level_estimate(clusters)
            low, high = estimate.interval()
            line = {"benchmark": benchmark, "of": name, "searches": len(clusters)}
            line |= {"difference": estimate.mean, "low": low, "high": high}
            tested = benchmark in CONFIRMATORY
            line |= {"p": estimate.p if tested else float("nan")}
            within = estimate.p_beyond(POINTS_OF_ACCURACY) < LEVEL
            lines.append(line | {"within": within, "alone": estimate.p})
    result = pd.DataFrame(lines)
    tests = result["benchmark"].isin(CONFIRMATORY)
    result["holm"] = float("nan")
    result.loc[tests, "holm"] = holm(result.loc[tests, "p"].tolist())
    p = result["holm"].fillna(result["alone"])
    result["side"] = [
        side(d, at, "within" if within else "undecided")
        for d, at, within in zip(result["difference"], p, result["within"], strict=True)
    ]
    return result.drop(columns=["within", "alone"])


def orders(table: pd.DataFrame) -> pd.DataFrame:
    """F: radial minus Gaussian and minus Eq. 44 in each order of the classes (the seed)."""
    lines = []
    for kind, of in table.groupby(["benchmark", "sigma"]):
        for name, methods in PAIRS.items():
            first, second = (of[of["method"] == method] for method in methods)
            result = compare(first, second)
            above = sum(value > 0 for value in result.values)
            same = f"{above} of {len(result.values)}"
            lines.append((*kind, name.partition(", ")[2], result, result.side, same))
    columns = ["benchmark", "sigma", "of", "difference", "side", "above in"]
    return pd.DataFrame(lines, columns=columns)


def photographs(rows: pd.DataFrame) -> pd.DataFrame:
    """G, H, I: test scores (%) of each method after the last site, with their standard errors."""
    rows = rows[rows["metric"].str.match(r"auc|calibration_error$") & (rows["after"] != "")]
    rows = rows.assign(value=rows["value"].astype(float), after=rows["after"].astype(int))
    keys = ["method", "settings", "task", "metric"]
    last = rows[rows["after"] == rows.groupby(["method", "settings"])["after"].transform("max")]
    return _of_values(last, keys)


def photograph_comparisons(rows: pd.DataFrame, others: list[str]) -> pd.DataFrame:
    """H: radial minus each other method in AUC on test patients, paired by split."""
    auc = rows[(rows["metric"] == "auc") & (rows["task"] == "test")]
    auc = auc.assign(auc=auc["value"].astype(float))
    radial = auc[auc["method"] == "radial-vcl"]
    results = {m: compare(radial, auc[auc["method"] == m], "auc") for m in others}
    lines = [(f"radial − {m}", result, result.side) for m, result in results.items()]
    return pd.DataFrame(lines, columns=["of", "difference", "side"])


def repeats(table: pd.DataFrame) -> pd.DataFrame:
    """J3, J4: the comparisons of `confirmatory` on a CPU."""
    pairs = [
        *PAIRS.values(),
        ("radial-vcl-proximal", "gaussian-vcl-proximal"),
    ]
    lines = []
    for benchmark, of in table.groupby("benchmark", sort=False):
        names = of["method"].str.removeprefix("best-")
        for first, second in pairs:
            result = compare(of[names == first], of[names == second])
            lines.append((benchmark, f"{first} − {second}", result, result.side))
    return pd.DataFrame(lines, columns=["benchmark", "of", "difference", "side"])


def figures(rows: pd.DataFrame) -> pd.DataFrame:
    """J2: where each curve of a figure ends, with its spread over seeds."""
    rows = rows[~rows["metric"].isin(["seconds", "cpu_seconds"])]
    rows = rows[~rows["metric"].str.endswith((" low", " high"))]
    rows = rows.assign(value=rows["value"].astype(float), at=pd.to_numeric(rows["after"], "coerce"))
    keys = ["method", "metric", "task"]
    last = rows.sort_values("at").groupby([*keys, "seed"], sort=False).tail(1)
    return _of_values(last, keys)


def _of_values(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    lines = []
    for kind, of in rows.groupby(keys, sort=False):
        mean, error = mean_and_standard_error(of["value"])
        lines.append((*kind, len(of), mean, error))
    return pd.DataFrame(lines, columns=[*keys, "n", "value", "value ±"])
