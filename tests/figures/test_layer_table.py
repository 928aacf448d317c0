"""The scales and ticks of the layers' drawings, and the drawings of the page."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_of import page_of, section_of

from vcl_radial.report.figures.layer_table import QUANTITIES, Means, Scale, scale_of, tick_labels
from vcl_radial.report.page import html_page
from vcl_radial.report.page.layers import FRAME, layer_charts

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
def test_every_value_has_a_place_in_its_order_and_every_tick_is_on_the_axis(values):
    scale = scale_of([line(*values)], KL)
    places = [scale.place(value) for value in sorted(values)]
    assert places == sorted(places)
    assert places[0] >= 0
    assert places[-1] <= 1
    assert 1 <= len(scale.ticks) <= 9
    assert scale.ticks == sorted(set(scale.ticks))
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)


def test_a_decade_on_the_axis_is_as_long_as_the_next_one():
    scale = scale_of([line(1e-3, 1.0, 1e3)], KL)
    steps = np.diff([scale.place(10.0**n) for n in range(-3, 4)])
    np.testing.assert_allclose(steps, steps[0])
    signed = Scale(-1e4, 1e4, 1.0)
    assert signed.place(0.0) == 0.5
    assert signed.place(10.0) - 0.5 == pytest.approx(0.5 - signed.place(-10.0))


def test_what_is_no_number_does_not_spoil_the_axis():
    scale = scale_of([line(1.0, math.inf, math.nan)], KL)
    assert (scale.low, scale.high) == pytest.approx((1 / 1.2, 1.2))
    assert scale_of([line(math.inf)], KL).ticks


@pytest.fixture
def layers(many):
    """Layers of the two methods with a posterior of `many(3)`, one of them without the head."""
    runs = [("radial-vcl", "body.0"), ("radial-vcl", "head"), ("gaussian-vcl", "body.0")]
    rows = [
        ("split-fashion", method, seed, task, layer, 10.0**task + seed, 0.1, 0.01, 1.0, 50.0)
        for method, layer in runs
        for seed in (0, 1)
        for task in (1, 2, 3)
    ]
    quantities = ["kl", "moved", "noise", "noise_to_prior", "units_at_rest"]
    columns = ["benchmark", "method", "seed", "task_trained", "layer", *quantities]
    return pd.DataFrame(rows, columns=columns)


def test_each_layer_has_a_drawing_of_each_quantity_on_one_scale(layers):
    body, head = layer_charts(layers)
    assert (body.name, head.name) == ("body.0", "head")
    assert len(body.charts) == len(head.charts) == len(QUANTITIES)
    for of_body, of_head in zip(body.charts, head.charts, strict=True):
        assert [line.method for line in of_body.lines] == ["radial-vcl", "gaussian-vcl"]
        assert [line.method for line in of_head.lines] == ["radial-vcl"]
        assert of_body.y_ticks == of_head.y_ticks
        points = [point for line in of_body.lines for point in line.points]
        assert all(0 <= p.x <= FRAME.width and 0 <= p.y <= FRAME.height for p in points)
    kl = body.charts[-1].lines[0]
    assert kl.points[0].words == "radial-vcl, task 1: 10.5 ± 0.5"


def test_a_value_without_end_has_no_point(layers):
    layers.loc[(layers["task_trained"] == 2) & (layers["method"] == "radial-vcl"), "kl"] = math.inf
    kl = layer_charts(layers)[0].charts[-1].lines[0]
    assert [point.words.split(":")[0] for point in kl.points] == [
        "radial-vcl, task 1",
        "radial-vcl, task 3",
    ]


def test_the_page_shows_the_layers_where_there_are_any(layers, many):
    page = html_page([section_of(many(3), layers=layers)], title="A page")
    assert len(re.findall('aria-label="[^"]*layer body.0 after every task', page)) == 4
    assert "task 1 is held against the initial prior" in page
    assert "What the layers do" not in page_of(many(3))
