"""Scores of runs: one line per run and part, differences by seed, and sites in sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from vcl_radial.metrics import METRICS, forgetting, mean_and_standard_error
from vcl_radial.reporting.blocks import Cell, Column, Table, mean_cell
from vcl_radial.reporting.figures.differences import paired
from vcl_radial.reporting.figures.tables import cell_of, column
from vcl_radial.reporting.scores import ranked
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.retinopathy.report.tables import BALANCED, RETINA

COMPARED: Final = {
    "auc": ("AUC (points)", 2),
    "auc_30": ("AUC, 30 % referred (points)", 2),
    "accuracy": ("accuracy (points)", 2),
    "accuracy_30": ("accuracy, 30 % referred (points)", 2),
    "nll": ("NLL (nats)", 3),
    "auc_area": ("area: AUC (points)", 2),
}
"""Scores in which methods are compared by seed: heading and decimals."""


def by_run(scores: pd.DataFrame, finished: Sequence[FinishedRun]) -> pd.DataFrame:
    """The main scores of every run, one line per part.

    Args:
        scores: the table of scores.
        finished: its runs.

    Returns:
        `run, method, seed, after, part`, the scores of `COMPARED`, `RETINA` and `BALANCED`,
        `ood_auc` and `ood_auprc`, by each method's main uncertainty; `after` is the name of a site.
        A name that ends with `_30` is of the photographs kept when 30 % are referred.
    """
    shown = ranked(scores)
    shown = shown[shown["referred"].isna() | shown["referred"].isin([0.0, 0.3])]
    names = shown["metric"] + shown["referred"].eq(0.3).map({True: "_30", False: ""})
    keys = ["run", "method", "seed", "after", "part"]
    wide = shown.assign(name=names).pivot(index=keys, columns="name", values="value")
    wide = wide.reindex(pd.MultiIndex.from_frame(scores[keys].drop_duplicates()))
    columns = dict.fromkeys((*COMPARED, *RETINA, *BALANCED, "ood_auc", "ood_auprc"))
    table = wide.reindex(columns=[*columns]).rename_axis(columns=None).reset_index()
    sites = [finished[run].environment["sites"] for run in table["run"]]
    return table.assign(after=[s[n - 1] for s, n in zip(sites, table["after"], strict=True)])


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
        for name, (heading, decimals) in COMPARED.items():
            scores = part_rows.dropna(subset=[name]).set_index(["method", "seed"])[name]
            table = paired(dict(scores.items()), [method], reference, overlap)
            tables.append(table.assign(part=part, score=heading, decimals=decimals))
    return pd.concat(tables, ignore_index=True)


def by_sequence(sequence: pd.DataFrame, runs: pd.DataFrame, sites: Sequence[str]) -> pd.DataFrame:
    """Scores of each run on all sites after the last site.

    Args:
        sequence: the AUC of each site after each site, from `scores.over_tasks`.
        runs: the table of runs.
        sites: names of the sites, in the order of training.

    Returns:
        `method, seed`, the AUC of each site by its name, their mean `mean_auc` and `forgetting`
        (the points that earlier sites fell from their best; nan for a run with a single row), and
        `carried_bytes` if they are known.
    """
    last = sequence[sequence["after"] == len(sites)]
    final = last.pivot(index="run", columns="task", values="value").set_axis([*sites], axis=1)
    lost = {run: forgetting(rows, "AUC") for run, rows in sequence.groupby("run")}
    more = final.assign(mean_auc=final.mean(axis=1), forgetting=pd.Series(lost, dtype=float))
    carried = runs[["carried_bytes"]].dropna(axis=1, how="all")
    return runs[["method", "seed"]].join([more, carried])


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
