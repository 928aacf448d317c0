"""The tables of a part: means over seeds, Table 1, RETINA's scores; networks, calibration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pandas as pd

from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.reporting.blocks import Cell, Column, Table
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.retinopathy.report.published import SHARES, WORDS, published

Methods: TypeAlias = Mapping[str, Sequence[FinishedRun]]
"""The runs of each method, in order."""

_KEYS: Final = ["method", "after", "part", "metric", "uncertainty", "referred"]

REFERENCES: Final = ("texture", "silhouette", "colour")
"""Methods that see no lesion; a network may reach their scores by the same shortcut."""

RETINA: Final = {
    "nll": ("NLL (nats)", 3),
    "auprc": ("AUPRC", 1),
    "ece": ("ECE", 1),
    "accuracy_area": ("area: accuracy", 1),
    "nll_area": ("area: NLL (nats)", 3),
    "auc_area": ("area: AUC", 1),
    "auprc_area": ("area: AUPRC", 1),
}
"""Heading and decimals of the scores of RETINA."""

BALANCED: Final = {
    f"balanced_{metric}": RETINA[metric] for metric in RETINA if metric.endswith("_area")
} | {
    "brier": ("Brier", 3),
    "calibration_error": ("calibration error", 1),
    "sampling": ("sampling (%)", 3),
}
"""Heading and decimals of areas with equal class weights, and of more scores."""

UNCERTAINTY_NAMES: Final = {"mutual_information": "MI", "entropy": "entropy"}


def put_together(runs: Sequence[FinishedRun], table: str) -> pd.DataFrame:
    """Concatenate one table of all runs, with `method` and `seed` in front."""
    tables = []
    for run in runs:
        copy = run.tables[table].copy()
        copy.insert(0, "method", run.method)
        copy.insert(1, "seed", run.spec.seed)
        tables.append(copy)
    return pd.concat(tables, ignore_index=True)


def means(scores: pd.DataFrame) -> pd.DataFrame:
    """Means of scores over seeds.

    Args:
        scores: `scores.csv` of many runs, with `method` and `seed`.

    Returns:
        `method, after, part, metric, uncertainty, referred, seeds, mean, se_seeds, se_patients,
        lower, upper`: `se_seeds` is the standard error over seeds (not a number for one seed),
        `se_patients` is the bootstrapped standard error over patients of a run, and `lower, upper`
        are the 5 and 95 % quantiles; these three are averaged over seeds.
    """
    rows = []
    for keys, group in scores.groupby(_KEYS, sort=False, dropna=False):
        mean, error = mean_and_standard_error(group["value"])
        rest = (group[name].mean() for name in ("standard_error", "lower", "upper"))
        rows.append((*keys, group["seed"].nunique(), mean, error, *rest))
    names = ["seeds", "mean", "se_seeds", "se_patients", "lower", "upper"]
    return pd.DataFrame(rows, columns=[*_KEYS, *names])


def main_uncertainty(method_rows: pd.DataFrame) -> str:
    """The uncertainty that ranks photographs: mutual information, or entropy without draws."""
    known = set(method_rows["uncertainty"])
    return next((name for name in UNCERTAINTY_NAMES if name in known), "")


def ranked(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of a metric by each method's `main_uncertainty`."""
    parts = [
        group[(group["metric"] == metric) & (group["uncertainty"] == main_uncertainty(group))]
        for _, group in table.groupby("method", sort=False)
    ]
    return pd.concat(parts)


def cell(rows: pd.DataFrame, decimals: int = 1, *, patients: bool = True) -> str:
    """Format `mean ± standard error over seeds (over patients)`, or "" without a value.

    Args:
        rows: rows of `means`; the first is shown.
        decimals: decimals of all numbers.
        patients: whether the error over patients is shown beside the error over seeds.
    """
    if rows.empty or math.isnan(row := rows.iloc[0]["mean"]):
        return ""
    text = f"{row:.{decimals}f}"
    if not math.isnan(seeds := rows.iloc[0]["se_seeds"]):
        text += f" ± {seeds:.{decimals}f}"
    error = rows.iloc[0]["se_patients"]
    if not math.isnan(error) and (patients or math.isnan(seeds)):
        text += f" ({error:.{decimals}f})"
    return text


