"""Tables across parts: other data, out of distribution, differences by seed, sites in sequence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import pandas as pd

from vcl_radial.data.fundus.layouts import OTHER
from vcl_radial.metrics import METRICS, forgetting, mean_and_standard_error
from vcl_radial.reporting.blocks import Cell, Column, Table, mean_cell
from vcl_radial.reporting.figures.differences import paired
from vcl_radial.reporting.figures.tables import cell_of, column
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.retinopathy.report.tables import (
    BALANCED,
    RETINA,
    UNCERTAINTY_NAMES,
    Methods,
    at,
    cell,
    graded_parts,
    label,
    main_uncertainty,
    means,
    put_together,
    text_columns,
)
from vcl_radial.tracks.retinopathy.settings import VALIDATION

OUT_OF_DISTRIBUTION: Final = {
    "ood_auc": "AUC",
    "ood_auprc": "AUPRC",
    "finds_artefacts": "artefacts, AUC",
}
"""Metrics of what uncertainty detects."""

COMPARED: Final = {
    "auc": ("AUC (points)", 0.0, 2),
    "auc_30": ("AUC, 30 % referred (points)", 0.3, 2),
    "accuracy": ("accuracy (points)", 0.0, 2),
    "accuracy_30": ("accuracy, 30 % referred (points)", 0.3, 2),
    "nll": ("NLL (nats)", None, 3),
    "auc_area": ("area: AUC (points)", None, 2),
}
"""Scores in which methods are compared by seed: heading, share referred, decimals."""


def shift(methods: Methods, table: pd.DataFrame, trained_on: str) -> Table | None:
    """AUC on the test part and on other data sets; None without other data sets."""
    parts = [name for name, _ in graded_parts(table)]
    if "test" not in parts or len(parts) < 2:
        return None
    rows = []
    for method, runs in methods.items():
        method_rows = table[table["method"] == method]
        by = main_uncertainty(method_rows)
        aucs = at(method_rows, "auc", by, 0.0)
        cells = [cell(aucs[aucs["part"] == part], patients=part != "test") for part in parts]
        rows.append([label(method, runs), *cells])
    heads = [Column(trained_on if part == "test" else part, better="higher") for part in parts]
    title = f"AUC in %, trained on {trained_on} and tested on"
    return Table([*text_columns("method"), *heads], rows, title)


def shifts(method: str, runs: Sequence[FinishedRun], sets: Sequence[str]) -> Table:
    """AUC of one method on all data sets, with a row for each training set.

    Further columns show how its uncertainty detects photographs without a grade.

    Args:
        method: name of the method.
        runs: its runs; a run is trained on one set and scored on all sets.
        sets: names of the sets, in order.
    """
    ungraded = [name for name in runs[0].spec.data.get("shifted", []) if name.endswith(OTHER)]
    rows: list[list[Cell | str]] = []
    for trained_on in sets:
        set_runs = [run for run in runs if run.spec.data["dataset"] == trained_on]
        if not set_runs:
            continue
        table = means(put_together(set_runs, "scores"))
        by = main_uncertainty(table)
        parts = ["test" if name == trained_on else name for name in sets]
        auc, ood = at(table, "auc", by, 0.0), at(table, "ood_auc", by, None)
        pairs = [*((auc, part) for part in parts), *((ood, part) for part in ungraded)]
        cells = [cell(scores[scores["part"] == part], patients=False) for scores, part in pairs]
        rows.append([trained_on, *cells, str(len(set_runs))])
    names = [*sets, *(f"{name}: OOD" for name in ungraded)]
    heads = [Column(name, better="higher") for name in names]
    return Table([*text_columns("trained on"), *heads, "seeds"], rows, f"{method}: AUC in % on")


def out_of_distribution(methods: Methods, table: pd.DataFrame) -> Table | None:
    """How well uncertainty detects other data and artefacts; None without such scores."""
    detections = table[table["metric"].isin(list(OUT_OF_DISTRIBUTION))]
    if detections.empty:
        return None
    pairs = [
        (metric, str(part))
        for part in detections["part"].unique()
        for metric in OUT_OF_DISTRIBUTION
        if ((detections["part"] == part) & (detections["metric"] == metric)).any()
    ]
    rows = []
    for method, runs in methods.items():
        method_rows = detections[detections["method"] == method]
        for by, name in UNCERTAINTY_NAMES.items():
            group = method_rows[method_rows["uncertainty"] == by]
            cells = [
                cell(group[(group["metric"] == metric) & (group["part"] == part)], patients=False)
                for metric, part in pairs
            ]
            if any(cells):
                rows.append([label(method, runs), name, *cells])
    heads = [f"{part}: {OUT_OF_DISTRIBUTION[metric]}" for metric, part in pairs]
    return Table([*text_columns("method", "by"), *heads], rows)


def by_run(scores: pd.DataFrame) -> pd.DataFrame:
    """The main scores of every run, one line per part.

    Args:
        scores: `scores.csv` of many runs, with `method` and `seed`.

    Returns:
        `method, seed, after, part`, the scores of `COMPARED`, `RETINA` and `BALANCED`, `ood_auc`
        and `ood_auprc`; by each method's `main_uncertainty`.
    """
    names = {name: (name.removesuffix("_30"), share) for name, (_, share, _) in COMPARED.items()}
    for name in (*RETINA, *BALANCED, "ood_auc", "ood_auprc"):
        names.setdefault(name, (name, None))
    rows = []
    for method, method_rows in scores.groupby("method", sort=False):
        by = main_uncertainty(method_rows)
        keys = ["seed", "after", "part"]
        for key, lines in method_rows.groupby(keys, sort=False):
            row = dict(zip(("method", *keys), (method, *key), strict=True))
            for name, (metric, share) in names.items():
                value = at(lines, metric, by, share)["value"]
                row[name] = value.iloc[0] if len(value) else math.nan
            rows.append(row)
    return pd.DataFrame(rows)


def differences(
    runs: pd.DataFrame, method: str, reference: str, overlap: float = 0.0
) -> pd.DataFrame:
    """One method minus another, paired by seed, for each part and score of `COMPARED`.

    Args:
        runs: rows of `by_run` after the last site.
        method: the method to compare.
        reference: the method to compare with.
        overlap: test patients over training patients, if every seed has a separate split.

    Returns:
        The columns of `figures.differences.paired`, with `part`, `score` and `decimals`; empty if
        fewer than two seeds have both methods.
    """
    tables = []
    for part, part_rows in runs.groupby("part", sort=False):
        for name, (heading, _, decimals) in COMPARED.items():
            scores = part_rows.dropna(subset=[name]).set_index(["method", "seed"])[name]
            table = paired(dict(scores.items()), [method], reference, overlap)
            tables.append(table.assign(part=part, score=heading, decimals=decimals))
    return pd.concat(tables, ignore_index=True)


def by_site(scores: pd.DataFrame, sites: Sequence[str], benchmark: str) -> pd.DataFrame:
    """The AUC of each site on all photographs after each site, as the table of a task sequence.

    Args:
        scores: `scores.csv` of many runs, with `method` and `seed`.
        sites: names of the sites, in the order of training.
        benchmark: name of the benchmark.

    Returns:
        `benchmark, method, seed, after, task, metric, value`; sites count from 1,
        the metric is "AUC", in per cent.
    """
    numbers = {site: number for number, site in enumerate(sites, start=1)}
    parts = numbers
    if not scores["part"].isin(sites).any():  # the runs are scored on validation data
        parts = {f"{site} {VALIDATION}": number for site, number in numbers.items()}
    chosen = (scores["metric"] == "auc") & (scores["referred"] == 0) & scores["part"].isin(parts)
    # Without referral, the AUC is the same for every uncertainty.
    auc = scores[chosen].drop_duplicates(["method", "seed", "after", "part"])
    return pd.DataFrame(
        {
            "benchmark": benchmark,
            "method": auc["method"],
            "seed": auc["seed"],
            "after": auc["after"].map(numbers),
            "task": auc["part"].map(parts),
            "metric": "AUC",
            "value": auc["value"],
        }
    )


def with_carried(run_scores: pd.DataFrame, methods: Methods) -> pd.DataFrame:
    """Add a column `carried_bytes` to the table of `by_run`, if the runs have these numbers."""
    carried = {
        (method, run.spec.seed): run.environment.get("carried_bytes")
        for method, runs in methods.items()
        for run in runs
    }
    counts = [carried[run] for run in zip(run_scores["method"], run_scores["seed"], strict=True)]
    if all(count is None for count in counts):
        return run_scores
    return run_scores.assign(carried_bytes=pd.Series(counts, run_scores.index, dtype=float))


def by_sequence(
    results: pd.DataFrame, run_scores: pd.DataFrame, sites: Sequence[str]
) -> pd.DataFrame:
    """Scores of each run on all sites after the last site.

    Args:
        results: the table of `by_site`.
        run_scores: the table of `with_carried`.
        sites: names of the sites, in the order of training.

    Returns:
        `method, seed`, the AUC of each site by its name, their mean `mean_auc` and `forgetting`
        (the points that earlier sites fell from their best; none for a run with a single row), and
        `carried_bytes` if `run_scores` has them.
    """
    rows = []
    for (method, seed), run in results.groupby(["method", "seed"], sort=False):
        final = run[run["after"] == len(sites)].set_index("task")["value"]
        aucs = {site: final.get(number) for number, site in enumerate(sites, start=1)}
        lost = forgetting(run, "AUC")
        mean = final.mean()
        rows.append({"method": method, "seed": seed, **aucs, "mean_auc": mean, "forgetting": lost})
    table = pd.DataFrame(rows).astype({"forgetting": float})
    if "carried_bytes" not in run_scores:
        return table
    carried = run_scores.groupby(["method", "seed"])["carried_bytes"].first()
    return table.join(carried, on=["method", "seed"])


def in_sequence(runs: pd.DataFrame, sites: Sequence[str]) -> Table:
    """Mean AUC, forgetting, and the AUC of each site after the last site.

    Args:
        runs: the table of `by_sequence`, with or without carried bytes.
        sites: names of the sites, in the order of training.
    """
    carried = "carried_bytes" in runs
    rows: list[list[Cell | str]] = []
    for method, method_rows in runs.groupby("method", sort=False):
        scores = [method_rows[name].dropna() for name in ("mean_auc", "forgetting", *sites)]
        cells = [mean_cell(*mean_and_standard_error(score), 1) for score in scores]
        rows.append([str(method), *cells, str(len(method_rows))])
        if carried:
            counts = method_rows["carried_bytes"].dropna()
            rows[-1].append(cell_of("carried_bytes", counts.mean()))
    heads: list[Column | str] = [
        Column("method", is_text=True),
        Column("mean AUC (%) ↑", better="higher"),
        Column(
            METRICS["forgetting"].column,
            better="lower",
            meaning="points of AUC that earlier sites fell from their best",
        ),
        *(Column(site, better="higher") for site in sites),
        "seeds",
        *([column("carried_bytes")] if carried else []),
    ]
    return Table(heads, rows, "AUC in % after the last site", sorted_by="mean AUC (%) ↑")
