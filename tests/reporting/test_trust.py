"""Results of somebody else are read without importing what their files name."""

import json
import sys
from pathlib import Path

import pytest
import tomli_w
from tiny_runs import finished, tiny_run

from reports.seeds.pruning.track import LeNetPruning, MLPPruning
from vcl_radial.cli import main
from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.reporting import evidence
from vcl_radial.reporting.gather import gather
from vcl_radial.runs import tracks
from vcl_radial.runs.catalogue import load
from vcl_radial.runs.folder import mark_finished
from vcl_radial.tracks.continual.track import Continual

EVIL = "from pathlib import Path\nPath(__file__).with_name('RAN').touch()\n"


@pytest.fixture
def strange(tmp_path: Path, monkeypatch):
    """A folder of runs whose specs name other tracks, beside a module that leaves a trace."""
    monkeypatch.chdir(tmp_path)
    tracks.find.cache_clear()
    yield lambda name: _rename_track(finished(tmp_path / "runs", tiny_run()).path, name)
    tracks.find.cache_clear()


def _rename_track(path: Path, track: object) -> Path:
    spec = {"track": track, **tiny_run().settings()}
    (path / "spec.toml").write_text(tomli_w.dumps(spec))
    mark_finished(path, ["spec.toml", "environment.json", "accuracy.csv", "metrics.json"])
    return path


NAMES = ["strange:T", "strange.py:T", "runs/strange.py:T", "runs.strange:T"]


@pytest.mark.parametrize("name", NAMES)
def test_a_track_that_a_spec_names_is_not_imported(strange, name, capsys):
    path = strange(name)
    for folder in (Path(), Path("runs")):
        (folder / "strange.py").write_text(EVIL)
    assert main(["report", "runs"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path.relative_to(Path.cwd())}/spec.toml" in line
    assert repr(name) in line
    assert "--trust" in line
    assert not list(Path().rglob("RAN"))
    assert not [module for module in sys.modules if "strange" in module]


@pytest.mark.parametrize("name", ["os:system", "vcl_radial.runs.preload:os", "json:loads"])
def test_not_even_a_module_that_is_there_is_looked_into(strange, name):
    strange(name)
    with pytest.raises(UserError, match="--trust"):
        gather(Path("runs"))


@pytest.mark.parametrize("name", ["nowhere", "../x", "", 3, ["continual"], {"a": "b:c"}])
def test_what_is_no_name_of_a_track_is_one_line(strange, name):
    strange(name)
    with pytest.raises(UserError, match="is no track"):
        gather(Path("runs"))


def test_with_consent_the_track_is_imported(strange):
    strange("trusted:Mine")
    Path("trusted.py").write_text(
        "from vcl_radial.tracks.continual.track import Continual\nclass Mine(Continual): ...\n"
    )
    with outside.consent(granted=True):
        (run,), _ = gather(Path("runs"))
    assert type(run.track).__name__ == "Mine"
    assert isinstance(run.track, Continual)


def test_tracks_of_the_prunings_need_consent_as_every_named_class():
    for track in (LeNetPruning, MLPPruning):
        tracks.find.cache_clear()
        with outside.named_by(Path("spec.toml")):
            with pytest.raises(UserError, match="--trust"):
                tracks.find(track.spec.TRACK)
            with outside.consent(granted=True):
                assert type(tracks.find(track.spec.TRACK)) is track
    tracks.find.cache_clear()


def test_evidence_names_no_module_and_no_folder_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "strange.py").write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "runs", tiny_run())
    runs, _ = gather(tmp_path / "runs")
    place = tmp_path / "page"
    place.mkdir()
    evidence.write(runs, place, {})
    whole = json.loads((place / evidence.FILE).read_text())
    for key, value in (("folder", "../x"), ("folder", "/etc"), ("spec", {"track": "strange:T"})):
        changed = [
            {**run, key: {**run[key], **value} if key == "spec" else value} for run in whole["runs"]
        ]
        (place / evidence.FILE).write_text(json.dumps({**whole, "runs": changed}))
        with pytest.raises(UserError, match=r"--trust|elsewhere"):
            gather(place)
    assert not (tmp_path / "RAN").exists()


def test_the_record_of_a_run_is_no_benchmark(strange):
    path = strange("strange:T")
    with pytest.raises(UserError, match="is a record of results"):
        load("benchmark", str(path / "spec.toml"))
