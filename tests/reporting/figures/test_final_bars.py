"""The bars of the final network."""

import pytest
from matplotlib.container import BarContainer

from vcl_radial.reporting.figures import final_bars


def bars(axes):
    """Lower end, height and colour of each bar."""
    patches = [p for bars in axes.containers if isinstance(bars, BarContainer) for p in bars]
    return [(p.get_y(), p.get_height(), p.get_facecolor()) for p in patches]


def test_the_height_of_a_bar_is_the_final_accuracy(two_seeds):
    (axes,) = final_bars(two_seeds).axes
    assert [height for _, height, _ in bars(axes)] == [92.0, 97.5]
    assert [low for low, _, _ in bars(axes)] == [0.0, 0.0]


def test_the_error_bars_are_standard_errors(two_seeds):
    (axes,) = final_bars(two_seeds).axes
    ends = [
        segment[:, 1].tolist()
        for collection in axes.collections
        for segment in collection.get_segments()
    ]
    assert ends == [[90.0, 94.0], [97.0, 98.0]]


def test_the_dotted_line_is_the_average_and_says_its_value(two_seeds):
    (axes,) = final_bars(two_seeds).axes
    lines = [line for line in axes.lines if list(line.get_xdata()) == [0, 1]]
    assert [list(line.get_ydata()) for line in lines] == [[94.75, 94.75]]
    assert [text.get_text() for text in axes.texts] == ["92.0", "97.5", "94.8"]


def test_only_the_newest_task_is_pale(many):
    (axes,) = final_bars(many(4, ("radial-vcl",))).axes
    colours = [colour for _, _, colour in bars(axes)]
    assert colours[0] == colours[1] == colours[2]
    assert sum(colours[3][:3]) > sum(colours[0][:3])


def test_a_joint_run_has_no_newest_task(many):
    figure = final_bars(many(4, ("joint",)))
    assert len({colour for _, _, colour in bars(figure.axes[0])}) == 1
    assert "newest" not in " ".join(text.get_text() for text in figure.texts)


def test_one_seed_has_no_error_bars(many):
    (axes,) = final_bars(many(3, ("naive",), seeds=1)).axes
    assert list(axes.collections) == []


@pytest.mark.parametrize("T", [1, 20])
def test_there_is_a_bar_for_each_task(many, T):
    for axes in final_bars(many(T)).axes:
        assert len(bars(axes)) == T


def test_all_panels_have_the_same_axis(many):
    assert len({axes.get_ylim() for axes in final_bars(many(3)).axes}) == 1
