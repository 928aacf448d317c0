"""The look, and files that come out the same for the same input."""

import io

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from vcl_radial.reporting.figures import final_bars, heatmap_sheet, save
from vcl_radial.reporting.figures.style import (
    _LOOKS,
    INK,
    colour_map,
    house_style,
    method_styles,
    relative_luminance,
    styles_in_order,
    text_colour,
    with_few_colours,
)


def heatmap(results, method, **keys):
    return heatmap_sheet(results, methods=[method], **keys)


pytestmark = pytest.mark.drawn

ALL_COLOURS = [colour_map()(k)[:3] for k in range(colour_map().N)]


def test_the_map_gets_strictly_darker_towards_high_accuracy():
    luminance = np.array([relative_luminance(colour) for colour in ALL_COLOURS])
    assert (np.diff(luminance) < 0).all()


def test_grey_prints_of_the_map_tell_ten_points_apart():
    grey = np.array([relative_luminance(colour_map()(x)[:3]) for x in np.linspace(0, 1, 6)])
    assert (grey[:-1] / grey[1:]).min() > 1.2


def test_text_is_readable_on_every_colour_of_the_map():
    """WCAG 2.1 asks for a contrast of at least 3 to 1 for graphics and large text."""
    for colour in ALL_COLOURS:
        ink = relative_luminance(mpl.colors.to_rgb(text_colour(colour)))
        light, dark = sorted([relative_luminance(colour), ink], reverse=True)
        assert (light + 0.05) / (dark + 0.05) > 3.9


def test_text_is_dark_on_white_and_white_on_black():
    assert text_colour((1.0, 1.0, 1.0)) == INK
    assert text_colour((0.0, 0.0, 0.0)) == "white"


def test_luminance_of_white_and_black():
    assert relative_luminance((1.0, 1.0, 1.0)) == pytest.approx(1.0)
    assert relative_luminance((0.0, 0.0, 0.0)) == 0.0


def test_no_two_methods_of_a_figure_have_the_same_colour_and_marker():
    names = [*_LOOKS, *(f"method-{k}" for k in range(60))]
    looks = {(style.colour, style.marker) for style in method_styles(names).values()}
    assert len(looks) == len(names)


@pytest.mark.parametrize("name", ["gaussian-vcl", "mine", "放射状"])
def test_a_method_has_the_same_look_whatever_else_is_drawn(name):
    alone = method_styles([name])[name]
    for others in (["yours"], ["joint", "naive", "a"], [*_LOOKS]):
        assert method_styles([*others, name])[name] == alone
        assert method_styles([name, *others])[name] == alone


def test_settings_leave_a_method_its_colour():
    names = [f"radial-vcl (epochs={epochs})" for epochs in range(10)]
    colours = {style.colour for style in method_styles(names).values()}
    assert colours == {method_styles(["radial-vcl"])["radial-vcl"].colour}


def test_eight_names_that_are_no_methods_have_eight_colours():
    assert len({look.colour for look in styles_in_order("abcdefgh").values()}) == 8
    assert [*styles_in_order("abcdefghij")] == [*"abcdefghij"]


def test_a_method_keeps_its_look_beside_names_in_order():
    assert styles_in_order(["a", "naive"])["naive"] == method_styles(["naive"])["naive"]


def test_styles_repeat_only_if_all_are_used():
    names = [f"method-{k}" for k in range(200)]
    assert list(method_styles(names)) == names


def test_the_house_style_leaves_the_settings_of_the_user_alone():
    with mpl.rc_context({"font.size": 23.0}):
        with house_style():
            assert mpl.rcParams["font.size"] != 23.0
        assert mpl.rcParams["font.size"] == 23.0


@pytest.mark.parametrize(
    "draw",
    [lambda results: heatmap(results, "radial-vcl"), heatmap_sheet, final_bars],
    ids=["heatmap", "sheet", "bars"],
)
def test_the_same_results_give_the_same_bytes_whatever_the_settings(draw, many, tmp_path):
    results = many(2, ("radial-vcl", "joint"))
    first = save(draw(results), tmp_path / "a" / "figure")
    with mpl.rc_context({"font.size": 23.0, "axes.facecolor": "red", "svg.hashsalt": "other"}):
        second = save(draw(results), tmp_path / "b" / "figure")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_other_results_give_other_bytes(many, tmp_path):
    first = save(heatmap(many(3), "radial-vcl"), tmp_path / "a")
    other = many(3)
    other["value"] -= 1.0
    second = save(heatmap(other, "radial-vcl"), tmp_path / "b")
    assert first[0].read_bytes() != second[0].read_bytes()
    assert first[1].read_bytes() != second[1].read_bytes()


def test_saving_leaves_the_two_pictures_and_nothing_else(two_seeds, tmp_path):
    stem = tmp_path / "new" / "split-0.5"
    paths = save(heatmap(two_seeds, "radial-vcl"), stem)
    assert [path.name for path in paths] == ["split-0.5.png", "split-0.5.svg"]
    assert sorted(stem.parent.iterdir()) == sorted(paths)
    with Image.open(paths[0]) as picture:
        assert picture.info["dpi"] == pytest.approx((200, 200), abs=0.1)
    assert "<dc:date>" not in paths[1].read_text(encoding="utf-8")


def test_a_failed_write_keeps_the_old_picture(two_seeds, tmp_path, monkeypatch):
    figure = heatmap(two_seeds, "radial-vcl")
    png, _ = save(figure, tmp_path / "figure")
    png.write_bytes(b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save(figure, tmp_path / "figure")
    assert png.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.png", "figure.svg"]


def test_no_text_is_cut_at_the_edge_of_the_picture(many, tmp_path):
    names = ["T-shirt/top, Trouser", "Pullover, Dress", "a very long name of a task indeed"]
    png, _ = save(heatmap_sheet(many(3), tasks=names), tmp_path / "figure")
    with Image.open(png) as picture:
        grey = np.asarray(picture.convert("L"))
    frame = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    assert (frame == 255).all()
    assert (grey < 100).any()


def test_few_colours_are_kept_for_lines_and_all_for_photographs():
    def png(pixels):
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "PNG", dpi=(200, 200))
        return buffer.getvalue()

    lines = np.full((200, 200, 3), 255, dtype=np.uint8)
    lines[::20], lines[:, ::25] = (0, 114, 178), (213, 94, 0)
    few = with_few_colours(png(lines))
    assert len(few) < len(png(lines))
    with Image.open(io.BytesIO(few)) as picture:
        assert (np.asarray(picture.convert("RGB")) == lines).all()
        assert picture.info["dpi"] == pytest.approx((200, 200), abs=0.1)
    photograph = png(np.random.default_rng(0).integers(0, 256, (200, 200, 3), dtype=np.uint8))
    assert with_few_colours(photograph) == photograph
