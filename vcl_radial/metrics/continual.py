"""Scores of a whole run over a sequence of tasks, from its tidy accuracy table.

A tidy table has the columns `after, task, metric, value`, as the rows of one run in the table of
scores (`vcl_radial.reporting.scores`). Tasks are numbered from 1 to T, and R[i, j] is the value on
the test images of task j after training task i; i = 0 is the network before any training. A joint
run sees all tasks at once: it has only the rows 0 and T, and every score that compares two moments
of a sequence is None for it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from vcl_radial.errors import DataError
from vcl_radial.metrics.declared import METRICS, Metric, metric

if TYPE_CHECKING:
    import pandas as pd

TIDY_COLUMNS = ("after", "task", "metric", "value")

Matrix = npt.NDArray[np.float64]

run_metric = partial(metric, of="run")


def accuracy_matrix(tidy: pd.DataFrame, metric: str = "accuracy") -> pd.DataFrame:
    """The matrix R of one run.

    Args:
        tidy: The tidy table of one run, rows in any order.
        metric: The metric of the matrix.

    Returns:
        R with the index `after` and the columns `task`, both ascending. Cells
        that the table does not hold are nan.

    Raises:
        DataError: A column is missing, the metric does not occur, or a cell occurs twice.
    """
    import pandas as pd

    missing = [column for column in TIDY_COLUMNS if column not in tidy.columns]
    if missing:
        raise DataError(f"accuracy table: the column {missing[0]!r} is missing")
    rows = tidy[tidy["metric"] == metric]
    if rows.empty:
        raise DataError(f"accuracy table: no rows with the metric {metric!r}")
    # `DataFrame.pivot` takes ten times as long, and a report has hundreds of such tables.
    cell = ["after", "task"]
    (trained, i), (tasks, j) = (np.unique(rows[name], return_inverse=True) for name in cell)
    if len(np.unique(i * len(tasks) + j)) < len(rows):
        trained_twice, evaluated = rows[rows.duplicated(cell)].iloc[0][cell]
        raise DataError(
            f"accuracy table: {metric} of task {evaluated} after task {trained_twice} occurs "
            "twice; pass the rows of one run only"
        )
    R = np.full((len(trained), len(tasks)), np.nan)
    R[i, j] = rows["value"]
    return pd.DataFrame(R, pd.Index(trained, name=cell[0]), pd.Index(tasks, name=cell[1]))


@run_metric("accuracy (%)", 2, "higher", "accuracy of the final network, averaged over all tasks")
def average_accuracy(tidy: pd.DataFrame, metric: str = "accuracy") -> float:
    """Mean accuracy over all tasks after the last one.

        ACC = 1/T Σ_j R[T, j]

    Lopez-Paz & Ranzato, "Gradient episodic memory" (NeurIPS 2017), Eq. 2.

    Args:
        tidy: The tidy table of one run.
        metric: What stands in the place of accuracy, such as "AUC".

    Returns:
        Per cent.

    Raises:
        DataError: The table is damaged, or the run is not finished.
    """
    return float(_run_matrix(tidy, metric)[-1].mean())


@run_metric("forgetting", 2, "lower", "points that earlier tasks fell from their best")
def forgetting(tidy: pd.DataFrame, metric: str = "accuracy") -> float | None:
    """The mean drop of each earlier task's accuracy from its best value.

        F = 1/(T-1) Σ_{j<T} ( max_{i = j..T-1} R[i, j] - R[T, j] )

    Chaudhry et al., "Riemannian walk for incremental learning" (ECCV 2018), their F_k with k = T.
    They take the maximum over i = 1..T-1. Here it starts at i = j, because the score of a head
    before its task was trained is luck, not knowledge that can be forgotten. A negative value means
    that old tasks improved.

    Args:
        tidy: The tidy table of one run.
        metric: What stands in the place of accuracy, such as "AUC".

    Returns:
        Percentage points, or None for one task or a joint run.

    Raises:
        DataError: The table is damaged, or the run is not finished.
    """
    R = _run_matrix(tidy, metric)
    if not _is_sequence(R):
        return None
    T = R.shape[1]
    return float(np.mean([R[j:T, j - 1].max() - R[T, j - 1] for j in range(1, T)]))


@run_metric("learnt (%)", 2, "higher", "accuracy on each task right after it was trained")
def learning_accuracy(tidy: pd.DataFrame) -> float | None:
    """Accuracy on each task right after it was trained, on average.

        LA = 1/T Σ_j R[j, j] = ACC - (T-1)/T BWT

    Riemer et al., "Learning to learn without forgetting" (ICLR 2019), who call it learning
    accuracy. It distinguishes a network that forgot much from a network that learnt little.

    Args:
        tidy: The tidy table of one run.

    Returns:
        Per cent, or None for one task or a joint run.

    Raises:
        DataError: The table is damaged, or the run is not finished.
    """
    R = _run_matrix(tidy)
    return float(np.diagonal(R[1:]).mean()) if _is_sequence(R) else None


@run_metric("BWT", 2, "higher", "backward transfer: points that later tasks added to earlier ones")
def backward_transfer(tidy: pd.DataFrame) -> float | None:
    """The effect of later tasks on the accuracy of earlier ones.

        BWT = 1/(T-1) Σ_{j<T} ( R[T, j] - R[j, j] )

    Lopez-Paz & Ranzato, "Gradient episodic memory" (NeurIPS 2017), Eq. 3.

    Args:
        tidy: The tidy table of one run.

    Returns:
        Percentage points, or None for one task or a joint run.

    Raises:
        DataError: The table is damaged, or the run is not finished.
    """
    R = _run_matrix(tidy)
    if not _is_sequence(R):
        return None
    T = R.shape[1]
    return float(np.mean([R[T, j - 1] - R[j, j - 1] for j in range(1, T)]))


@run_metric("FWT", 2, "higher", "forward transfer: points that earlier tasks added to later ones")
def forward_transfer(tidy: pd.DataFrame) -> float | None:
    """The effect of earlier tasks on the accuracy of a task before it was trained.

        FWT = 1/(T-1) Σ_{j>1} ( R[j-1, j] - R[0, j] )

    Lopez-Paz & Ranzato, "Gradient episodic memory" (NeurIPS 2017), Eq. 4. Their baseline, the
    network at random initialisation, is row 0.

    It has a meaning only where all tasks share their outputs. With a head for each task, R[j-1, j]
    and R[0, j] are both the accuracies of a head that was never trained: their difference is the
    noise of its random weights, some points wide, whatever the earlier tasks were. Runs with such
    heads are not scored on tasks that were not trained, so they have no forward transfer.

    Args:
        tidy: The tidy table of one run.

    Returns:
        Percentage points, or None for one task, a joint run, or a table without row 0.

    Raises:
        DataError: The table is damaged, or the run is not finished.
    """
    R = _run_matrix(tidy)
    if not _is_sequence(R) or np.isnan(R[0]).all():
        return None
    T = R.shape[1]
    return float(np.mean([R[j - 1, j - 1] - R[0, j - 1] for j in range(2, T + 1)]))


@run_metric("min-ACC (%)", 2, "higher", "worst accuracy of earlier tasks after they were learnt")
def minimum_accuracy(tidy: pd.DataFrame) -> float | None:
    """The worst moment of each earlier task after it was learnt, on average.

        min-ACC = 1/(T-1) Σ_{j<T} min_{i = j+1..T} R[i, j]

    De Lange et al., "Continual evaluation for lifelong learning" (ICLR 2023), who look at every
    iteration. This function evaluates only at the ends of tasks, so it misses dips within a task.

    Args:
        tidy: The tidy table of one run.

    Returns:
        Per cent, or None for one task or a joint run.

    Raises:
        DataError: The table is damaged, or the run is not finished.
    """
    R = _run_matrix(tidy)
    if not _is_sequence(R):
        return None
    T = R.shape[1]
    return float(np.mean([R[j + 1 :, j - 1].min() for j in range(1, T)]))


@run_metric("recency bias (%)", 2, "lower", "images of earlier tasks taken for the newest task's")
def recency_bias(tidy: pd.DataFrame) -> float | None:
    """Share of images of earlier tasks that the final network assigns to the newest task.

        1/(T-1) Σ_{j<T} N[T, j]

    where N is the metric `predicted_as_newest` of single-head runs. A network that knows which
    task an image belongs to has 0, one that answers with the newest classes only has 100.

    Args:
        tidy: The tidy table of one run.

    Returns:
        Per cent, or None for one task, a joint run, or a multi-head run.

    Raises:
        DataError: The table is damaged, or the run is not finished.
    """
    if not _holds(tidy, "predicted_as_newest") or not _is_sequence(_run_matrix(tidy)):
        return None
    N = accuracy_matrix(tidy, "predicted_as_newest")
    T = int(N.columns.max())
    if T not in N.index:
        raise DataError(f"accuracy table: predicted_as_newest after task {T} is missing")
    return float(N.loc[T].drop(T).to_numpy().mean())


def final_average(tidy: pd.DataFrame, metric: str) -> float | None:
    """Mean of a metric over all tasks after the last one, such as the NLL in nats.

        1/T Σ_j M[T, j]

    Args:
        tidy: The tidy table of one run.
        metric: The metric M.

    Returns:
        The mean in the unit of the metric, or None where the table has no such rows.

    Raises:
        DataError: The table is damaged, or the run is not finished.
    """
    return float(_run_matrix(tidy, metric)[-1].mean()) if _holds(tidy, metric) else None


def _holds(tidy: pd.DataFrame, metric: str) -> bool:
    return "metric" in tidy.columns and bool((tidy["metric"] == metric).any())


def _run_matrix(tidy: pd.DataFrame, metric: str = "accuracy") -> Matrix:
    """R of a finished run as an array `[T + 1, T]`; rows that were never evaluated are nan."""
    matrix = accuracy_matrix(tidy, metric)
    T = int(matrix.columns.max())
    tasks = [int(task) for task in matrix.columns]
    if tasks != list(range(1, T + 1)):
        raise DataError(f"accuracy table: the tasks evaluated must be 1 to {T}, got {tasks}")
    rows = set(matrix.index)
    absent = [i for i in range(1, T + 1) if i not in rows]
    if T in absent:
        raise DataError(
            f"accuracy table: no {metric} after task {T}, the last one; the run is not finished"
        )
    if absent and len(absent) < T - 1:
        raise DataError(f"accuracy table: no {metric} after task {absent[0]}")
    return matrix.reindex(range(T + 1)).to_numpy(dtype=np.float64)


def _is_sequence(R: Matrix) -> bool:
    """Whether there are at least two tasks and the rows between the first and the last exist."""
    T = R.shape[1]
    return T >= 2 and not np.isnan(R[1:T]).all()


def run_metrics() -> dict[str, Metric]:
    """The metrics of a run over tasks, with the averages of the metrics of points; then costs."""
    of_run = {name: m for name, m in METRICS.items() if m.of == "run"}
    averages = {
        f"average_{name}": replace(m, of="run", function=partial(final_average, metric=name))
        for name, m in METRICS.items()
        if m.of == "points"
    }
    costs = {name: m for name, m in METRICS.items() if m.of == "cost"}
    return of_run | {n: m for n, m in averages.items() if n not in of_run} | costs


def summary(tidy: pd.DataFrame) -> dict[str, float | None]:
    """Every score of one run by its name; None where a score is not defined.

    Args:
        tidy: The tidy table of one run.

    Returns:
        The values of `run_metrics`, without costs.

    Raises:
        DataError: The table is damaged, or the run is not finished.
    """
    return {name: m.function(tidy) for name, m in run_metrics().items() if m.function is not None}