def tweaks(recipe: Mapping[str, Any]) -> str:
    """Changes of a recipe from the plain objective with the posterior at its default width.

    The paper counts all of these among the tweaks that MFVI needs (Sections 4.1.2 and 5): means
    trained first, little noise at first, less of the KL, and epochs chosen by validation data.

    Args:
        recipe: the recipe of a run's spec.
    """
    named = []
    if recipe.get("strategy") == "ml_init_vcl":
        named.append("means first")
    if recipe["posterior"] != "none":
        if "initial_noise" in recipe:
            named.append(f"noise {recipe['initial_noise']:.2g}")
        if recipe["kl_weight"] != 1:
            named.append(f"KL × {recipe['kl_weight']:.2g}")
    if "truncation" in recipe:
        named.append(f"truncated at {recipe['truncation']:g}")
    if recipe["select"] == "best":
        named.append("best epoch")
    return ", ".join(named) or "none"


def _network(runs: Sequence[FinishedRun]) -> list[str]:
    """Architecture, tweaks, parameters, and minutes of an epoch of all members."""
    spec = runs[0].spec
    members = spec.recipe["options"].get("members", 1)
    network = spec.recipe["network"]
    seconds = [run.environment["seconds_per_epoch"] for run in runs]
    return [
        f"{members} x " * (members > 1) + f"{network}, {spec.data['size']} px",
        tweaks(spec.recipe),
        f"{runs[0].environment['parameters']:,}",
        f"{sum(seconds) / len(seconds) / 60:.2g}",
    ]


def networks(methods: Methods, *, beside: bool = False) -> Table:
    """Architecture, tweaks, parameters and time of each method, beside the paper's."""
    rows: list[list[Cell | str]] = []
    for method, runs in methods.items():
        rows.append([label(method, runs), *_network(runs), str(len(runs))])
        if beside and (theirs := published().get(runs[0].spec.method)):
            facts = [theirs.network, "", f"~{theirs.parameters}", f"{theirs.epoch_minutes:.1f}"]
            named = [f"paper: {theirs.name}", *facts, ""]
            rows.append([Cell(text, published=True) for text in named])
    heads = [*text_columns("method", "network", "tweaks"), "parameters", "min / epoch", "seeds"]
    return Table(heads, rows)


def table_1(
    methods: Methods, part_rows: pd.DataFrame, *, beside: bool = False, patients: bool = True
) -> Table:
    """The paper's Table 1 for a part: AUC and accuracy of the kept photographs, by share referred.

    Args:
        methods: the runs of each method.
        part_rows: rows of `means` for one part.
        beside: whether the paper's rows stand below ours; the paper has no accuracies.
        patients: whether errors over patients are shown; see `cell`.
    """
    rows: list[list[Cell | str]] = []
    for method, runs in methods.items():
        method_rows = part_rows[part_rows["method"] == method]
        by = main_uncertainty(method_rows)
        cells = [
            cell(at(method_rows, metric, by, share), patients=patients)
            for metric in ("auc", "accuracy")
            for share in SHARES
        ]
        rows.append([label(method, runs), UNCERTAINTY_NAMES.get(by, ""), *cells])
        if beside and (theirs := published().get(runs[0].spec.method)):
            cells = [f"{theirs.auc[s]:.1f} ({theirs.standard_error[s]:.2f})" for s in SHARES]
            named = [f"paper: {theirs.name}", "", *cells, *[""] * len(SHARES)]
            rows.append([Cell(text, published=True) for text in named])
    shares = [f"{share:.0%}" for share in SHARES]
    heads: list[Column | str] = [
        *text_columns("method", "by"),
        *(Column(f"AUC, {share}", better="higher") for share in shares),
        *(Column(f"accuracy, {share}", better="higher", aside=True) for share in shares),
    ]
    return Table(heads, rows, "In % of what is kept when a share is referred")


