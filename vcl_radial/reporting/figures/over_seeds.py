"""The accuracy matrix of one method, averaged over its seeds, for all figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from vcl_radial.errors import DataError
from vcl_radial.metrics import accuracy_matrix, mean_and_standard_error

RUN_COLUMNS = ("benchmark", "method", "seed")

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AccuracyOverSeeds:
    """Accuracy of one method on one benchmark, or another score of a task, in per cent.

    Row i-1 and column j-1 belong to R[i, j], the accuracy on task j after training task i. A cell
    that no seed has is nan, and so is the standard error of a cell that only one seed has.

    Attributes:
        benchmark: Name of the benchmark.
        method: Name of the method.
        metric: Name of the score.
        mean: Mean over the seeds, `[T, T]`.
        error: Standard error of that mean, `[T, T]`.
        seen_mean: Mean over the seeds of the average accuracy of tasks 1..i after task i, `[T]`.
        seen_error: Standard error of that mean, `[T]`.
        seeds: The smallest and the largest number of seeds behind a cell.
    """

    benchmark: str
    method: str
    metric: str
    mean: Matrix
    error: Matrix
    seen_mean: Vector
    seen_error: Vector
    seeds: tuple[int, int]

    @property
    def tasks(self) -> int:
        """The number of tasks T."""
        return len(self.mean)

    @property
    def rows(self) -> list[int]:
        """The tasks after which there was an evaluation: 1..T, or only T for a joint run."""
        return [i + 1 for i in range(self.tasks) if not np.isnan(self.mean[i]).all()]

    @property
    def joint(self) -> bool:
        """Whether all tasks were trained at once."""
        return self.tasks > 1 and self.rows == [self.tasks]

    @property
    def learnt(self) -> Vector:
        """Accuracies on tasks that were trained at the time, in one vector."""
        seen = self.mean[np.tril_indices(self.tasks)]
        return seen[~np.isnan(seen)]


def accuracy_over_seeds(
    results: pd.DataFrame, method: str, metric: str = "accuracy"
) -> AccuracyOverSeeds:
    """Average the accuracy matrices of one method.

    Args:
        results: Tidy tables of many runs of one benchmark, with `benchmark, method, seed`.
        method: The method.
        metric: The metric, such as "accuracy" or "AUC", in per cent.

    Returns:
        The mean and the standard error over the seeds, cell by cell.

    Raises:
        DataError: A column is missing, the table holds several benchmarks, or not the method.
    """
    benchmark = benchmark_name(results)
    runs = results[results["method"] == method]
    if runs.empty:
        known = ", ".join(method_names(results))
        raise DataError(f"results of {benchmark}: no method {method!r}; there are {known}")
    matrices = [accuracy_matrix(run, metric) for _, run in runs.groupby("seed", sort=True)]
    T = max(int(max(matrix.columns.max(), matrix.index.max())) for matrix in matrices)
    tasks = range(1, T + 1)
    R = np.stack([m.reindex(index=tasks, columns=tasks).to_numpy(float) for m in matrices])
    seen = np.stack([R[:, i, : i + 1].mean(axis=1) for i in range(T)], axis=1)
    mean, error = _over_first_axis(R)
    seen_mean, seen_error = _over_first_axis(seen)
    counts = (~np.isnan(R)).sum(axis=0)
    counts = counts[counts > 0]
    return AccuracyOverSeeds(
        benchmark=benchmark,
        method=method,
        metric=metric,
        mean=mean,
        error=error,
        seen_mean=seen_mean,
        seen_error=seen_error,
        seeds=(int(counts.min()), int(counts.max())),
    )


def all_over_seeds(
    results: pd.DataFrame, methods: Sequence[str] | None = None, metric: str = "accuracy"
) -> list[AccuracyOverSeeds]:
    """The result of `accuracy_over_seeds` for the named methods, or all, in the figure's order.

    Raises:
        DataError: As in `accuracy_over_seeds`, or no method is named.
    """
    benchmark = benchmark_name(results)
    names = method_names(results) if methods is None else methods
    if not names:
        raise DataError(f"results of {benchmark}: name at least one method to draw")
    return [accuracy_over_seeds(results, name, metric) for name in names]


def method_names(results: pd.DataFrame) -> list[str]:
    """The methods of a table of results, in the order in which they first appear."""
    return [str(name) for name in results["method"].unique()]


def benchmark_name(results: pd.DataFrame) -> str:
    """The one benchmark of a table of results.

    Raises:
        DataError: A column is missing, or there is not exactly one benchmark.
    """
    check_columns(results)
    names = [str(name) for name in results["benchmark"].unique()]
    if len(names) != 1:
        known = ", ".join(names) or "none"
        raise DataError(f"a figure shows one benchmark, the results hold {known}; select one")
    return names[0]


def check_columns(results: pd.DataFrame) -> None:
    """Refuse a table without the columns that identify the run of a row.

    Raises:
        DataError: One of `benchmark, method, seed` is missing.
    """
    for column in RUN_COLUMNS:
        if column not in results.columns:
            raise DataError(f"results: the column {column!r} is missing")


def seeds_text(summaries: Sequence[AccuracyOverSeeds], with_spread: bool = True) -> str:
    """Describe the numbers of a figure: the average, its spread and the seeds."""
    fewest = min(summary.seeds[0] for summary in summaries)
    most = max(summary.seeds[1] for summary in summaries)
    in_per_cent = f"{summaries[0].metric} in %"
    if most == 1:
        return f"{in_per_cent}, one seed (no spread)"
    seeds = f"{most}" if fewest == most else f"{fewest} to {most}"
    spread = " ± standard error" if with_spread else ""
    return f"{in_per_cent}, mean{spread} over {seeds} seeds"


def _over_first_axis(values: npt.NDArray[np.float64]) -> tuple[Matrix, Matrix]:
    cells = values.reshape(len(values), -1).T
    pairs = [mean_and_standard_error(cell[~np.isnan(cell)]) for cell in cells]
    mean, error = np.array(pairs, dtype=np.float64).T
    return mean.reshape(values.shape[1:]), error.reshape(values.shape[1:])
