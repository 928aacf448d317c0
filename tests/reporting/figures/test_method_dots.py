"""The picture of what methods keep shows their means and errors, the best at the top."""

import math

import numpy as np
import pytest

from vcl_radial.reporting.figures.method_dots import method_dots

SCORES = {"radial-vcl": (91.0, 1.0), "ewc": (55.0, math.nan), "naive": (30.0, 10.0)}


def test_dots_are_at_the_means_and_the_best_method_is_at_the_top():
    figure = method_dots({"": SCORES}, [*SCORES], "Kept", "%")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["naive", "EWC", "radial VCL"]
    drawn = [container.lines[0].get_xydata()[0] for container in axes.containers]
    np.testing.assert_allclose(drawn, [(30.0, 0), (55.0, 1), (91.0, 2)])
    ends = axes.containers[0].lines[2][0].get_segments()[0][:, 0]
    assert ends == pytest.approx([20.0, 40.0])


def test_panels_share_the_order_of_methods_and_one_without_a_score_has_no_dot():
    other = {"naive": (20.0, 1.0), "radial-vcl": (math.nan, math.nan)}
    one, two = method_dots({"one": SCORES, "two": other}, [*SCORES], "Kept", "%").axes
    assert one.get_ylim() == two.get_ylim()
    (dot,) = two.containers
    assert dot.lines[0].get_xydata()[0].tolist() == [20.0, 0.0]
