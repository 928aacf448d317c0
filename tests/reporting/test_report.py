import errno
import html
import os
from pathlib import Path

import pytest
from tiny_runs import ENVIRONMENT, MULTI_HEAD, SINGLE_HEAD, finished, tiny_run

from vcl_radial.cli import main
from vcl_radial.cli.arguments import FAILED
from vcl_radial.errors import DataError, UserError
from vcl_radial.reporting import figures
from vcl_radial.reporting.labels import file_name
from vcl_radial.reporting.write import write_report
from vcl_radial.runs.folder import RunFolder
from vcl_radial.tracks.continual.track import Continual


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.slow
@pytest.mark.drawn
def test_the_same_runs_give_the_same_bytes_of_tables_and_pictures(tmp_path: Path, capsys):
    for method in ("naive", "joint"):
        finished(tmp_path / "runs", tiny_run(method))
    for name in ("one", "two"):
        write_report(tmp_path / "runs", tmp_path / name)
    one = content(tmp_path / "one")
    assert one == content(tmp_path / "two")
    stems = ("final-model", "heatmap-joint", "heatmap-naive", "heatmaps", "accuracy-over-tasks")
    pictures = {f"{MULTI_HEAD}/{stem}{suffix}" for stem in stems for suffix in (".png", ".svg")}
    names = ("results", "summary", "differences", "matrices", "runs", "origin")
    tables = {f"{MULTI_HEAD}/{name}.csv" for name in names}
    tables |= {f"{MULTI_HEAD}/{name}.md" for name in ("summary", "details")}
    assert set(one) == pictures | tables | {f"{MULTI_HEAD}/manifest.json", "index.html"}
    assert all(one[name].startswith(b"\x89PNG") for name in pictures if name.endswith(".png"))
    printed = capsys.readouterr().out
    heatmaps = (name for name in pictures if "png" in name and "accuracy-over" not in name)
    assert all(str(tmp_path / "one" / name) in printed for name in heatmaps)
    assert str(tmp_path / "one" / "index.html") in printed


def test_the_page_says_what_stands_behind_the_numbers(tmp_path: Path):
    for seed in (0, 1):
        finished(tmp_path, tiny_run(seed=seed))
    write_report(tmp_path, tmp_path / "report")
    page = (tmp_path / "report" / MULTI_HEAD / "summary.md").read_text()
    assert page.startswith(f"# {MULTI_HEAD}\n\n## Leaderboard\n\n| method | seeds |")
    assert "| naive | 2 |" in page
    assert "- evaluated on: test data\n- seeds: 0, 1\n- commit: 0123456789ab\n" in page
    assert "- device: cpu (a processor)" in page
    assert "- finished: 2026-01-31;" in page


def test_a_report_goes_on_past_runs_that_cannot_be_used_and_names_them(tmp_path: Path, capsys):
    finished(tmp_path, tiny_run())
    half = RunFolder(tmp_path, tiny_run(seed=1))
    half.start()
    odd = finished(tmp_path, tiny_run(seed=2), environment=ENVIRONMENT | {"tasks": []})
    foreign = tmp_path / "elsewhere" / "seed-<b>s</b>"
    foreign.mkdir(parents=True)
    write_report(tmp_path, tmp_path / "report")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("passed over: ") for line in lines)
    assert f"passed over: {half.path}: not finished; the command that started it" in lines[1]
    assert f"passed over: {odd.path}: is not a run folder" in lines[2]
    assert "| naive | 1 |" in (tmp_path / "report" / MULTI_HEAD / "summary.md").read_text()
    page = (tmp_path / "report" / "index.html").read_text()
    assert "3 folders below this one are not on this page" in page
    assert f"{half.path}: not finished" in page
    assert "seed-&lt;b&gt;s" in page


def test_methods_are_shown_first_that_are_named_and_there(tmp_path: Path, capsys):
    for method in ("joint", "naive"):
        finished(tmp_path, tiny_run(method))
    assert main(["report", str(tmp_path), "--first", "naive", "nave"]) == FAILED
    assert f"--first nave: {tmp_path} has runs of joint, naive" in capsys.readouterr().err
    assert not (tmp_path / "report").exists()
    assert main(["report", str(tmp_path), "--first", "naive"]) == 0
    page = (tmp_path / "report" / MULTI_HEAD / "summary.md").read_text()
    assert page.index("| naive |") < page.index("| joint |")


