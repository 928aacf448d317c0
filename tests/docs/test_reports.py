"""Every page of reports/ is what its files make: no number on it was typed."""

import re
from pathlib import Path

import pandas as pd
import pytest
from doc_pages import ROOT

from reports import pages
from vcl_radial.reporting import evidence
from vcl_radial.reporting.figures.tables import seed_table
from vcl_radial.reporting.write import MAIN_METHODS, write_report

REPORTS = ROOT / "reports"

MOST_BYTES = 15_000_000
"""Of all files together."""

FEWEST_WORDS, MOST_WORDS = 100, 600
"""Of a page before what it folds: a reader has three minutes."""

WITHOUT_A_PICTURE = "methods"
"""The page whose table is its picture."""


def test_every_page_is_as_its_template_and_its_rows_make_it():
    paths = (ROOT / "README.md.jinja", REPORTS)
    templates = [path for folder in paths for path in pages.templates(folder)]
    assert pages.differences([path for path in templates if path.parent.name != "methods"]) == []


@pytest.mark.parametrize(
    "page",
    [path for path in sorted(REPORTS.rglob("README.md")) if path.parent != REPORTS],
    ids=lambda page: page.parent.relative_to(REPORTS).as_posix(),
)
def test_a_page_asks_and_answers_before_what_it_folds(page):
    head, *folded = page.read_text().split("<details>")
    assert "**Question.**" in head
    assert "**Answer.**" in head
    assert FEWEST_WORDS <= len(head.split()) <= MOST_WORDS
    assert head.count("![") == (page.parent.name != WITHOUT_A_PICTURE)
    assert len(re.findall(r"^\| ?:?---", head, re.MULTILINE)) == 1
    assert "".join(folded).count("</details>") == len(folded)


@pytest.mark.slow
def test_the_table_of_methods_and_tracks_is_what_small_runs_of_each_say():
    assert pages.differences(pages.templates(REPORTS / "methods")) == []


@pytest.mark.parametrize(
    "folder",
    [
        REPORTS / "split-fashion",
        pytest.param(REPORTS / "split-fashion-tuned", marks=pytest.mark.slow),
        REPORTS / "speed" / "precision",
    ],
    ids=lambda path: path.name,
)
def test_the_scores_of_runs_are_those_of_their_accuracies_on_every_task(folder: Path):
    for path in sorted(folder.rglob("results.csv.gz")):
        results = pd.read_csv(path)
        if "multi-head" in results["benchmark"].iloc[0]:  # heads that were not trained
            results = results[results["task"] <= results["after"]]
        made = seed_table(results).dropna(axis=1, how="all")
        committed = pd.read_csv(path.with_name("runs.csv"))
        pd.testing.assert_frame_equal(committed[list(made)], made)


def test_the_files_of_all_pages_are_not_too_large():
    sizes = {
        path.relative_to(REPORTS).as_posix(): path.stat().st_size
        for path in REPORTS.rglob("*")
        if path.is_file()
        # SVGs and __pycache__ stay out of the repository; code is no evidence.
        and path.suffix not in (".svg", ".py")
        and path.parent.name != "__pycache__"
    }
    assert sum(sizes.values()) <= MOST_BYTES, max(sizes, key=sizes.__getitem__)


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for path in REPORTS.rglob(evidence.FILE)}),
    ids=lambda path: "/".join(path.parts[-2:]),
)
def test_reports_are_made_of_the_evidence_beside_them(folder: Path, tmp_path: Path):
    # An empty folder of data, whatever is there: photographs are on the sheets alone.
    write_report(folder, tmp_path, first=MAIN_METHODS, data_dir=tmp_path)
    made = tmp_path / folder.name
    for name in ("runs.csv", "summary.md"):
        assert _without_sheets(folder / name) == _without_sheets(made / name)


def _without_sheets(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    sheets = [line for line in lines if "sheet-" in line or line == "## Most and least certain"]
    return [line for line in lines if line and line not in sheets]
