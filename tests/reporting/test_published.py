"""Published figures beside ours, whatever the paper."""

import math
from importlib.resources import files

import pytest

from vcl_radial.reporting.published import Value, Values, not_below, published_values, value_table

OURS = Values(
    "ours", {"a": Value(1.004, 0.1), "b": Value(2.0), "c": Value(math.nan)}, lambda row: 3
)
THEIRS = Values("theirs", {"a": Value(1.0, 0.5), "b": Value(2.01)}, published=True)


@pytest.mark.parametrize("track", ["bandits", "regression"])
def test_every_published_cell_is_there_once(track):
    package = f"vcl_radial.tracks.{track}"
    cells = published_values(package)
    assert len(cells) == len(files(package).joinpath("published.csv").read_text().splitlines()) - 1
    assert all(value.spread >= 0 for value in cells.values())


def test_published_values_are_in_italics_and_missing_values_are_dashes():
    table = value_table("set", ["a", "b", "c"], [OURS, THEIRS])
    assert [[cell.text for cell in row] for row in table.body] == [
        ["a", "1.004 ± 0.100", "1.00 ± 0.50"],
        ["b", "2.000", "2.01"],
        ["c", "–", "–"],
    ]
    assert [cell.published for cell in table.body[0]] == [False, False, True]


def test_ours_are_compared_in_the_decimals_that_are_published():
    assert not_below(OURS, THEIRS) == {"a": True, "b": False}
