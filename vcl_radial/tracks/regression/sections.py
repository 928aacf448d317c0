"""Sections of a report on regression tables: our scores beside the papers', and a picture."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pandas as pd

from vcl_radial.errors import DataError
from vcl_radial.files.reading import read_text
from vcl_radial.reporting.blocks import Block, Figure, Section, Text
from vcl_radial.reporting.figures.differences import difference_table
from vcl_radial.reporting.labels import Settings, flat, labels
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


def read(path: Path) -> dict[str, pd.DataFrame]:
    """Read `scores` from a finished run's folder.

    Raises:
        DataError: the table is damaged; the message names the file.
    """
    try:
        scores = pd.read_csv(io.StringIO(read_text(path / "scores.csv")))
        return {"scores": scores.astype({"slice": int, "metric": str, "value": float})[_SCORES]}
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"scores.csv: cannot be read: {error}; run it again") from None


_SCORES: Final = ["slice", "metric", "value"]


def sections(runs: Sequence[FinishedRun]) -> list[Section]:
    """All sets of a benchmark together: scores, published scores, and chosen settings."""
    tidy = results_table(runs)
    means = tables.summary(tidy)
    if tidy["slice"].max() > 0:
        return [_in_sequence(tidy)]
    files = {
        "results.csv": tidy.to_csv(index=False),
        "summary.csv": means.drop(columns="slice").to_csv(index=False),
    }
    draw = partial(pictures.log_likelihoods, means)
    picture = Figure("log-likelihood", draw, "Test log-likelihood of each method, by set")
    scores = [tables.score_table(means, metric) for metric in tables.HEADINGS]
    parts = [Section("", [Text(_AT_ONCE), *scores, picture], files)]
    gaps = tables.differences(tidy, RADIAL, GAUSSIAN)
    if not gaps.empty:
        table = difference_table(gaps, ("set", "score"), unit="")
        parts.append(Section(f"{RADIAL} minus {GAUSSIAN}", [Text(_PAIRED), table]))
    if beside := _beside_the_papers(means):
        parts.append(Section("Beside the papers", beside))
    if points := _settings(tidy):
        note = (
            "Keys that differ between splits, by number of splits. A sweep chooses them on rows "
            "held out of each split's own training rows."
        )
        parts.append(Section("Settings chosen", [Text(note, points)]))
    return parts


def results_table(runs: Sequence[FinishedRun]) -> pd.DataFrame:
    """The tidy table of runs, with the columns `tables.COLUMNS`.

    A setting holds the keys that differ between the recipes of a method on one set. All rows at
    once, beside a sequence, have the slice 0. If runs have the bytes that they carry from slice to
    slice, there is also a column `carried_bytes`.
    """
    shown = labels(
        [
            Settings(
                (table_name(r.spec.data), r.spec.data.get("slices"), r.method),
                "",
                flat(r.spec.recipe),
            )
            for r in runs
        ],
        "code",
    )
    settings = [text.removeprefix(" (").removesuffix(")") for text in shown]
    rows = [
        [table_name(run.spec.data), run.method, setting, run.spec.seed, *score]
        for run, setting in zip(runs, settings, strict=True)
        for score in run.tables["scores"].itertuples(index=False)
    ]
    tidy = pd.DataFrame(rows, columns=tables.COLUMNS)
    carried = [
        run.environment.get("carried_bytes") for run in runs for _ in run.tables["scores"].index
    ]
    if any(count is not None for count in carried):
        tidy["carried_bytes"] = pd.Series(carried, dtype=float)
    # Sort by set, and keep the report's order of methods.
    return tidy.sort_values("set", kind="stable", ignore_index=True)


def _in_sequence(tidy: pd.DataFrame) -> Section:
    gaps = tables.gaps(tidy)
    files = {"results.csv": tidy.to_csv(index=False), "summary.csv": gaps.to_csv(index=False)}
    draw = partial(pictures.over_slices, tidy)
    picture = Figure("in-sequence", draw, "Test log-likelihood after each slice, by set")
    scores = [tables.gap_table(gaps, metric) for metric in tables.HEADINGS] if len(gaps) else []
    return Section("", [Text(_IN_SEQUENCE), *scores, picture], files)


def _beside_the_papers(means: pd.DataFrame) -> list[Block]:
    blocks: list[Block] = [
        table
        for source in published.SOURCES
        for metric in tables.HEADINGS
        if (table := published.beside(means, source, metric)) is not None
    ]
    if blocks:
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
    return blocks


def _settings(tidy: pd.DataFrame) -> list[str]:
    """Counts of the chosen settings, if there was a choice."""
    once = tidy.drop_duplicates(["set", "method", "split"])
    points = []
    for (name, method), group in once.groupby(["set", "method"], sort=False):
        counts = Counter(setting for setting in group["setting"] if setting)
        if counts:
            chosen = "; ".join(f"{setting}: {n}" for setting, n in counts.most_common())
            points.append(f"{name}, {method}: {chosen}")
    return points
