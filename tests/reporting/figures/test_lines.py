import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vcl_radial.reporting.figures.lines import line_figure, mean_curves


def scores(method, values, panel="yacht"):
    """A row for each seed (row of values) and step (column)."""
    return pd.DataFrame(
        [
            {"part": panel, "method": method, "seed": seed, "after": step, "value": value}
            for seed, steps in enumerate(values)
            for step, value in enumerate(steps, start=1)
        ]
    )


def test_a_curve_is_the_mean_over_seeds_and_its_band_the_standard_error():
    values = np.random.default_rng(0).normal(size=(5, 3))
    (curve,) = mean_curves(scores("radial-vcl", values))
    assert list(curve.x) == [1, 2, 3]
    assert curve.y == pytest.approx(values.mean(axis=0))
    assert np.subtract(curve.high, curve.y) == pytest.approx(stats.sem(values))
    assert np.subtract(curve.y, curve.low) == pytest.approx(stats.sem(values))


def test_a_single_seed_has_no_band():
    (curve,) = mean_curves(scores("radial-vcl", [[1.0, 2.0]]))
    assert curve.low is curve.high is None


def test_every_panel_has_the_lines_of_its_methods_alone():
    table = pd.concat(
        [scores("a", [[1.0, 2.0]], "one"), scores("b", [[1.0, 2.0]], "one"), scores("b", [[3, 4]])]
    )
    one, yacht = line_figure("title", [], mean_curves(table), ("steps", "score")).axes
    assert [line.get_label() for line in one.get_lines()] == ["a", "b"]
    assert [line.get_label() for line in yacht.get_lines()] == ["b"]