def test_a_benchmark_whose_runs_do_not_fit_together_is_named_and_the_others_shown(
    tmp_path: Path, capsys
):
    finished(tmp_path, tiny_run())
    # Two methods of one name, the name of the second being what the first is shown under.
    for epochs in (1, 2):
        finished(tmp_path, tiny_run("joint", benchmark=SINGLE_HEAD, epochs=epochs))
    twin = tiny_run("joint", benchmark=SINGLE_HEAD, epochs=2)
    finished(tmp_path, twin.model_copy(update={"method": "joint (epochs=2)"}))
    write_report(tmp_path, tmp_path / "report")
    err = capsys.readouterr().err
    assert f"passed over: {SINGLE_HEAD}: " in err
    assert "occurs twice" in err
    page = (tmp_path / "report" / "index.html").read_text()
    assert f"<title>{MULTI_HEAD}</title>" in page
    assert "occurs twice" in page


def test_a_report_of_which_nothing_can_be_shown_is_one_line(tmp_path: Path, monkeypatch):
    def damaged(*_args, **_settings):
        raise DataError("a fault")

    finished(tmp_path, tiny_run())
    monkeypatch.setattr(Continual, "sections", damaged)
    with pytest.raises(UserError, match=f"{tmp_path.name}: "):
        write_report(tmp_path, tmp_path / "report")


def test_settings_shown_apart_are_told_of_on_stderr_and_on_the_page(tmp_path: Path, capsys):
    for epochs in (1, 2):
        finished(tmp_path, tiny_run(epochs=epochs))
    write_report(tmp_path, tmp_path / "report")
    words = "the runs of naive have 2 different settings"
    assert f"{MULTI_HEAD}: {words}" in capsys.readouterr().err
    page = (tmp_path / "report" / "index.html").read_text()
    assert words in page
    assert "naive (epochs=2)" in page


def test_the_page_holds_the_specs_the_facts_and_the_commands(tmp_path: Path):
    ran = "vcl-radial run split-digits-multi-head --seeds 2 --set hidden='[8]'"
    environment = ENVIRONMENT | {"parameters": 1234567, "command": ran}
    for seed in (0, 1):
        finished(tmp_path, tiny_run(seed=seed), environment=environment)
    write_report(tmp_path, tmp_path / "report", command="vcl-radial report <here>")
    page = html.unescape((tmp_path / "report" / "index.html").read_text())
    for words in (
        "epochs = 1",
        "hidden = [\n    8,\n]",
        "0123456789ab",
        "cpu (a processor)",
        "2026-01-31",
        ran,
        "vcl-radial report <here>",
        "1,234,567",
    ):
        assert words in page
    assert "\nseed = " not in page  # the spec is that of all seeds


@pytest.mark.parametrize(
    "name",
    ["../../outside", "..", "", "/etc", "…" * 200, "a/b", "日本語" * 40, "con\x00trol", "--to"],
)
def test_files_of_strange_names_stay_in_the_report(name):
    stem = file_name(name)
    assert stem
    assert Path(stem).name == stem
    assert stem not in (".", "..")
    assert len(f"heatmap-{stem}-99.png".encode()) < 200
    assert stem.isprintable()


def test_a_report_of_one_benchmark_does_not_look_at_others(tmp_path: Path, capsys):
    finished(tmp_path, tiny_run())
    RunFolder(tmp_path, tiny_run(benchmark="split-digits-single-head")).start()
    write_report(tmp_path, tmp_path / "report", benchmark=MULTI_HEAD)
    assert capsys.readouterr().err == ""
    names = {path.name for path in (tmp_path / "report").iterdir()}
    assert names == {MULTI_HEAD, f"{MULTI_HEAD}.html"}


@pytest.mark.slow
def test_methods_with_several_settings_have_pictures_of_their_own(tmp_path: Path):
    for options in ("a b", "a/b", "a*b"):
        finished(tmp_path, tiny_run(hidden=[8, 8], **{"options.x": options}))
    finished(tmp_path, tiny_run(hidden=[8], **{"options.x": "a b"}))
    write_report(tmp_path, tmp_path / "report")
    stems = {path.stem for path in (tmp_path / "report" / MULTI_HEAD).glob("heatmap-*.png")}
    same = "heatmap-naive_hidden=8-8_options.x=a_b"
    assert stems == {same, f"{same}-2", f"{same}-3", "heatmap-naive_hidden=8_options.x=a_b"}


def test_other_task_sequences_get_a_report_of_their_own(tmp_path: Path):
    for tasks in (5, 2):
        finished(tmp_path, tiny_run(**{"stream.tasks": tasks}))
    write_report(tmp_path, tmp_path / "report")
    names = {path.name for path in (tmp_path / "report").iterdir() if path.is_dir()}
    assert names == {f"{MULTI_HEAD}_tasks=5", f"{MULTI_HEAD}_tasks=2"}


def test_a_disk_that_is_full_when_pictures_are_written_is_one_line(tmp_path: Path, monkeypatch):
    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    finished(tmp_path, tiny_run())
    monkeypatch.setattr(figures, "save", full)
    with pytest.raises(UserError, match="final-model: "):
        write_report(tmp_path, tmp_path / "report")
