"""Every table of a benchmark's report as a file: CSV in full precision, and Markdown to read."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vcl_radial.report.figures.curves import curve_table
from vcl_radial.report.figures.detail_tables import (
    difference_rows,
    matrix_rows,
    matrix_table,
    seed_rows,
)
from vcl_radial.report.figures.differences import paired_differences
from vcl_radial.report.figures.over_seeds import all_over_seeds, benchmark_name, method_names
from vcl_radial.report.figures.tables import (
    heading_text,
    markdown,
    seed_table,
    summarised,
    to_csv,
    to_markdown,
)

_UNITS = (
    "Accuracy, forgetting, transfer and ECE in per cent, NLL in nats; mean ± standard error over "
    "seeds."
)


def report_files(
    results: pd.DataFrame,
    costs: pd.DataFrame,
    tasks: Sequence[str],
    facts: Sequence[tuple[str, Sequence[str]]],
    *,
    multi_head: bool = False,
) -> dict[str, str]:
    """The tables of one benchmark by the names of their files.

    Args:
        results: Tidy tables of its finished runs, with `benchmark, method, seed`.
        costs: What they cost, as `seed_table` takes it.
        tasks: The names of its tasks.
        facts: What stands behind the numbers: a name, and what is to be said.
        multi_head: Whether each task has a head of its own; then there is no forward transfer.

    Returns:
        `results.csv` (the tidy tables), `summary.csv`, `differences.csv`, `matrices.csv`,
        `curves.csv`, `runs.csv`; `summary.md` holds the leaderboard, the differences and the
        facts, `details.md` the matrices and the single runs.

    Raises:
        DataError: A table is damaged or a run is not finished.
    """
    by_seed = seed_table(results, costs, multi_head=multi_head)
    summary = summarised(by_seed)
    differences = paired_differences(results, method_names(results)[0])
    name = heading_text(benchmark_name(results))
    matrices = [
        f"### {heading_text(s.method)}\n\n{markdown(matrix_rows(s, tasks), ('after training',))}"
        for s in all_over_seeds(results)
    ]
    return {
        "results.csv": to_csv(results),
        "summary.csv": to_csv(summary),
        "differences.csv": to_csv(differences),
        "matrices.csv": to_csv(matrix_table(results)),
        "curves.csv": to_csv(curve_table(results)),
        "runs.csv": to_csv(by_seed),
        "summary.md": "\n".join(
            [
                f"# {name}\n",
                to_markdown(summary),
                *_differences(differences, method_names(results)[0]),
                f"{_UNITS}\n",
                *(f"- {fact}: {heading_text('; '.join(said))}" for fact, said in facts),
                "",
            ]
        ),
        "details.md": "\n".join(
            [
                f"# {name}: details\n",
                "## Accuracy on every task after every task\n",
                "In per cent; the last column is the mean over the tasks seen so far.\n",
                *matrices,
                "## Single runs\n",
                markdown(seed_rows(by_seed)),
            ]
        ),
    }


def _differences(table: pd.DataFrame, reference: str) -> list[str]:
    """The other methods against the first, where there are seeds to compare."""
    if table.empty:
        return []
    return [
        f"Average accuracy against {heading_text(reference)}, paired by seed; p of the exact "
        "sign-flip test, for each comparison alone:\n",
        markdown(difference_rows(table), ("method", "in words")),
    ]
