"""Every method trains in every track that `reports/methods` says it runs in."""

from pathlib import Path

import pytest
from small_data import small_mushrooms

import vcl_radial as vr
from reports.methods.table import methods_by_track
from vcl_radial.conformance.in_tracks import SMALL_RUNS


@pytest.mark.slow
@pytest.mark.usefixtures("no_report")
@pytest.mark.parametrize("track", SMALL_RUNS)
def test_every_method_trains_in_every_track_that_it_is_said_to(track, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_mushrooms(Path("data/bandits"))
    data_dir = "data" if track == "bandits" else None
    names = [name for name, gaps in methods_by_track().items() if not gaps[track]]
    small = SMALL_RUNS[track]
    settings = {"settings": small.settings, "data_dir": data_dir, "out": "runs"}
    results = vr.run(small.benchmark, names, seeds=1, jobs=1, device="cpu", **settings)
    assert results.failures.empty, results.failures["reason"].tolist()
    assert set(results.table["method"]) == set(names)
