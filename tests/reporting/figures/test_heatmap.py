"""What stands in the cells of a heatmap."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from vcl_radial.errors import DataError
from vcl_radial.reporting.figures import heatmap_sheet
from vcl_radial.reporting.figures.style import colour_map, house_style


def heatmap(results, method, **keys):
    return heatmap_sheet(results, methods=[method], **keys)


def cells(axes):
    """The texts in the cells by their row and column, from the top left corner."""
    texts = {}
    for text in axes.texts:
        x, y = text.get_position()
        texts.setdefault((int(y), int(x)), []).append(text.get_text())
    return texts


def shown(axes, kind=0):
    """Where a cell has a colour (kind 0), or is hatched (kind 1), in rows."""
    mesh = axes.collections[kind]
    return ~np.ma.getmaskarray(mesh.get_array()).reshape(mesh.get_coordinates().shape[0] - 1, -1)


def colour(axes, row, column):
    mesh = axes.collections[0]
    return mesh.to_rgba(mesh.get_array().reshape(shown(axes).shape)[row, column])


def header(figure):
    return [text.get_text() for text in figure.texts]


def overlaps(figure, axes):
    """Pairs of texts within the axes that cover each other, and texts wider than a cell."""
    with house_style():
        renderer = FigureCanvasAgg(figure).get_renderer()
        boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in axes.texts]
        cell = axes.transData.transform((1, 1)) - axes.transData.transform((0, 0))
        wide = [name for name, box in boxes if box.width > abs(cell[0])]
        pairs = [
            (a, b)
            for k, (a, box_a) in enumerate(boxes)
            for b, box_b in boxes[k + 1 :]
            if box_a.padded(-1.0).overlaps(box_b.padded(-1.0))
        ]
    return wide + pairs


def test_each_cell_holds_the_mean_and_the_standard_error(two_seeds):
    axes = heatmap(two_seeds, "radial-vcl").axes[0]
    assert cells(axes) == {
        (0, 0): ["98.5", "± 0.5"],
        (0, 1): ["52.0", "± 1.0"],
        (1, 0): ["92.0", "± 2.0"],
        (1, 1): ["97.5", "± 0.5"],
        (0, 2): ["98.5", "± 0.5"],  # mean of tasks seen: task 1 only
        (1, 2): ["94.8", "± 1.2"],  # (90 + 97) / 2 = 93.5 and (94 + 98) / 2 = 96
    }


def test_the_header_says_what_the_numbers_are(two_seeds):
    figure = heatmap(two_seeds, "radial-vcl")
    text, title = (text.replace("\n", " ") for text in header(figure))
    assert (title, figure.axes[0].get_title(loc="left")) == ("split-fashion", "radial VCL")
    assert "mean ± standard error over 2 seeds" in text
    assert "hatched: task not trained yet" in text


def test_nothing_is_said_of_tasks_that_were_not_scored_ahead(two_seeds):
    seen = two_seeds[two_seeds.task <= two_seeds.after]
    assert "hatched" not in header(heatmap(seen, "radial-vcl"))[0]


def test_only_tasks_not_trained_yet_are_hatched(many):
    axes = heatmap(many(4), "radial-vcl").axes[0]
    coloured, hatched = shown(axes), shown(axes, 1)
    ahead = np.triu(np.ones((4, 4), bool), 1)
    np.testing.assert_array_equal(hatched[:, :4], ahead)
    np.testing.assert_array_equal(coloured[:, :4], ~ahead)
    assert coloured[:, 5].all()  # behind a gap, the mean of the tasks seen
    assert axes.collections[1].get_hatch()


def test_the_colour_of_a_cell_is_its_place_on_the_scale(two_seeds):
    axes = heatmap(two_seeds, "radial-vcl").axes[0]
    assert colour(axes, 1, 0) == pytest.approx(colour_map()(0.84))  # 92 on the way from 50 to 100


@pytest.mark.parametrize(("lowest", "limits"), [(60.0, (50, 100)), (49.0, (0, 100))])
def test_the_scale_has_one_of_two_ranges_and_names_its_ends(make_run, lowest, limits):
    results = make_run("naive", 0, [[50.0, 10.0], [99.0, 10.0], [lowest, 99.0]])
    bar = heatmap(results, "naive").axes[1]
    assert bar.get_ylim() == limits
    labels = [label.get_text() for label in bar.get_yticklabels()]
    assert (labels[0], labels[-1]) == (str(limits[0]), str(limits[1]))


def test_the_panels_of_a_sheet_share_one_scale(make_run):
    good = make_run("good", 0, [[50.0, 50.0], [99.0, 50.0], [98.0, 99.0]])
    bad = make_run("bad", 0, [[50.0, 50.0], [99.0, 50.0], [10.0, 98.0]])
    *panels, bar = heatmap_sheet(pd.concat([good, bad])).axes
    assert [panel.get_title(loc="left") for panel in panels] == ["good", "bad"]
    assert colour(panels[0], 1, 0) == colour(panels[1], 1, 1)
    assert bar.get_ylim() == (0, 100)


def test_one_seed_shows_no_spread_and_says_so(many):
    figure = heatmap(many(3, seeds=1), "radial-vcl")
    assert not any("±" in text.get_text() for text in figure.axes[0].texts)
    assert "one seed (no spread)" in " ".join(header(figure))


def test_different_numbers_of_seeds_are_told(many):
    results = many(3, ("radial-vcl", "naive"), seeds=3)
    results = results[(results["method"] != "naive") | (results["seed"] != 1)]
    assert "over 2 to 3 seeds" in " ".join(header(heatmap_sheet(results)))


def test_a_joint_run_is_one_row(many):
    results = many(3)
    last = results[(results["method"] == "joint") & (results["after"] == 3)]
    means = last[last["metric"] == "accuracy"].groupby("task")["value"].mean()
    axes = heatmap(results, "joint").axes[0]
    texts = cells(axes)
    assert {row for row, _ in texts} == {2}
    assert [texts[2, j][0] for j in range(3)] == [f"{mean:.1f}" for mean in means]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["after\nall tasks"]


@pytest.mark.filterwarnings("error")
def test_a_row_alone_keeps_its_height_below_long_names(many):
    names = ["eyepacs-subset", "a hospital far away", "another hospital"]
    axes = heatmap(many(3), "joint", tasks=names).axes[0]
    height = axes.get_position(original=True).height * axes.figure.get_size_inches()[1]
    assert height == pytest.approx(0.42, abs=0.05)


def test_the_names_of_the_tasks_are_below_the_columns(two_seeds):
    axes = heatmap(two_seeds, "radial-vcl", tasks=["T-shirt, Trouser", "Coat"]).axes[0]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["T-shirt, Trouser", "Coat", "mean of tasks seen"]


@pytest.mark.parametrize("T", [1, 2, 5, 10, 20])
def test_nothing_overlaps_even_at_one_hundred_per_cent(make_run, T):
    R = np.full((T + 1, T), 100.0)
    results = pd.concat([make_run("m", 0, R), make_run("m", 1, R - 30.0)])
    figure = heatmap(results, "m")
    assert overlaps(figure, figure.axes[0]) == []


def test_twenty_tasks_have_their_means_but_no_spread(many):
    figure = heatmap(many(20), "gaussian-vcl")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert len(texts) == 20 * 20 + 20
    assert "±" not in " ".join(texts + header(figure))


def test_hundreds_of_tasks_fill_a_page_with_colours_and_some_labels(make_run):
    T = 200
    R = np.tril(np.full((T + 1, T), 80.0), -1)
    figure = heatmap(make_run("m", 0, R), "m", tasks=["a long name of a class " * 50] * T)
    axes = figure.axes[0]
    assert not axes.texts
    assert max(figure.get_size_inches()) < 14
    assert shown(axes).sum() == T * (T + 1) // 2 + T
    assert shown(axes, kind=1).sum() == T * (T - 1) // 2
    assert "pale: task not trained yet" in header(figure)[0]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels[-1] == "mean of tasks seen"
    assert set(labels[:-1]) == {"a long name of a cl…ong name of a class "}
    assert 20 <= len(labels) <= 100
    assert 20 <= len(axes.get_yticks()) <= 100


def test_long_names_of_methods_do_not_reach_the_next_panel(many):
    name = "radial-vcl-with-many-samples-and-a-very-long-name-that-goes-on-and-on"
    figure = heatmap_sheet(many(3, (name, "naive")))
    first, second, _ = figure.axes
    title = first.get_title(loc="left")
    assert title.replace("\n", "") == name
    with house_style():
        renderer = FigureCanvasAgg(figure).get_renderer()
        artist = next(t for t in first.get_children() if getattr(t, "get_text", str)() == title)
        assert artist.get_window_extent(renderer).x1 < second.get_window_extent(renderer).x0


def test_an_unknown_method_is_named_with_those_there_are(two_seeds):
    with pytest.raises(DataError, match="'vcl'"):
        heatmap(two_seeds, "vcl")


def test_two_benchmarks_in_one_figure_are_refused(two_seeds):
    other = two_seeds.assign(benchmark="permuted-mnist")
    with pytest.raises(DataError, match="split-fashion, permuted-mnist"):
        heatmap_sheet(pd.concat([two_seeds, other]))


def test_a_table_that_does_not_say_which_run_is_refused(two_seeds):
    with pytest.raises(DataError, match="'seed' is missing"):
        heatmap(two_seeds.drop(columns="seed"), "radial-vcl")


def test_the_wrong_number_of_names_is_refused(two_seeds):
    with pytest.raises(DataError, match="names of tasks: "):
        heatmap(two_seeds, "radial-vcl", tasks=["T-shirt"])


def test_a_sheet_of_no_methods_is_refused(two_seeds):
    with pytest.raises(DataError, match="at least one method"):
        heatmap_sheet(two_seeds, methods=[])
