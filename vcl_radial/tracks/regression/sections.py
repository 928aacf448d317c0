"""Sections of a report on regression tables: our scores beside the papers', and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import pandas as pd

from vcl_radial.reporting.blocks import Block, Figure, Section, Text
from vcl_radial.reporting.figures.differences import difference_table
from vcl_radial.reporting.labels import LabelParts, flat, labels
from vcl_radial.reporting.scores import means as scores_means
from vcl_radial.reporting.scores import runs_table, scores_table
from vcl_radial.reporting.sections import settings, shown
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.regression import pictures, published, tables
from vcl_radial.tracks.regression.settings import table_name

GAUSSIAN, RADIAL = "gaussian-vcl", "radial-vcl"
"""The methods whose difference is shown."""

_HOW_TO_READ: Final = "Mean ± standard error over splits, in the original units."

_AT_ONCE: Final = (
    f"{_HOW_TO_READ} The log-likelihood is that of the mixture over weight samples, with the noise "
    "integrated out."
)

_IN_SEQUENCE: Final = (
    f"{_HOW_TO_READ} The training rows come in slices along their first principal component, and "
    "each posterior is the prior of the next slice. The gap is the score after the last slice "
    "minus that of the posterior of all rows at once, trained for as many steps; paired by split."
)

_PAIRED: Final = (
    "Paired by split. Splits of one set share most of their rows: the standard error and p are "
    "those of Nadeau and Bengio, by Holm's correction over all rows."
)

_RDP: Final = (
    "The figures of RDP are of another quantity: the authors' code sums the likelihood over test "
    "points where a mixture sums over draws of the weights. See reports/uci in the repository."
)

_CHOSEN: Final = (
    "Keys that differ between splits, by number of splits. A sweep chooses them on rows held out "
    "of each split's own training rows."
)

_INTERVALS: Final = (
    "The central 90 % interval of the mixture over weight samples, and the split-conformal one, "
    "which is wider or narrower by a length that training rows calibrate which no run learns from: "
    "it covers 90 % of new rows whatever the model, up to the chance of the rows. Widths are in "
    "units of the target. A row is surer where its predictive standard deviation is smaller. Mean "
    "± standard error over splits."
)

_RESULTS: Final = ("set", "method", "setting", "split", "slice", "metric", "value")
"""Columns of results.csv."""


def report(finished: Sequence[FinishedRun]) -> list[Section]:
    """All sets of a benchmark together: scores, published scores, and chosen settings."""
    # Sort by set, and keep the report's order of methods.
    scores = scores_table(finished).sort_values("part", kind="stable", ignore_index=True)
    carried = runs_table(finished)[["carried_bytes"]].dropna(axis=1, how="all")
    scores = scores.join(carried, on="run")
    setting = scores["run"].map(dict(enumerate(_settings(finished))))
    names = {"part": "set", "seed": "split", "after": "slice"}
    results = scores.assign(setting=setting).rename(columns=names)[[*_RESULTS, *carried]]
    files = {"results.csv": results.to_csv(index=False)}
    is_of_interval = scores["metric"].isin(tables.INTERVALS)
    intervals, scores = _intervals(scores[is_of_interval]), scores[~is_of_interval]
    if scores["after"].max() > 0:
        return shown([_in_sequence(scores, files), intervals, settings(finished)])
    means = scores_means(scores)
    parts = [
        _at_once(means, files),
        _difference(scores),
        _beside_the_papers(means),
        intervals,
        _chosen(results),
        settings(finished),
    ]
    return shown(parts)


def _settings(finished: Sequence[FinishedRun]) -> list[str]:
    """The keys of each run that differ between the recipes of a method on one set."""
    texts = labels(
        [
            LabelParts(
                (run.spec.data.get("slices"), table_name(run.spec.data), run.method),
                "",
                flat(run.spec.recipe),
            )
            for run in finished
        ],
        "code",
    )
    return [text.removeprefix(" (").removesuffix(")") for text in texts]


def _at_once(means: pd.DataFrame, files: dict[str, str]) -> Section:
    names = {"part": "set", "seeds": "splits"}
    columns = ["set", "method", "metric", "mean", "standard_error", "splits"]
    files["summary.csv"] = means.rename(columns=names)[columns].to_csv(index=False)
    draw = partial(pictures.log_likelihoods, means)
    picture = Figure("log-likelihood", draw, "Test log-likelihood of each method, by set")
    scores = [tables.score_table(means, metric) for metric in tables.metrics(means)]
    return Section("", [Text(_AT_ONCE), *scores, picture], files)


def _in_sequence(scores: pd.DataFrame, files: dict[str, str]) -> Section:
    gaps = tables.gaps(scores)
    files["summary.csv"] = gaps.to_csv(index=False)
    picture = Figure(
        "in-sequence",
        partial(pictures.over_slices, scores),
        "Test log-likelihood after each slice, by set",
    )
    shown = [tables.gap_table(gaps, metric) for metric in tables.metrics(gaps)] if len(gaps) else []
    return Section("", [Text(_IN_SEQUENCE), *shown, picture], files)


def _difference(scores: pd.DataFrame) -> Section | None:
    gaps = tables.differences(scores, RADIAL, GAUSSIAN)
    if gaps.empty:
        return None
    table = difference_table(gaps, ("set", "score"), unit="")
    return Section(f"{RADIAL} minus {GAUSSIAN}", [Text(_PAIRED), table])


def _intervals(scores: pd.DataFrame) -> Section | None:
    if scores.empty:
        return None
    return Section("What it does not know", [Text(_INTERVALS), tables.interval_table(scores)])


def _beside_the_papers(means: pd.DataFrame) -> Section | None:
    blocks: list[Block] = [
        table
        for source in published.SOURCES
        for metric in tables.metrics(means)
        if (table := published.beside(means, source, metric)) is not None
    ]
    if not blocks:
        return None
    note = "Our means, rounded to two decimals, beside the published ones:"
    blocks.append(Text(note, published.verdicts(means)))
    if any(column == "rdp" for _, column, *_ in published.compared(means, "log_likelihood")):
        blocks.append(Text(_RDP))
    if odd := published.impossible_pairs(means):
        note = (
            "Some published likelihoods are above what one Gaussian reaches at the published RMSE. "
            "A mixture, or a noise that differs between splits, can exceed this bound:"
        )
        blocks.append(Text(note, odd))
    return Section("Beside the papers", blocks)


def _chosen(results: pd.DataFrame) -> Section | None:
    """Counts of the chosen settings, if there was a choice."""
    once = results[results["setting"] != ""].drop_duplicates(["set", "method", "split"])
    points = []
    for (name, method), chosen in once.groupby(["set", "method"], sort=False)["setting"]:
        counts = chosen.value_counts().items()
        points.append(f"{name}, {method}: {'; '.join(f'{text}: {n}' for text, n in counts)}")
    return Section("Settings chosen", [Text(_CHOSEN, points)]) if points else None
