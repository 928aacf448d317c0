"""Accuracy over tasks, as lines with bands."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from vcl_radial.reporting.figures.curves import accuracy_curves
from vcl_radial.reporting.figures.names import method_label
from vcl_radial.reporting.figures.style import method_styles


def test_the_lines_and_bands_are_the_average_over_the_tasks_seen(two_seeds):
    # After task 1: 98 and 99. After task 2: (90 + 97) / 2 and (94 + 98) / 2.
    lower = two_seeds.assign(value=two_seeds["value"] - 10.0)
    (axes,) = accuracy_curves(lower).axes
    (line,) = axes.lines
    np.testing.assert_allclose(line.get_ydata(), [88.5, 84.75])
    (band,) = axes.collections
    ends = band.get_paths()[0].vertices[:, 1]
    assert (min(ends), max(ends)) == pytest.approx((83.5, 89.0))


def test_a_joint_run_is_a_level_line_over_all_tasks(many):
    (axes,) = accuracy_curves(many(4, ("naive", "joint"))).axes
    level = next(line for line in axes.lines if line.get_label() == "joint training")
    assert list(level.get_xdata()) == [1, 4]
    assert len(set(level.get_ydata())) == 1


def test_one_seed_has_no_band_and_a_single_task_a_point(many):
    (axes,) = accuracy_curves(many(3, ("naive",), seeds=1)).axes
    assert list(axes.collections) == []
    (axes,) = accuracy_curves(many(1, ("naive",))).axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[1]]


@pytest.mark.parametrize(
    ("levels", "stretched"),
    [
        ([99.3, 98.4, 97.2, 80.0], True),  # most near the top, one far below
        ([99.3, 98.4, 97.2], False),  # nothing far below
        ([99.1, 45.0, 20.0, 22.0], False),  # only one near the top
        ([88.0, 70.0], False),
        ([100.0, 100.0, 100.0, 0.0], True),
        ([0.0], False),
        ([100.0], False),
    ],
)
def test_the_axis_shows_all_and_says_when_it_is_stretched(make_run, levels, stretched):
    runs = [make_run(f"m{k}", 0, [[50.0], [level]]) for k, level in enumerate(levels)]
    figure = accuracy_curves(pd.concat(runs))
    assert any("stretched" in text.get_text() for text in figure.texts) is stretched
    (axes,) = figure.axes
    bottom, top = axes.get_ylim()
    assert 0 <= bottom <= min(levels) <= max(levels) <= top <= 100
    places = axes.transData.transform([(1, value) for value in (99, 99.5, 60, 60.5)])[:, 1]
    assert (places[1] - places[0] > 10 * (places[3] - places[2])) == stretched
    ticks = [tick for tick in axes.get_yticks() if bottom <= tick <= top]
    assert 2 <= len(ticks) <= 10


def test_thirty_two_lines_can_be_told_apart():
    names = ["naive", "radial-vcl", *(f"m{i}" for i in range(30))]
    assert len(set(method_styles(names).values())) == 32


def test_up_to_eight_methods_look_as_in_every_other_figure(many):
    names = ["x", "radial-vcl", "y", "joint"]
    styles = method_styles(names)
    (axes,) = accuracy_curves(many(3, names)).axes
    drawn = {line.get_label(): to_hex(line.get_color()) for line in axes.lines}
    assert drawn == {method_label(name): style.colour for name, style in styles.items()}
