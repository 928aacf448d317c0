"""Mark the best methods of a table: all that no test distinguishes from the best one."""

from __future__ import annotations

import pandas as pd

from vcl_radial.metrics import run_metrics, sign_flip_test
from vcl_radial.metrics.seeds import FEWEST_SEEDS, MOST_SEEDS
from vcl_radial.metrics.verdicts import LEVEL

READ_WITH_ACCURACY = ("forgetting", "backward_transfer", "recency_bias", "average_ece")
"""Scores that need no learning: a network that never learned a task has none to forget, and
one that always guesses is calibrated."""


def best_methods(by_seed: pd.DataFrame) -> dict[str, set[str]]:
    """The methods to mark for each score, of one benchmark.

    The best method of a score is the one with the best mean. Each method that shares at least six
    seeds with the best one is compared with it by the exact two-sided sign-flip test of their
    differences. The best method is marked, and so are the methods that the test does not
    distinguish from it. None is marked if no method can be compared with the best one. A score of
    `READ_WITH_ACCURACY` is compared only among the methods that are marked for average accuracy;
    that marking leaves out methods without the score (a joint run has no forgetting).

    Args:
        by_seed: The rows of one benchmark in a table of `seed_table`.

    Returns:
        Names of methods by score; scores without a better direction are left out.
    """
    best = {}
    for name, score in run_metrics().items():
        if name not in by_seed or score.better is None:
            continue
        runs = by_seed[by_seed[name].notna()]
        if name in READ_WITH_ACCURACY:
            runs = runs[runs["method"].isin(_not_worse(runs, "average_accuracy"))]
        best[name] = _not_worse(runs, name)
    return best


def legend(summary: pd.DataFrame) -> str:
    """The explanation of the marks below a table.

    Args:
        summary: A table of `summary_table`.

    Returns:
        One line; empty where no benchmark has two methods to compare.
    """
    if not summary["benchmark"].duplicated().any():
        return ""
    if not summary["best"].any():
        return (
            f"Nothing is marked as best: that needs {FEWEST_SEEDS} to {MOST_SEEDS} seeds that all "
            "methods share."
        )
    gated = [
        run_metrics()[name].words for name in READ_WITH_ACCURACY if not summary[name].isna().all()
    ]
    return (
        f"Marked: not shown to be worse than the best (exact sign-flip test, p ≥ {LEVEL:g}, "
        f"at least {FEWEST_SEEDS} seeds in pairs); {', '.join(gated)}: only among the best in "
        "accuracy."
    )


def _not_worse(runs: pd.DataFrame, name: str) -> set[str]:
    """The best method of a score and those not shown to be worse; empty without a test."""
    if runs.empty:
        return set()
    values = runs.pivot(index="seed", columns="method", values=name)
    means = values.mean()
    best = means.idxmax() if run_metrics()[name].better == "higher" else means.idxmin()
    differences = values.drop(columns=best).sub(values[best], axis="index")
    compared = differences.loc[:, differences.count().between(FEWEST_SEEDS, MOST_SEEDS)]
    if compared.empty:
        return set()
    p = compared.apply(lambda column: sign_flip_test(column.dropna()))
    return {str(best), *map(str, p[p >= LEVEL].index)}
