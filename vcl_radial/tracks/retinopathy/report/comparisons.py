"""Tables across parts: other data, out of distribution, differences by seed, sites in sequence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import pandas as pd

from vcl_radial.data.fundus.layouts import OTHER
from vcl_radial.metrics import forgetting, mean_and_standard_error
from vcl_radial.reporting.figures.differences import paired
from vcl_radial.reporting.figures.scores import SCORES
from vcl_radial.reporting.figures.tables import cell_of, column
from vcl_radial.runs.finished import FinishedRun
from vcl_radial.runs.sections import Cell, Column, Table, mean_cell
from vcl_radial.tracks.retinopathy.report.tables import (
    BALANCED,
    RETINA,
    UNCERTAINTY_NAMES,
    Methods,
    at,
    cell,
    each_part,
    label,
    main_uncertainty,
    means,
    put_together,
    words,
)
from vcl_radial.tracks.retinopathy.settings import VALIDATION

OUT_OF_DISTRIBUTION: Final = {
    "ood_auc": "AUC",
    "ood_auprc": "AUPRC",
    "finds_artefacts": "artefacts, AUC",
}
"""What uncertainty is asked to find."""

COMPARED: Final = {
    "auc": ("AUC (points)", 0.0, 2),
    "auc_30": ("AUC, 30 % referred (points)", 0.3, 2),
    "accuracy": ("accuracy (points)", 0.0, 2),
    "accuracy_30": ("accuracy, 30 % referred (points)", 0.3, 2),
    "nll": ("NLL (nats)", None, 3),
    "auc_area": ("area: AUC (points)", None, 2),
}
"""Scores of which methods are compared by seed: heading, share referred, decimals."""


def shift(methods: Methods, table: pd.DataFrame, trained_on: str) -> Table | None:
    """AUC on the test part and on other data sets; None where there are no others."""
    parts = [name for name, _ in each_part(table)]
    if "test" not in parts or len(parts) < 2:
        return None
    rows = []
    for method, runs in methods.items():
        of_method = table[table["method"] == method]
        by = main_uncertainty(of_method)
        rows_of = at(of_method, "auc", by, 0.0)
        cells = [cell(rows_of[rows_of["part"] == part], patients=part != "test") for part in parts]
        rows.append([label(method, runs), *cells])
    heads = [Column(trained_on if part == "test" else part, better="higher") for part in parts]
    title = f"AUC in %, trained on {trained_on} and tested on"
    return Table([*words("method"), *heads], rows, title)


def shifts(method: str, runs: Sequence[FinishedRun], sets: Sequence[str]) -> Table:
    """AUC of one method on all data sets, a row for each that it was trained on.

    What its uncertainty finds of photographs without a grade has a column beside.

    Args:
        method: its name, with the noun of the table.
        runs: of it, trained on one set each and scored on the others as well.
        sets: their names, in order.
    """
    others = [name for name in runs[0].spec.data.get("shifted", []) if name.endswith(OTHER)]
    rows: list[list[Cell | str]] = []
    for trained_on in sets:
        of_set = [run for run in runs if run.spec.data["dataset"] == trained_on]
        if not of_set:
            continue
        table = means(put_together(of_set, "scores"))
        by = main_uncertainty(table)
        parts = ["test" if name == trained_on else name for name in sets]
        auc, ood = at(table, "auc", by, 0.0), at(table, "ood_auc", by, None)
        asked = [*((auc, part) for part in parts), *((ood, part) for part in others)]
        cells = [cell(of[of["part"] == part], patients=False) for of, part in asked]
        rows.append([trained_on, *cells, str(len(of_set))])
    names = [*sets, *(f"{name}: OOD" for name in others)]
    heads = [Column(name, better="higher") for name in names]
    return Table([*words("trained on"), *heads, "seeds"], rows, f"{method}: AUC in % on")


def out_of_distribution(methods: Methods, table: pd.DataFrame) -> Table | None:
    """How well uncertainty finds other data and artefacts; None where nothing was asked."""
    asked = table[table["metric"].isin(list(OUT_OF_DISTRIBUTION))]
    if asked.empty:
        return None
    pairs = [
        (metric, str(part))
        for part in asked["part"].unique()
        for metric in OUT_OF_DISTRIBUTION
        if ((asked["part"] == part) & (asked["metric"] == metric)).any()
    ]
    rows = []
    for method, runs in methods.items():
        of_method = asked[asked["method"] == method]
        for by, name in UNCERTAINTY_NAMES.items():
            of_by = of_method[of_method["uncertainty"] == by]
            cells = [
                cell(of_by[(of_by["metric"] == metric) & (of_by["part"] == part)], patients=False)
                for metric, part in pairs
            ]
            if any(cells):
                rows.append([label(method, runs), name, *cells])
    heads = [f"{part}: {OUT_OF_DISTRIBUTION[metric]}" for metric, part in pairs]
    return Table([*words("method", "by"), *heads], rows)


def by_run(scores: pd.DataFrame) -> pd.DataFrame:
    """The main scores of every run, a line for each part.

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
    for method, of_method in scores.groupby("method", sort=False):
        by = main_uncertainty(of_method)
        keys = ["seed", "after", "part"]
        for key, lines in of_method.groupby(keys, sort=False):
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
        runs: what `by_run` gave, after the last site.
        method: that is compared.
        reference: with this one.
        overlap: test patients over training patients, where each seed has a split of its own.

    Returns:
        What `figures.differences.paired` gives, with `part`, `score` and `decimals`; empty where
        fewer than two seeds have both.
    """
    tables = []
    for part, of_part in runs.groupby("part", sort=False):
        for name, (heading, _, decimals) in COMPARED.items():
            known = of_part.dropna(subset=[name]).set_index(["method", "seed"])[name]
            values = dict(known.items())
            one = paired(values, [method], reference, overlap)
            tables.append(one.assign(part=part, score=heading, decimals=decimals))
    return pd.concat(tables, ignore_index=True)


def by_site(scores: pd.DataFrame, sites: Sequence[str], benchmark: str) -> pd.DataFrame:
    """The AUC of each site after each, of all photographs, as the table of a task sequence.

    Args:
        scores: `scores.csv` of many runs, with `method` and `seed`.
        sites: in the order of training.
        benchmark: its name.

    Returns:
        `benchmark, method, seed, task_trained, task_evaluated, metric, value`; sites count from 1,
        the metric is "AUC", in per cent.
    """
    numbers = {site: number for number, site in enumerate(sites, start=1)}
    parts = numbers
    if not scores["part"].isin(sites).any():  # of runs that are scored on validation data
        parts = {f"{site} {VALIDATION}": number for site, number in numbers.items()}
    of_all = (scores["metric"] == "auc") & (scores["referred"] == 0) & scores["part"].isin(parts)
    # Before any is referred, every uncertainty has the same.
    auc = scores[of_all].drop_duplicates(["method", "seed", "after", "part"])
    return pd.DataFrame(
        {
            "benchmark": benchmark,
            "method": auc["method"],
            "seed": auc["seed"],
            "task_trained": auc["after"].map(numbers),
            "task_evaluated": auc["part"].map(parts),
            "metric": "AUC",
            "value": auc["value"],
        }
    )


def with_carried(of_runs: pd.DataFrame, methods: Methods) -> pd.DataFrame:
    """What `by_run` gave with a column `carried_bytes`, where runs know what they carry."""
    carried = {
        (method, run.spec.seed): run.environment.get("carried_bytes")
        for method, runs in methods.items()
        for run in runs
    }
    counts = [carried[run] for run in zip(of_runs["method"], of_runs["seed"], strict=True)]
    if all(count is None for count in counts):
        return of_runs
    return of_runs.assign(carried_bytes=pd.Series(counts, of_runs.index, dtype=float))


def by_sequence(results: pd.DataFrame, of_runs: pd.DataFrame, sites: Sequence[str]) -> pd.DataFrame:
    """What is left of the sites after the last, of each run.

    Args:
        results: what `by_site` gave.
        of_runs: what `with_carried` gave.
        sites: in the order of training.

    Returns:
        `method, seed`, the AUC of each site by its name, their mean `mean_auc` and `forgetting`
        (the points that earlier sites fell from their best, none of a run with a single row), and
        `carried_bytes` where `of_runs` has them.
    """
    rows = []
    for (method, seed), run in results.groupby(["method", "seed"], sort=False):
        final = run[run["task_trained"] == len(sites)].set_index("task_evaluated")["value"]
        of_sites = {site: final.get(number) for number, site in enumerate(sites, start=1)}
        lost = forgetting(run, "AUC")
        mean = final.mean()
        rows.append(
            {"method": method, "seed": seed, **of_sites, "mean_auc": mean, "forgetting": lost}
        )
    table = pd.DataFrame(rows).astype({"forgetting": float})
    if "carried_bytes" not in of_runs:
        return table
    carried = of_runs.groupby(["method", "seed"])["carried_bytes"].first()
    return table.join(carried, on=["method", "seed"])


def in_sequence(runs: pd.DataFrame, sites: Sequence[str]) -> Table:
    """What is left of the sites after the last: their mean AUC, forgetting, and the AUC of each.

    Args:
        runs: what `by_sequence` gave; without carried bytes the table has none.
        sites: in the order of training.
    """
    carried = "carried_bytes" in runs
    rows: list[list[Cell | str]] = []
    for method, of_method in runs.groupby("method", sort=False):
        scores = [of_method[name].dropna() for name in ("mean_auc", "forgetting", *sites)]
        cells = [mean_cell(*mean_and_standard_error(score), 1) for score in scores]
        rows.append([str(method), *cells, str(len(of_method))])
        if carried:
            counts = of_method["carried_bytes"].dropna()
            rows[-1].append(cell_of("carried_bytes", counts.mean()))
    heads: list[Column | str] = [
        Column("method", words=True),
        Column("mean AUC (%) ↑", better="higher"),
        Column(
            SCORES["forgetting"].heading,
            better="lower",
            meaning="points of AUC that earlier sites fell from their best",
        ),
        *(Column(site, better="higher") for site in sites),
        "seeds",
        *([column("carried_bytes")] if carried else []),
    ]
    return Table(heads, rows, "AUC in % after the last site", sorted_by="mean AUC (%) ↑")
