"""A sweep's folder of somebody else is read without importing what it names."""

import hashlib
from pathlib import Path

import pytest
import tomli_w
from tiny_sweeps import plans_of

from vcl_radial.errors import UserError
from vcl_radial.sweeps.folder import SweepFolder, read_described
from vcl_radial.sweeps.results import read_results


def stamped(path: Path, table: dict) -> None:
    text = tomli_w.dumps(table)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"# sha256 {hashlib.sha256(text.encode()).hexdigest()}\n{text}")


@pytest.mark.parametrize("seed", [{}, {"seed": 0}])
def test_a_track_that_a_sweep_s_folder_names_is_not_imported(tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strange.py").write_text("open('RAN', 'w')")
    plans = plans_of()
    folder = SweepFolder(tmp_path / "tiny")
    folder.claim(plans)
    table = read_described(folder.path / "sweep.toml")
    table["start"] = [{**start, "track": "strange:T", **seed} for start in table["start"]]
    stamped(folder.path / "sweep.toml", table)
    with pytest.raises(UserError, match=r"sweep\.toml: names code, track = 'strange:T'.*--trust"):
        read_results(folder.path)
    if not seed:
        with pytest.raises(UserError, match=r"another track of naive"):
            folder.claim(plans)
    assert not (tmp_path / "RAN").exists()


@pytest.mark.parametrize("key", ["start", "search", "objective"])
def test_a_whole_file_without_a_key_is_damaged(tmp_path, key):
    folder = SweepFolder(tmp_path / "tiny")
    folder.claim(plans_of())
    table = read_described(folder.path / "sweep.toml")
    stamped(folder.path / "sweep.toml", {k: v for k, v in table.items() if k != key})
    with pytest.raises(UserError, match="damaged"):
        read_results(folder.path)
