"""The table of a comparison: one row per method, mean and standard error over the seeds."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from vcl_radial.errors import DataError
from vcl_radial.figures.over_seeds import check_columns, number
from vcl_radial.metrics import mean_and_standard_error, summary


@dataclass(frozen=True)
class Score:
    """How a score is headed, printed and read.

    Attributes:
        heading: of its column; the arrow points to better.
        decimals: as many as are printed.
        better: "higher", "lower", or None where neither is.
        meaning: in a few words.
        counted: a whole number that is the same for all seeds of a method.
    """

    heading: str
    decimals: int
    better: Literal["higher", "lower"] | None
    meaning: str
    counted: bool = False


SCORES = {
    "average_accuracy": Score(
        "accuracy (%) ↑", 2, "higher", "accuracy of the final network, averaged over all tasks"
    ),
    "forgetting": Score(
        "forgetting ↓", 2, "lower", "points that earlier tasks fell from their best"
    ),
    "learning_accuracy": Score(
        "learnt (%) ↑", 2, "higher", "accuracy on each task right after it was trained"
    ),
    "backward_transfer": Score(
        "BWT ↑", 2, "higher", "backward transfer: points that later tasks added to earlier ones"
    ),
    "forward_transfer": Score(
        "FWT ↑", 2, "higher", "forward transfer: points that earlier tasks added to later ones"
    ),
    "minimum_accuracy": Score(
        "min-ACC (%) ↑", 2, "higher", "worst accuracy of earlier tasks after they were learnt"
    ),
    "recency_bias": Score(
        "recency bias (%) ↓", 2, "lower", "images of earlier tasks taken for the newest task's"
    ),
    "average_nll": Score(
        "NLL (nats) ↓", 3, "lower", "negative log-likelihood of the final network, over all tasks"
    ),
    "average_ece": Score(
        "ECE (%) ↓", 2, "lower", "expected calibration error of the final network, over all tasks"
    ),
    "training_seconds": Score("training (s) ↓", 1, "lower", "seconds of training, on one device"),
    "evaluation_seconds": Score(
        "evaluation (s) ↓", 1, "lower", "seconds of evaluation, on one device"
    ),
    "parameters": Score(
        "parameters",
        0,
        None,
        "numbers that the final network trains; a Gaussian weight has two",
        counted=True,
    ),
}
"""The scores of `metrics.summary`, then what a run costs, in the order of tables."""

COSTS = ("training_seconds", "evaluation_seconds", "parameters")


def seed_table(results: pd.DataFrame, costs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every score of every run.

    Args:
        results: Tidy tables of many finished runs, with `benchmark, method, seed`.
        costs: What the runs cost: `benchmark, method, seed` and the columns of `COSTS`; nan where
            it is not known.

    Returns:
        One row per run, with `benchmark, method, seed` and the names of `metrics.summary`, and
        with costs those of `COSTS`. Methods come in the order in which they first appear.
        Undefined scores are nan.

    Raises:
        DataError: A table is damaged or a run is not finished; the message names the run.
    """
    check_columns(results)
    keys = ["benchmark", "method", "seed"]
    rows: list[dict[str, object]] = []
    for (benchmark, method), runs in results.groupby(keys[:2], sort=False):
        for seed, run in runs.groupby("seed", sort=True):
            row: dict[str, object] = {"benchmark": benchmark, "method": method, "seed": seed}
            rows.append(row | _scores(f"{benchmark}, {method}, seed {seed}", run))
    scores = [name for name in SCORES if name not in COSTS]
    table = pd.DataFrame(rows, columns=[*keys, *scores]).astype(dict.fromkeys(scores, float))
    if costs is None:
        return table
    return table.merge(costs[[*keys, *COSTS]], on=keys, how="left", validate="one_to_one")


