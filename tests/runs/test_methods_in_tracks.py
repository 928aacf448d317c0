"""Every method trains in every track that `reports/methods` says it runs in."""

from pathlib import Path

import pytest
from small_data import small_mushrooms

import vcl_radial as vr
from reports.methods.table import BENCHMARKS, methods_by_track

TINY = {
    "continual": {"epochs": 1, "hidden": [8], "eval_samples": 2, "stream.first_tasks": 2},
    "retinopathy": {
        "epochs": 1,
        "channels": 4,
        "batch_size": 8,
        "eval_samples": 2,
        "data.patients": 40,
        "data.validation": 0.2,
        "data.size": 16,
    },
    "regression": {"steps": 10, "eval_samples": 4},
    "bandits": {"data.rounds": 40, "steps": 10, "learning_rate": 1e-3},
}


@pytest.mark.slow
@pytest.mark.usefixtures("no_report")
@pytest.mark.parametrize("track", TINY)
def test_every_method_trains_in_every_track_that_it_is_said_to(track, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_mushrooms(Path("data/bandits"))
    data_dir = "data" if track == "bandits" else None
    names = [name for name, gaps in methods_by_track().items() if not gaps[track]]
    settings = {"settings": TINY[track], "data_dir": data_dir, "out": "runs"}
    results = vr.run(BENCHMARKS[track], names, seeds=1, jobs=1, device="cpu", **settings)
    assert results.failures.empty, results.failures["reason"].tolist()
    assert set(results.table["method"]) == set(names)
