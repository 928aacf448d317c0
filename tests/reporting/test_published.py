"""Published figures beside ours, whatever the paper."""

from importlib.resources import files

import pytest

from vcl_radial.reporting.mean_table import Value, Values
from vcl_radial.reporting.published import not_below, published_values

OURS = Values("ours", {"a": Value(1.004, 0.1), "b": Value(2.0)}, lambda row: 3)
THEIRS = Values("theirs", {"a": Value(1.0, 0.5), "b": Value(2.01)}, published=True)


@pytest.mark.parametrize("track", ["bandits", "regression"])
def test_every_published_cell_is_there_once(track):
    package = f"vcl_radial.tracks.{track}"
    cells = published_values(package)
    assert len(cells) == len(files(package).joinpath("published.csv").read_text().splitlines()) - 1
    assert all(value.spread >= 0 for value in cells.values())


def test_ours_are_compared_in_the_decimals_that_are_published():
    assert not_below(OURS, THEIRS) == {"a": True, "b": False}
