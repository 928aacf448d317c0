"""What the layers do over the tasks, as panels of lines."""

import itertools

import numpy as np
import pandas as pd
import pytest

from vcl_radial.errors import DataError
from vcl_radial.reporting.figures import layer_movement
from vcl_radial.reporting.figures.drawing import power_of_ten
from vcl_radial.reporting.figures.layer_movement import QUANTITIES


@pytest.fixture
def layers():
    """Three tasks, two layers, two methods, two seeds; every number is told by its place."""
    places = itertools.product(("radial-vcl", "naive"), (0, 1), (1, 2, 3), ("body.0", "head"))
    rows = [
        {
            "benchmark": "bench",
            "method": method,
            "seed": seed,
            "task_trained": task,
            "layer": layer,
            "kl": 1000.0 * task + seed,
            "moved": task * (1.0 if layer == "head" else 0.1) + 0.01 * seed,
            "noise": 0.1 / task + 0.001 * seed,
            "noise_to_prior": 0.5,
            "units_at_rest": 10.0 * task + 2 * seed,
        }
        for method, seed, task, layer in places
    ]
    return pd.DataFrame(rows)


def test_a_panel_for_each_quantity_and_layer_in_reading_order(layers):
    figure = layer_movement(layers)
    assert len(figure.axes) == 2 * len(QUANTITIES)
    for panel, axes in enumerate(figure.axes):
        quantity, layer = QUANTITIES[panel // 2], ("body.0", "head")[panel % 2]
        for method, line in zip(("radial-vcl", "naive"), axes.lines, strict=True):
            chosen = layers[(layers["layer"] == layer) & (layers["method"] == method)]
            means = chosen.groupby("task_trained")[quantity.column].mean()
            np.testing.assert_allclose(line.get_ydata(), means)
            assert line.get_label() == method
        assert axes.get_yscale() == "linear"


def test_the_band_is_the_standard_error_and_one_seed_has_none(layers):
    axes = layer_movement(layers).axes[2]  # units at rest, of body.0: 10 and 12 after task 1
    ends = axes.collections[0].get_paths()[0].vertices
    at_task_1 = ends[ends[:, 0] == 1.0][:, 1]
    assert (min(at_task_1), max(at_task_1)) == pytest.approx((10.0, 12.0))
    alone = layer_movement(layers[layers["seed"] == 0])
    assert all(list(axes.collections) == [] for axes in alone.axes)


def test_a_layer_that_one_method_has_alone_is_drawn_for_it(layers):
    alone = layers[(layers["layer"] == "head") | (layers["method"] == "naive")]
    drawn = {axes.get_title(loc="left"): axes.lines for axes in layer_movement(alone).axes[:2]}
    labels = {name: {line.get_label() for line in lines} for name, lines in drawn.items()}
    assert labels == {"layer 1": {"naive"}, "head": {"naive", "radial-vcl"}}


def test_a_prior_term_that_falls_below_zero_stays_within_its_panel(layers):
    layers.loc[(layers["method"] == "naive") & (layers["task_trained"] > 1), "kl"] *= -40
    figure = layer_movement(layers)
    figure.canvas.draw()
    for axes in figure.axes[-2:]:
        assert all(
            axes.bbox.padded(2).contains(*axes.transData.transform(point))
            for line in axes.lines
            for point in line.get_xydata()
        )


def test_what_rests_exactly_stays_within_its_panel(layers):
    layers.loc[layers["task_trained"] > 1, "moved"] = 0.0
    figure = layer_movement(layers)
    figure.canvas.draw()
    axes = figure.axes[0]
    bottom, top = axes.get_ylim()
    for line in axes.lines:
        assert all(bottom <= value <= top for value in line.get_ydata())
    width, height = figure.get_size_inches()
    drawn = figure.get_tightbbox()
    assert drawn.width < 2 * width
    assert drawn.height < 2 * height


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0"), (0.01, "0.01"), (1e-4, "10⁻⁴"), (-1e4, "−10⁴"), (2e-4, "2·10⁻⁴"), (2e3, "2,000")],
)
def test_a_number_at_an_axis_is_short(value, words):
    assert power_of_ten(value) == words


def test_two_benchmarks_are_refused(layers):
    with pytest.raises(DataError, match="one benchmark"):
        layer_movement(pd.concat([layers, layers.assign(benchmark="other")]))
