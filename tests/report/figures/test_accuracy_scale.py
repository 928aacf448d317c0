"""The axis of accuracies."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcl_radial.report.figures.accuracy_scale import AccuracyScale, accuracy_scale

ACCURACIES = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=20)


@given(ACCURACIES, st.sampled_from([None, True, False]))
def test_all_that_is_shown_lies_on_the_axis_and_so_do_its_ticks(values, stretched):
    scale = accuracy_scale(values, stretched)
    assert 0.0 <= scale.low < scale.high <= 100.0
    assert all(-1e-9 <= scale.place(value) <= 1.0 + 1e-9 for value in values)
    ticks = scale.ticks
    assert len(ticks) >= 2
    assert ticks == sorted(set(ticks))
    assert all(-1e-9 <= scale.place(tick) <= 1.0 + 1e-9 for tick in ticks)


@given(ACCURACIES, st.booleans())
def test_a_higher_accuracy_lies_higher(values, stretched):
    scale = accuracy_scale(values, stretched)
    places = [scale.place(value) for value in sorted(set(values))]
    assert places == sorted(places)


def test_the_ends_of_the_axis_are_its_places_0_and_1():
    for stretched in (False, True):
        scale = AccuracyScale(70.0, 99.5, stretched)
        assert (scale.place(70.0), scale.place(99.5)) == (0.0, 1.0)
    assert AccuracyScale(50.0, 100.0).place(75.0) == pytest.approx(0.5)


def test_a_stretched_axis_gives_more_room_to_what_is_nearer_to_100():
    scale = AccuracyScale(50.0, 100.0, stretched=True)
    at_the_top = scale.place(99.5) - scale.place(99.0)
    assert at_the_top > 10 * (scale.place(60.5) - scale.place(60.0))


@pytest.mark.parametrize(
    ("values", "stretched"),
    [
        ([99.3, 98.4, 97.2, 80.0], True),  # most near the top, one far below
        ([99.3, 98.4, 97.2], False),  # nothing far below
        ([99.1, 45.0, 20.0, 22.0], False),  # only one near the top
        ([88.0, 70.0], False),
    ],
)
def test_the_axis_is_stretched_where_most_are_near_the_top_and_some_far_below(values, stretched):
    assert accuracy_scale(values).stretched is stretched


def test_nan_is_left_out_and_nothing_at_all_still_has_an_axis():
    assert accuracy_scale([math.nan, 80.0, 90.0]) == accuracy_scale([80.0, 90.0])
    assert accuracy_scale([math.nan]).ticks