def summary_table(results: pd.DataFrame, costs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every score of every method, over its seeds.

    Args:
        results: Tidy tables of many finished runs, with `benchmark, method, seed`.
        costs: As in `seed_table`.

    Returns:
        One row per benchmark and method, in the order in which they first appear, with the
        columns `benchmark, method, seeds` and, for each score of `seed_table`, the mean under
        that name and its standard error under `<name>_se`. Undefined scores are nan.

    Raises:
        DataError: A table is damaged or a run is not finished; the message names the run.
    """
    by_seed = seed_table(results, costs)
    names = [name for name in SCORES if name in by_seed]
    rows: list[dict[str, object]] = []
    for (benchmark, method), runs in by_seed.groupby(["benchmark", "method"], sort=False):
        row: dict[str, object] = {"benchmark": benchmark, "method": method, "seeds": len(runs)}
        for name in names:
            row[name], row[f"{name}_se"] = mean_and_standard_error(runs[name].dropna())
        rows.append(row)
    columns = [column for name in names for column in (name, f"{name}_se")]
    return pd.DataFrame(rows, columns=["benchmark", "method", "seeds", *columns])


def to_markdown(table: pd.DataFrame) -> str:
    """The table as Markdown, with cells such as `98.73 ± 0.12`.

    Args:
        table: What `summary_table` returned.

    Returns:
        Text that ends with a line break. The benchmark is left out where there is only one, and
        so are scores that no method has.
    """
    return markdown(_cells(table))


def markdown(
    rows: Sequence[Sequence[str]], words: Collection[str] = ("benchmark", "method")
) -> str:
    """Rows of text as a Markdown table, the first of them its header.

    Args:
        rows: The cells; what Markdown would take for its own is escaped.
        words: Headings of columns of words; the others are set to the right.

    Returns:
        Text that ends with a line break.
    """
    header, *body = [[_as_markdown(cell) for cell in row] for row in rows]
    rule = ["---" if heading in words else "---:" for heading in rows[0]]
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, rule, *body])


def to_text(table: pd.DataFrame) -> str:
    """The table for a terminal, in aligned columns.

    Args:
        table: What `summary_table` returned.

    Returns:
        Text that ends with a line break, with the columns of `to_markdown`.
    """
    rows = _cells(table)
    numbers = _numeric_columns(rows[0])
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    rows.insert(1, ["─" * width for width in widths])
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, numbers, strict=True)
        ]
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)


def to_csv(table: pd.DataFrame) -> str:
    """The table as comma-separated values in full precision; undefined scores are empty.

    Args:
        table: What `summary_table` returned.

    Returns:
        Text that ends with a line break.
    """
    return str(table.to_csv(index=False, lineterminator="\n"))


def _scores(run_name: str, run: pd.DataFrame) -> dict[str, float | None]:
    try:
        return summary(run)
    except DataError as error:
        raise DataError(f"{run_name}: {error}") from error


def printed(name: str, mean: float, error: float = math.nan) -> str:
    """A score as tables print it: `98.73 ± 0.12`, or without spread where there is none.

    Args:
        name: One of `SCORES`.
        mean: Its value, or its mean over seeds.
        error: The standard error of that mean.

    Returns:
        The text.
    """
    score = SCORES[name]
    text = (
        f"{mean:,.0f}" if score.counted and not math.isnan(mean) else number(mean, score.decimals)
    )
    if math.isnan(error) or (score.counted and error == 0.0):
        return text
    return f"{text} ± {number(error, score.decimals)}"


def heading_text(words: str) -> str:
    """Words outside a Markdown table, without what Markdown would take for HTML."""
    return words.replace("&", "&amp;").replace("<", "&lt;")


def _as_markdown(cell: str) -> str:
    return heading_text(cell).replace("|", "\\|")


def _cells(table: pd.DataFrame) -> list[list[str]]:
    """Header and rows as they are printed."""
    names = ["benchmark"] if table["benchmark"].nunique() > 1 else []
    names += ["method", "seeds"]
    columns = [[name, *(str(value) for value in table[name])] for name in names]
    for name, score in SCORES.items():
        if name in table and not table[name].isna().all():
            pairs = zip(table[name], table[f"{name}_se"], strict=True)
            columns.append([score.heading, *(printed(name, m, se) for m, se in pairs)])
    return [list(row) for row in zip(*columns, strict=True)]


def _numeric_columns(header: list[str]) -> list[bool]:
    return [heading not in ("benchmark", "method") for heading in header]
