"""The keys that the pages list are those of the settings, with their defaults."""

import ast
import re

import pytest
from doc_pages import ROOT

from vcl_radial.runs import tracks

DOCS = ROOT / "docs"
PAGES = {
    "continual": ["recipes-and-keys.md"],
    "retinopathy": ["recipes-and-keys.md", "retinopathy.md"],
    "regression": ["regression.md"],
    "bandits": ["papers.md"],
}
"""The pages with the keys of each track."""

FILLED_IN = {"checksum", "data_name", "set"}
"""Keys that a command fills in."""


def rows(page):
    """The cells of every row of a page's tables."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    return [[c.strip() for c in line.strip("|").split("|")] for line in lines if line[:1] == "|"]


def fields(track):
    """The fields of a track's data and of its recipes."""
    spec = tracks.find(track).spec
    return [spec.model_fields[table].annotation.model_fields for table in (spec.DATA, "recipe")]


def test_every_track_has_a_page_with_its_keys():
    assert sorted(PAGES) == sorted(tracks.names())


@pytest.mark.parametrize("track", PAGES)
def test_every_key_of_a_track_has_a_row_on_its_page(track):
    cells = [row[0] for page in PAGES[track] for row in rows(page)]
    listed = {key for cell in cells for key in re.findall(r"`(?:\w+\.)?(\w+)`", cell)}
    data, recipe = fields(track)
    assert not (data.keys() | recipe.keys()) - listed - FILLED_IN


@pytest.mark.parametrize(("number", "track"), list(enumerate(PAGES, start=2)))
def test_the_table_of_the_vocabulary_has_the_defaults_of_every_track(number, track):
    (header,) = (row for row in rows("recipes-and-keys.md") if row[-1] == "bandits")
    table = rows("recipes-and-keys.md")
    begin = table.index(header) + 2
    _, recipe = fields(track)
    for row in table[begin:]:
        if len(row) != len(header):
            break
        key, cell = row[0].strip("`"), row[number]
        default = recipe[key].get_default(call_default_factory=True) if key in recipe else "–"
        shown = ast.literal_eval(cell) if cell[0] in "0123456789[" else cell
        assert shown == default or (default is None and cell != "–"), (key, cell)
