"""Notes on runs that cannot have learned as much as the shipped recipes do."""

import pytest

from vcl_radial.runs.doubts import doubts
from vcl_radial.runs.planning import plan

BENCHMARK = "split-digits-multi-head"
METHODS = ["radial-vcl", "ewc"]


def lines_of(settings, benchmark=BENCHMARK):
    return doubts(plan(benchmark, METHODS, [0], settings), benchmark, METHODS, settings)


@pytest.mark.parametrize("settings", [{}, {"epochs": 10}, {"epochs": 400}, {"hidden": [8]}])
def test_usual_settings_have_no_note(settings):
    assert lines_of(settings) == []


def test_a_very_short_training_has_one_note_for_all_its_methods():
    (line,) = lines_of({"epochs": 1})
    assert "epochs = 1 may be too few" in line
    assert "radial-vcl 20, ewc 20" in line
    (line,) = lines_of({"steps": 5}, "diabetes")
    assert "radial-vcl 2000, ewc 2000" in line


@pytest.mark.parametrize("settings", [{"initial_rho": -20.0}, {"initial_noise": 1e-6}])
def test_a_tiny_noise_has_a_note(settings):
    planned = plan(BENCHMARK, ["radial-vcl"], [0], settings)
    (line,) = doubts(planned, BENCHMARK, ["radial-vcl"], settings)
    assert line.startswith("radial-vcl: the initial noise of the weights ")
