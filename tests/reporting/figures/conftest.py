"""Made-up results whose every number is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from vcl_radial.metrics.continual import TIDY_COLUMNS


def run(method, seed, R, *, benchmark="split-fashion", joint=False):
    """The tidy table of one run; R[i][j] is the accuracy on task j+1 after task i."""
    rows = [0, len(R) - 1] if joint else range(len(R))
    return pd.DataFrame(
        [
            (benchmark, method, seed, i, j + 1, metric, scale * R[i][j])
            for i in rows
            for j in range(len(R[i]))
            for metric, scale in (("accuracy", 1.0), ("nll", 0.02), ("ece", 0.2))
        ],
        columns=[*("benchmark", "method", "seed"), *TIDY_COLUMNS],
    )


@pytest.fixture
def make_run():
    return run


@pytest.fixture
def two_seeds():
    """Two tasks, two seeds: the mean is the middle and the standard error half the difference."""
    return pd.concat(
        [
            run("radial-vcl", 0, [[50.0, 48.0], [98.0, 51.0], [90.0, 97.0]]),
            run("radial-vcl", 1, [[50.0, 48.0], [99.0, 53.0], [94.0, 98.0]]),
        ]
    )


@pytest.fixture
def many():
    """Results of several methods with T tasks; the method named joint sees all tasks at once."""

    def make(T, methods=("radial-vcl", "gaussian-vcl", "joint"), seeds=2):
        generator = np.random.default_rng(T)
        tables = []
        for method in methods:
            for seed in range(seeds):
                R = generator.uniform(60.0, 100.0, (T + 1, T))
                tables.append(run(method, seed, R, joint=method == "joint"))
        return pd.concat(tables)

    return make
