import errno
import os
from pathlib import Path

import pytest
from tiny_runs import MULTI_HEAD, finished, tiny_run

from vcl_radial import figures
from vcl_radial.errors import UserError
from vcl_radial.experiments.report import write_report
from vcl_radial.experiments.run_folder import RunFolder


@pytest.fixture
def no_pictures(monkeypatch):
    """Drawing takes most of a report's time; the names of the pictures are enough here."""

    def save(_figure, stem: Path) -> list[Path]:
        paths = [stem.with_name(stem.name + suffix) for suffix in (".png", ".svg")]
        for path in paths:
            path.touch()
        return paths

    monkeypatch.setattr(figures, "save", save)


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_same_runs_give_the_same_bytes_of_tables_and_pictures(tmp_path: Path, capsys):
    for method in ("naive", "joint"):
        finished(tmp_path / "runs", tiny_run(method))
    for name in ("one", "two"):
        write_report(tmp_path / "runs", tmp_path / name)
    one = content(tmp_path / "one")
    assert one == content(tmp_path / "two")
    stems = ("final-model", "heatmap-joint", "heatmap-naive", "heatmaps")
    pictures = {f"{MULTI_HEAD}/{stem}{suffix}" for stem in stems for suffix in (".png", ".svg")}
    tables = {f"{MULTI_HEAD}/{name}" for name in ("results.csv", "summary.csv", "summary.md")}
    assert set(one) == pictures | tables
    assert all(one[name].startswith(b"\x89PNG") for name in pictures if name.endswith(".png"))
    printed = capsys.readouterr().out
    assert all(str(tmp_path / "one" / name) in printed for name in pictures if "png" in name)


def test_the_page_says_what_stands_behind_the_numbers(tmp_path: Path, no_pictures):
    for seed in (0, 1):
        finished(tmp_path, tiny_run(seed=seed))
    write_report(tmp_path, tmp_path / "report")
    page = (tmp_path / "report" / MULTI_HEAD / "summary.md").read_text()
    assert page.startswith(f"# {MULTI_HEAD}\n\n| method | seeds |")
    assert "| naive | 2 |" in page
    assert "Evaluated on: test data." in page
    assert "- seeds: 0, 1\n- commit: 0123456789ab\n- device: cpu (a processor)" in page
    assert "- finished: 2026-01-31;" in page


def test_a_report_goes_on_past_runs_that_cannot_be_used_and_names_them(
    tmp_path: Path, no_pictures, capsys
):
    finished(tmp_path, tiny_run())
    half = RunFolder(tmp_path, tiny_run(seed=1))
    half.start()
    write_report(tmp_path, tmp_path / "report")
    assert capsys.readouterr().err == f"passed over: {half.path}: not finished\n"
    assert "| naive | 1 |" in (tmp_path / "report" / MULTI_HEAD / "summary.md").read_text()


def test_a_report_of_one_benchmark_does_not_look_at_others(tmp_path: Path, no_pictures, capsys):
    finished(tmp_path, tiny_run())
    RunFolder(tmp_path, tiny_run(benchmark="split-digits-single-head")).start()
    write_report(tmp_path, tmp_path / "report", benchmark=MULTI_HEAD)
    assert capsys.readouterr().err == ""
    assert [path.name for path in (tmp_path / "report").iterdir()] == [MULTI_HEAD]


def test_methods_with_several_settings_have_pictures_of_their_own(tmp_path: Path, no_pictures):
    for options in ("a b", "a/b", "a*b"):
        finished(tmp_path, tiny_run(hidden=[8, 8], **{"options.x": options}))
    finished(tmp_path, tiny_run(hidden=[8], **{"options.x": "a b"}))
    write_report(tmp_path, tmp_path / "report")
    stems = {path.stem for path in (tmp_path / "report" / MULTI_HEAD).glob("heatmap-*.png")}
    same = "heatmap-naive_hidden=_8-8_options.x=a_b"
    assert stems == {same, f"{same}-2", f"{same}-3", "heatmap-naive_hidden=_8_options.x=a_b"}


def test_other_task_sequences_get_a_report_of_their_own(tmp_path: Path, no_pictures):
    for tasks in (5, 2):
        finished(tmp_path, tiny_run(**{"stream.tasks": tasks}))
    write_report(tmp_path, tmp_path / "report")
    names = {path.name for path in (tmp_path / "report").iterdir()}
    assert names == {f"{MULTI_HEAD}_stream.tasks=5", f"{MULTI_HEAD}_stream.tasks=2"}


def test_a_disk_that_is_full_when_pictures_are_written_is_one_line(tmp_path: Path, monkeypatch):
    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    finished(tmp_path, tiny_run())
    monkeypatch.setattr(figures, "save", full)
    with pytest.raises(UserError, match="final-model: cannot be written: No space left"):
        write_report(tmp_path, tmp_path / "report")
