"""What a report removes of an earlier one, and what it leaves alone."""

import json
import shutil
from pathlib import Path

import pytest
from tiny_runs import MULTI_HEAD, SINGLE_HEAD, finished, tiny_run

from vcl_radial.errors import UserError
from vcl_radial.reporting.write import write_report


@pytest.fixture
def report(tmp_path: Path):
    """The report of a run on five tasks; a second stream then gives it another name."""
    finished(tmp_path, tiny_run())
    write_report(tmp_path, tmp_path / "report")
    return tmp_path / "report"


def second_stream(out: Path) -> None:
    finished(out, tiny_run(**{"stream.tasks": 2}))


def folders(report: Path) -> set[str]:
    return {path.name for path in report.iterdir() if path.is_dir()}


BOTH = {f"{MULTI_HEAD}_tasks=2", f"{MULTI_HEAD}_tasks=5"}


@pytest.mark.parametrize("benchmark", [None, MULTI_HEAD])
def test_a_report_that_has_another_name_by_now_is_removed(tmp_path: Path, report, benchmark):
    assert folders(report) == {MULTI_HEAD}
    second_stream(tmp_path)
    write_report(tmp_path, report, benchmark)
    assert folders(report) == BOTH


def test_a_users_file_in_it_stays_and_so_does_one_that_was_edited(tmp_path: Path, report):
    (report / MULTI_HEAD / "notes.txt").write_text("mine")
    (report / MULTI_HEAD / "summary.md").write_text("mine too")
    second_stream(tmp_path)
    write_report(tmp_path, report)
    assert folders(report) == {MULTI_HEAD, *BOTH}
    left = {path.name: path.read_text() for path in (report / MULTI_HEAD).iterdir()}
    assert left == {"notes.txt": "mine", "summary.md": "mine too"}


@pytest.mark.parametrize(
    ("benchmark", "page"), [(None, "index.html"), (MULTI_HEAD, f"{MULTI_HEAD}.html")]
)
def test_a_page_that_no_report_wrote_stays(tmp_path: Path, report, benchmark, page):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / page).write_text("mine")
    with pytest.raises(UserError, match=f"{page}: "):
        write_report(tmp_path, folder, benchmark)
    assert [path.name for path in folder.iterdir()] == [page]
    assert (folder / page).read_text() == "mine"


def test_a_folder_without_a_manifest_is_left_alone(tmp_path: Path, report):
    (report / MULTI_HEAD / "manifest.json").unlink()
    before = set((report / MULTI_HEAD).iterdir())
    second_stream(tmp_path)
    write_report(tmp_path, report)
    assert set((report / MULTI_HEAD).iterdir()) == before


@pytest.mark.parametrize("content", ["", "[]", '{"files": 3}', "\0"])
def test_a_damaged_manifest_removes_nothing(tmp_path: Path, report, content):
    (report / MULTI_HEAD / "manifest.json").write_text(content)
    before = set((report / MULTI_HEAD).iterdir())
    second_stream(tmp_path)
    write_report(tmp_path, report)
    assert set((report / MULTI_HEAD).iterdir()) == before


def test_a_manifest_reaches_no_file_outside_its_folder(tmp_path: Path, report):
    path = report / MULTI_HEAD / "manifest.json"
    manifest = json.loads(path.read_text())
    content = (report / MULTI_HEAD / "summary.md").read_bytes()
    outside = tmp_path / "outside.md"
    outside.write_bytes(content)
    (report / MULTI_HEAD / "link.md").symlink_to(outside)
    checksum = manifest["files"]["summary.md"]
    manifest["files"] |= {"../../outside.md": checksum, str(outside): checksum, "link.md": checksum}
    path.write_text(json.dumps(manifest))
    second_stream(tmp_path)
    write_report(tmp_path, report)
    assert outside.read_bytes() == content
    assert (report / MULTI_HEAD / "link.md").is_symlink()


def test_reports_of_other_benchmarks_and_of_other_folders_stay(tmp_path: Path, report):
    finished(tmp_path, tiny_run(benchmark=SINGLE_HEAD))
    write_report(tmp_path, report)
    shutil.rmtree(tmp_path / SINGLE_HEAD)
    elsewhere = tmp_path / "elsewhere"
    second_stream(elsewhere)
    finished(elsewhere, tiny_run())
    write_report(elsewhere, report)
    assert folders(report) == {MULTI_HEAD, SINGLE_HEAD, *BOTH}
    write_report(tmp_path, report)
    assert SINGLE_HEAD in folders(report)


def test_the_picture_of_a_method_that_is_gone_is_removed(tmp_path: Path, report):
    finished(tmp_path, tiny_run("joint"))
    write_report(tmp_path, report)
    assert (report / MULTI_HEAD / "heatmap-joint.png").exists()
    (report / MULTI_HEAD / "heatmap-mine.png").touch()
    shutil.rmtree(tmp_path / MULTI_HEAD / "joint")
    write_report(tmp_path, report)
    assert {path.stem for path in (report / MULTI_HEAD).glob("heatmap*.png")} == {
        "heatmap-naive",
        "heatmap-mine",
    }


def test_the_runs_are_named_as_seen_from_the_reports(tmp_path: Path, report):
    manifest = json.loads((report / MULTI_HEAD / "manifest.json").read_text())
    assert (manifest["benchmark"], manifest["runs"]) == (MULTI_HEAD, "..")
    files = {path.name for path in (report / MULTI_HEAD).iterdir()}
    assert set(manifest["files"]) == files - {"manifest.json"}
