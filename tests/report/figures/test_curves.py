"""Accuracy over tasks, as lines with bands."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from vcl_radial.report.figures.curves import accuracy_curves, curve_table
from vcl_radial.report.figures.style import line_looks, method_styles


def test_the_table_is_the_average_over_the_tasks_seen(two_seeds):
    table = curve_table(two_seeds)
    assert list(table["task_trained"]) == [1, 2]
    # After task 1: 98 and 99. After task 2: (90 + 97) / 2 and (94 + 98) / 2.
    np.testing.assert_allclose(table["mean"], [98.5, 94.75])
    np.testing.assert_allclose(table["se"], [0.5, 1.25])


def test_the_lines_and_bands_lie_where_the_axis_says(two_seeds):
    lower = two_seeds.assign(value=two_seeds["value"] - 10.0)  # where the axis is even
    (axes,) = accuracy_curves(lower).axes
    accuracies = [float(label.get_text()) + 10.0 for label in axes.get_yticklabels()]
    slope, shift = np.polyfit(axes.get_yticks(), accuracies, 1)
    (line,) = axes.lines
    np.testing.assert_allclose(slope * np.array(line.get_ydata()) + shift, [98.5, 94.75])
    (band,) = axes.collections
    ends = slope * band.get_paths()[0].vertices[:, 1] + shift
    assert (min(ends), max(ends)) == pytest.approx((93.5, 99.0))


def test_a_joint_run_is_a_level_line_over_all_tasks(many):
    (axes,) = accuracy_curves(many(4, ("naive", "joint"))).axes
    level = next(line for line in axes.lines if line.get_label() == "joint")
    assert list(level.get_xdata()) == [1, 4]
    assert len(set(level.get_ydata())) == 1


def test_one_seed_has_no_band_and_a_single_task_a_point(many):
    (axes,) = accuracy_curves(many(3, ("naive",), seeds=1)).axes
    assert list(axes.collections) == []
    (axes,) = accuracy_curves(many(1, ("naive",))).axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[1]]


def test_the_figure_says_when_its_axis_is_stretched(make_run):
    near, far = [[50.0, 50.0], [99.0, 50.0], [99.0, 98.0]], [[50.0, 50.0], [99.0, 50.0], [40, 99]]
    runs = [make_run(name, 0, near) for name in ("a", "b", "c")]
    said = [
        " ".join(text.get_text() for text in accuracy_curves(pd.concat(tables)).texts)
        for tables in (runs, [*runs, make_run("naive", 0, far)])
    ]
    assert ["stretched" in words for words in said] == [False, True]


def test_thirty_two_lines_can_be_told_apart():
    names = ["naive", "radial-vcl", *(f"m{i}" for i in range(30))]
    assert len(set(line_looks(names).values())) == 32


def test_up_to_eight_methods_look_as_in_every_other_figure(many):
    names = ["x", "radial-vcl", "y", "joint"]
    styles = method_styles(names)
    assert {name: look.style for name, look in line_looks(names).items()} == styles
    (axes,) = accuracy_curves(many(3, names)).axes
    drawn = {line.get_label(): to_hex(line.get_color()) for line in axes.lines}
    assert drawn == {name: style.colour for name, style in styles.items()}
