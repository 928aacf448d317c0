"""Sections of a report on regression tables: our scores beside the papers', and a picture."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd

from vcl_radial.errors import DataError
from vcl_radial.files.reading import read_text
from vcl_radial.reporting.blocks import Block, Figure, Section, Table, Text
from vcl_radial.reporting.labels import flat
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.regression import pictures, tables
from vcl_radial.tracks.regression.published import GAUSSIAN, RADIAL, RDP
from vcl_radial.tracks.regression.settings import table_name

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
    "Paired by split. Splits of one set share most of their rows: a standard error over them says "
    "how far they agree, and less of other data."
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
    scores = [tables.score_table(means, metric) for metric in tables.DECIMALS]
    parts = [Section("", [Text(_AT_ONCE), *scores, picture], files)]
    if (paired := tables.differences(tidy, RADIAL, GAUSSIAN)) is not None:
        parts.append(Section(f"{RADIAL} minus {GAUSSIAN}", [Text(_PAIRED), paired]))
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
    settings = _settings_by_run(runs)
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


def _settings_by_run(runs: Sequence[FinishedRun]) -> list[str]:
    recipes: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    keys = [(table_name(r.spec.data), r.spec.data.get("slices"), r.method) for r in runs]
    for run, key in zip(runs, keys, strict=True):
        recipes.setdefault(key, []).append(flat(run.spec.recipe))
    return [
        ", ".join(
            f"{name}={_text(value)}"
            for name, value in flat(run.spec.recipe).items()
            if any(recipe.get(name) != value for recipe in recipes[key])
        )
        for run, key in zip(runs, keys, strict=True)
    ]


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value}"


def _in_sequence(tidy: pd.DataFrame) -> Section:
    gaps = tables.gaps(tidy)
    files = {"results.csv": tidy.to_csv(index=False), "summary.csv": gaps.to_csv(index=False)}
    draw = partial(pictures.over_slices, tidy)
    picture = Figure("in-sequence", draw, "Test log-likelihood after each slice, by set")
    scores = [tables.gap_table(gaps, metric) for metric in tables.DECIMALS] if len(gaps) else []
    return Section("", [Text(_IN_SEQUENCE), *scores, picture], files)


def _beside_the_papers(means: pd.DataFrame) -> list[Block]:
    comparisons: list[Table | None] = [
        *(tables.beside(means, "farquhar2020", metric) for metric in tables.DECIMALS),
        tables.beside(means, "oh2020", "log_likelihood"),
    ]
    blocks: list[Block] = [table for table in comparisons if table is not None]
    if not blocks:
        return []
    note = "Of the means, to the two decimals that are published:"
    blocks.append(Text(note, tables.verdicts(means)))
    if odd := tables.impossible_pairs(means):
        note = (
            "Some published likelihoods are above what one Gaussian reaches at the published RMSE. "
            "A mixture, or a noise that differs between splits, can exceed this bound:"
        )
        blocks.append(Text(note, odd))
    if (needs := tables.implied_errors(means, "oh2020", "rdp", RDP)) is not None:
        note = (
            "What RMSE the RDP column would need if it were of one Gaussian (the paper gives none; "
            "a mixture needs less), beside ours:"
        )
        blocks += [Text(note), needs]
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
