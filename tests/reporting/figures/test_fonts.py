"""Letters that DejaVu Sans lacks; STIXGeneral, which matplotlib ships, has one: の."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from vcl_radial.reporting.figures import fonts, heatmap_sheet, save
from vcl_radial.reporting.figures.style import house_style

pytestmark = [pytest.mark.drawn, pytest.mark.filterwarnings("error")]

STAND_IN = "STIXGeneral"


@pytest.fixture(autouse=True)
def _nothing_reported(monkeypatch):
    monkeypatch.setattr(fonts, "_reported", set())


def pixels(text, family=None):
    with house_style(), mpl.rc_context({"font.family": family} if family else {}):
        figure = Figure((2, 1))
        figure.text(0.1, 0.5, text, fontsize=20)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())


def test_only_installed_families_follow_the_one_that_matplotlib_ships(monkeypatch):
    monkeypatch.setattr(fonts, "CJK", ("A family of nowhere", STAND_IN))
    assert fonts.families() == ["DejaVu Sans", STAND_IN]


def test_a_letter_that_the_first_font_lacks_is_drawn_in_the_one_that_has_it(monkeypatch):
    without = pixels("の")
    monkeypatch.setattr(fonts, "CJK", (STAND_IN,))
    assert (pixels("の") == pixels("の", STAND_IN)).all()
    assert (pixels("の") != without).any()


def test_a_font_for_other_letters_leaves_latin_ones_alone(monkeypatch):
    without = pixels("T-shirt ± 0.5 %")
    monkeypatch.setattr(fonts, "CJK", (STAND_IN,))
    assert (pixels("T-shirt ± 0.5 %") == without).all()


def test_letters_without_a_font_are_reported_in_one_line(many, tmp_path, capsys):
    for name in ("figure", "other"):
        save(heatmap_sheet(many(2), tasks=["の", "類別, Coat"]), tmp_path / name)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "の類別:" in lines[0]


def test_letters_with_a_font_are_not_reported(many, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(fonts, "CJK", (STAND_IN,))
    save(heatmap_sheet(many(2), tasks=["の", "Über, ± 5"]), tmp_path / "figure")
    assert capsys.readouterr().err == ""


def test_wide_names_are_slanted_before_they_meet(many):
    (axes, *_) = heatmap_sheet(many(2), tasks=["の" * 6, "の"]).axes
    assert axes.get_xticklabels()[0].get_rotation() > 0
    (axes, *_) = heatmap_sheet(many(2), tasks=["a" * 6, "の"]).axes
    assert axes.get_xticklabels()[0].get_rotation() == 0
