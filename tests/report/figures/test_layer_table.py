"""The scales and ticks of the layers' drawings."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcl_radial.report.figures.layer_table import QUANTITIES, Means, scale_of, tick_labels

KL = next(quantity for quantity in QUANTITIES if quantity.column == "kl")


def line(*means: float) -> Means:
    return Means([*range(1, len(means) + 1)], [*means], [math.nan] * len(means))


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ([0.001, 0.01, 0.1], ["0.001", "0.01", "0.1"]),
        ([1e-4, 1e-3, 1e-2], ["10⁻⁴", "10⁻³", "10⁻²"]),
        ([-1e4, 0.0, 1e3], ["−10⁴", "0", "10³"]),
        ([2e-4, 5e-4], ["2·10⁻⁴", "5·10⁻⁴"]),
        ([0.0, 25.0, 50.0], ["0", "25", "50"]),
    ],
)
def test_the_numbers_at_an_axis_are_written_in_one_way(ticks, labels):
    assert tick_labels(ticks) == labels


sizes = st.floats(1e-9, 1e9)


@given(st.lists(sizes | sizes.map(lambda x: -x) | st.just(0.0), min_size=1, max_size=8))
def test_every_value_and_every_tick_is_on_the_axis(values):
    scale = scale_of([line(*values)], KL)
    assert scale.low <= min(values)
    assert max(values) <= scale.high
    assert 1 <= len(scale.ticks) <= 9
    assert scale.ticks == sorted(set(scale.ticks))
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)


def test_what_is_no_number_does_not_spoil_the_axis():
    scale = scale_of([line(1.0, math.inf, math.nan)], KL)
    assert (scale.low, scale.high) == pytest.approx((1 / 1.2, 1.2))
    assert scale_of([line(math.inf)], KL).ticks
