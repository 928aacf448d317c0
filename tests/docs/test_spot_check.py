"""The list of runs that are repeated fits the committed rows, and a number that is off is seen."""

import sys
import tomllib
from pathlib import Path

import pytest
from doc_pages import ROOT
from failing import refuses

from vcl_radial.errors import DataError
from vcl_radial.reporting.rows import Rows

sys.path.insert(0, str(ROOT / "tests"))

from spot_check import LIST, RESULTS, Check

CHECKS = [Check(**entry) for entry in tomllib.loads(LIST.read_text(encoding="utf-8"))["check"]]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.command)
def test_what_is_compared_is_committed(check: Check, tmp_path: Path):
    kept = Rows.read(ROOT / "reports" / check.kept)
    copy = tmp_path / check.made
    copy.parent.mkdir(parents=True, exist_ok=True)
    selected = kept.where(**check.where_kept) if check.where_kept else kept
    names = {theirs: ours for ours, theirs in check.named_kept.items()}
    selected.table.rename(columns=names).to_csv(copy, index=False)
    assert check.largest(tmp_path) == 0
    assert "{out}" in check.command


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.command)
def test_a_tolerance_is_below_the_effect_that_it_guards(check: Check):
    assert check.within < check.effect_size


def test_the_table_of_checks_has_the_tolerances_and_effects_of_the_list():
    listed = {(check.page, check.shown): check for check in CHECKS}
    for row in Rows.read(RESULTS).table.itertuples():
        check = listed[row.page, row.command]
        assert (row.within, row.claim) == (check.within, check.claim)
        assert row.effect == pytest.approx(check.effect_size, rel=0.01)
        assert row.apart <= row.within


def test_a_number_that_is_off_and_a_row_that_is_missing_are_seen(tmp_path: Path):
    kept = next(check.kept for check in CHECKS if check.page == "retinopathy")
    check = Check("retinopathy", "", "runs.csv", kept, ["auc"], 0.5, "", {})
    text = (ROOT / "reports" / check.kept).read_text(encoding="utf-8")
    head, first, *others = text.splitlines(keepends=True)
    column = head.split(",").index("auc")
    cells = first.split(",")
    cells[column] = str(float(cells[column]) + 0.25)
    (tmp_path / "runs.csv").write_text("".join([head, ",".join(cells), *others]))
    assert check.largest(tmp_path) == pytest.approx(0.25)
    (tmp_path / "runs.csv").write_text("".join([head, *others]))
    with refuses("rows", kind=DataError):
        check.largest(tmp_path)
