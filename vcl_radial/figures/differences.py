"""How far methods lie from one of them, paired by seed."""

from __future__ import annotations

import pandas as pd

from vcl_radial.figures.over_seeds import method_names
from vcl_radial.metrics import average_accuracy, mean_and_standard_error, sign_flip_test


def paired_differences(results: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Average accuracy of every other method minus the reference's, over the seeds of both.

    Args:
        results: Tidy tables of the finished runs of one benchmark, with `benchmark, method, seed`.
        reference: The method to compare with.

    Returns:
        One row per method that shares at least two seeds with the reference: `method, seeds`, the
        mean difference in points and its standard error `difference, difference_se`, and the `p`
        of the exact sign-flip test.
    """
    by_run = {
        (str(method), seed): average_accuracy(run)
        for (method, seed), run in results.groupby(["method", "seed"])
    }
    rows = []
    for method in method_names(results):
        differences = [
            value - by_run[reference, seed]
            for (name, seed), value in by_run.items()
            if name == method != reference and (reference, seed) in by_run
        ]
        if len(differences) > 1:
            mean, error = mean_and_standard_error(differences)
            rows.append((method, len(differences), mean, error, sign_flip_test(differences)))
    return pd.DataFrame(rows, columns=["method", "seeds", "difference", "difference_se", "p"])
