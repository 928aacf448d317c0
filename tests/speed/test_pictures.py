import pytest
from speed_rows import row

from benchmarks.speed.pictures import Growth, Ratios

METRICS = {"seconds per step": 0.5, "ratio to naive": 1.5, "memory: prior": 2.0, "weights": 7.0}
ROWS = [
    row("growth", variant, f"{axis}={size}", metric, [size * value, 3 * size * value])
    for axis in ("width", "channels")
    for size in (4, 16)
    for metric, value in METRICS.items()
    for variant in (("radial-vcl", "naive") if metric.startswith("seconds") else ("radial-vcl",))
]


def test_growth_has_a_line_of_panels_for_each_axis_and_a_panel_for_each_metric_that_is_drawn():
    figure = Growth("growth", "a title").draw(ROWS)
    names = [(axes.get_xlabel(), axes.get_title(loc="left")) for axes in figure.axes]
    assert names == [
        (axis, metric)
        for axis in ("width", "channels")
        for metric in ("seconds per step", "ratio to naive")
    ]
    tops = [axes.get_position().y1 for axes in figure.axes]
    assert tops[0] == tops[1] > tops[2] == tops[3]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["radial-vcl", "naive"]


@pytest.mark.parametrize(("panel", "variants", "at_four"), [(2, 2, 4 * 0.5), (3, 1, 4 * 1.5)])
def test_a_panel_shows_median_and_range_of_each_variant(panel, variants, at_four):
    axes = Growth("growth", "a title").draw(ROWS).axes[panel]
    assert len(axes.containers) == variants
    line, _, (bars,) = axes.containers[0].lines
    assert line.get_xdata().tolist() == [4, 16]
    assert line.get_ydata() == pytest.approx([2 * at_four, 8 * at_four])
    assert bars.get_segments()[0][:, 1] == pytest.approx([at_four, 3 * at_four])


def test_a_picture_of_ratios_has_a_dot_and_a_bar_for_each_variant():
    rows = [row("step", name, "", "ratio", [1.0, 1.5, 4.0]) for name in ("ours", "theirs")]
    picture = Ratios("step", "a title", "ratio")
    (axes,) = picture.draw([*rows, *ROWS]).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["ours", "theirs"]
    _, bar, dot, *_ = (line.get_xdata() for line in axes.get_lines())
    assert (list(bar), list(dot)) == ([1.0, 4.0], [1.5])
    assert picture.drawn(ROWS) == []
