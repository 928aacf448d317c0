"""Runs as committed evidence: a report is made from it as from the run folders."""

import json
import lzma

import pytest
from failing import refuses
from tiny_runs import MULTI_HEAD, finished, tiny_run

from vcl_radial.reporting import evidence
from vcl_radial.reporting.gather import gather


@pytest.fixture
def runs(tmp_path):
    for method in ("naive", "joint"):
        for seed in (0, 1):
            finished(tmp_path / "runs", tiny_run(method, seed=seed))
    restored, _ = gather(tmp_path / "runs")
    return restored


def test_runs_are_read_as_from_their_folders(runs, tmp_path):
    names = evidence.write(runs, tmp_path / "report" / MULTI_HEAD, {})
    assert names == ["evidence.json", "evidence-accuracy.csv.xz"]
    again, passed_over = gather(tmp_path / "report")
    assert passed_over == []
    assert [run.spec for run in again] == [run.spec for run in runs]
    assert [(run.benchmark, run.method) for run in again] == [
        (run.benchmark, run.method) for run in runs
    ]
    for run, before in zip(again, runs, strict=True):
        assert run.environment == before.environment
        assert run.tables["accuracy"].equals(before.tables["accuracy"])


def test_the_same_runs_give_the_same_bytes(runs, tmp_path):
    for place in ("one", "two"):
        names = evidence.write(runs, tmp_path / place, {"more.csv": "a,b\n1,2\n"})
    assert names[-1] == "more.csv.xz"
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_runs_beside_their_evidence_count_once_and_nobody_is_warned(runs, tmp_path):
    evidence.write(runs, tmp_path / "runs" / "report" / MULTI_HEAD, {})
    restored, passed_over = gather(tmp_path / "runs")
    assert [run.path for run in restored] == [run.path for run in runs]
    assert passed_over == []


def test_damaged_evidence_is_named_and_the_mend_too(runs, tmp_path):
    place = tmp_path / "runs" / "kept"
    evidence.write(runs[:1], place, {})
    whole = (place / "evidence-accuracy.csv.xz").read_bytes()
    for name, content in {
        "evidence-accuracy.csv.xz": whole[:-9],
        "evidence.json": b"[{}]",
    }.items():
        (place / name).write_bytes(content)
        restored, (line,) = gather(tmp_path / "runs")
        assert len(restored) == 4
        assert f"{place / 'evidence.json'}: cannot be read" in line
        assert line.endswith("write it again")


def test_evidence_of_what_no_run_of_this_suite_writes_names_the_run(runs, tmp_path):
    place = tmp_path / "runs" / "kept"
    evidence.write(runs[:1], place, {})
    listed = json.loads((place / "evidence.json").read_text())
    del listed["runs"][0]["environment"]["device"]
    (place / "evidence.json").write_text(json.dumps(listed))
    _, (line,) = gather(tmp_path / "runs")
    assert str(place / listed["runs"][0]["folder"]) in line
    assert "device" in line


def test_other_rows_than_those_that_were_stored_are_refused(runs, tmp_path):
    for place, more in (("one", "1"), ("two", "2")):
        evidence.write(runs[:1], tmp_path / place, {"more.csv": more})
    table = "more.csv.xz"
    (tmp_path / "one" / table).write_bytes((tmp_path / "two" / table).read_bytes())
    gather(tmp_path / "two")
    with refuses(tmp_path / "one", table):
        gather(tmp_path / "one")


def test_evidence_of_version_0_1_is_read(runs, tmp_path):
    evidence.write(runs, tmp_path / "report", {})
    file = tmp_path / "report" / "evidence.json"
    file.write_text(json.dumps(json.loads(file.read_text())["runs"]))
    again, passed_over = gather(tmp_path / "report")
    assert (len(again), passed_over) == (len(runs), [])


def test_a_table_of_an_earlier_report_beside_the_files_is_not_read(runs, tmp_path):
    evidence.write(runs[:1], tmp_path / "report", {})
    stale = "run,metric,value\n0,none,1\n"
    (tmp_path / "report" / "evidence-layers.csv.xz").write_bytes(lzma.compress(stale.encode()))
    ((run,), passed_over) = gather(tmp_path / "report")
    assert passed_over == []
    assert "layers" not in run.tables


@pytest.mark.parametrize("folder", ["../a", "/a", "//a", "a/../../b"])
def test_evidence_names_no_folder_elsewhere(runs, folder, tmp_path):
    evidence.write(runs[:1], tmp_path / "report", {})
    file = tmp_path / "report" / "evidence.json"
    listed = json.loads(file.read_text())
    listed["runs"][0]["folder"] = folder
    file.write_text(json.dumps(listed))
    with refuses(folder):
        gather(tmp_path / "report")
