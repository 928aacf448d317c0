"""A repeated command prints what it printed, and draws again as soon as anything has changed."""

import os
import sys

import pytest

from vcl_radial.reporting.unchanged import inputs_of, printed, recorded


@pytest.fixture
def runs(tmp_path):
    folder = tmp_path / "runs"
    (folder / "method" / "seed-0").mkdir(parents=True)
    (folder / "method" / "seed-0" / "accuracy.csv").write_text("1")
    return folder


@pytest.fixture
def record(tmp_path, capsys):
    page = tmp_path / "page.html"
    page.write_text("a page")
    with recorded(tmp_path / ".record.json", "inputs", [page]):
        print("a table")
    return tmp_path / ".record.json"


def test_it_prints_while_it_records(record, capsys):
    assert capsys.readouterr().out == "a table\n"
    assert printed(record, "inputs") == "a table\n"


def test_other_inputs_or_no_record_are_not_known(record, tmp_path):
    assert printed(record, "others") is None
    assert printed(tmp_path / "none.json", "inputs") is None
    record.write_text("damaged")
    assert printed(record, "inputs") is None


@pytest.mark.parametrize("change", ["removed", "edited", "touched"])
def test_a_changed_file_of_the_report_is_made_again(record, tmp_path, change):
    page = tmp_path / "page.html"
    if change == "removed":
        page.unlink()
    elif change == "edited":
        page.write_text("another page")
    else:
        os.utime(page, ns=(1, 1))
    assert printed(record, "inputs") is None


def test_a_report_with_a_warning_is_not_recorded_and_loses_its_record(record, tmp_path):
    with recorded(record, "inputs", []):
        print("passed over: a run", file=sys.stderr)
    assert not record.exists()


def test_a_report_that_fails_is_not_recorded(tmp_path):
    with pytest.raises(ValueError, match="no report"), recorded(tmp_path / "r", "inputs", []):
        raise ValueError("no report")
    assert not (tmp_path / "r").exists()


def test_the_inputs_change_with_each_file_of_the_runs_and_with_the_order_of_methods(runs):
    before = inputs_of(runs, ["a", "b"])
    assert inputs_of(runs, ["a", "b"]) == before
    assert inputs_of(runs, ["b", "a"]) != before
    (runs / "method" / "seed-1").mkdir()
    (runs / "method" / "seed-1" / "accuracy.csv").write_text("2")
    added = inputs_of(runs, ["a", "b"])
    assert added != before
    (runs / "method" / "seed-0" / "accuracy.csv").write_text("33")
    assert inputs_of(runs, ["a", "b"]) not in (before, added)