def balanced_accuracies(methods: Methods, part_rows: pd.DataFrame) -> Table:
    """Balanced accuracy of the kept photographs, by the share referred."""
    rows = []
    for method, runs in methods.items():
        method_rows = part_rows[part_rows["method"] == method]
        by = main_uncertainty(method_rows)
        cells = [cell(at(method_rows, "balanced_accuracy", by, share)) for share in SHARES]
        rows.append([label(method, runs), *cells])
    heads = [f"{share:.0%} referred" for share in SHARES]
    return Table([*text_columns("method"), *heads], rows, "Balanced accuracy in % of what is kept")


def scores_table(
    methods: Methods,
    part_rows: pd.DataFrame,
    scores: Mapping[str, tuple[str, int]],
    title: str,
    *,
    patients: bool = True,
) -> Table:
    """Scores of a part by their headings, `RETINA` or `BALANCED`; areas by the uncertainty.

    The column of sampling is left out if it moves no prediction.
    """
    if not (part_rows[part_rows["metric"] == "sampling"]["mean"] > 0).any():
        scores = {metric: score for metric, score in scores.items() if metric != "sampling"}
    rows = []
    for method, runs in methods.items():
        method_rows = part_rows[part_rows["method"] == method]
        by = main_uncertainty(method_rows)
        cells = [
            cell(at(method_rows, metric, by), decimals, patients=patients)
            for metric, (_, decimals) in scores.items()
        ]
        rows.append([label(method, runs), *cells])
    heads = [_score_column(heading) for heading, _ in scores.values()]
    return Table([*text_columns("method"), *heads], rows, title)


def _score_column(heading: str) -> Column:
    if heading.startswith("sampling"):  # neither good nor bad
        return Column(heading)
    lower = any(word in heading for word in ("NLL", "ECE", "Brier", "error"))
    return Column(f"{heading} {'↓' if lower else '↑'}", better="lower" if lower else "higher")


def at(method_rows: pd.DataFrame, metric: str, by: str, share: float | None = None) -> pd.DataFrame:
    """The rows of a metric, for an uncertainty and a share if the metric has them."""
    rows = method_rows[
        (method_rows["metric"] == metric) & method_rows["uncertainty"].isin([by, ""])
    ]
    return rows if share is None else rows[rows["referred"] == share]


def label(method: str, runs: Sequence[FinishedRun]) -> str:
    """The label of a method: references are marked, others have the paper's name beside."""
    if runs[0].spec.method in REFERENCES:
        return f"reference: {method}"
    name = WORDS.get(runs[0].spec.method)
    return f"{method} ({name})" if name else method


def text_columns(*headings: str) -> list[Column | str]:
    """Columns of text."""
    return [Column(heading, is_text=True) for heading in headings]


def graded_parts(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Name and rows of the parts with graded photographs, in order."""
    scored = table[table["metric"] == "auc"]["part"].unique()
    for name, part_rows in table[table["part"].isin(scored)].groupby("part", sort=False):
        yield str(name), part_rows


def pooled_calibration(calibration: pd.DataFrame) -> pd.DataFrame:
    """Calibration curves over the photographs of all seeds together.

    Args:
        calibration: `calibration.csv` of many runs.

    Returns:
        `method, part, lower, upper, count, predicted, observed`; without empty bins.
    """
    bins = calibration[calibration["count"] > 0].copy()
    for name in ("predicted", "observed"):
        bins[name] *= bins["count"]
    keys = ["method", "part", "lower", "upper"]
    sums = bins.groupby(keys, sort=False)[["count", "predicted", "observed"]].sum().reset_index()
    for name in ("predicted", "observed"):
        sums[name] /= sums["count"]
    # Bins are sorted, because one seed may have photographs in a bin where another has none.
    order = {name: index for index, name in enumerate(dict.fromkeys(sums["method"]))}
    return sums.sort_values(
        ["method", "lower"], key=lambda c: c.map(order) if c.name == "method" else c
    ).reset_index(drop=True)
