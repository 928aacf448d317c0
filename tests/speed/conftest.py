from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.speed import setting
from benchmarks.speed.data import noise
from benchmarks.speed.setting import Setting

TINY = SimpleNamespace(
    repeats=2,
    peer_epochs=2,
    unit_seconds=1e-4,
    step_batches=(8, 16),
    convolution_batches=(4,),
    convolution_images=8,
    photographs={"data.patients": 30, "data.size": 8, "channels": 1},
    train_images=40,
    test_images=4,
    recipe={"hidden": [8], "batch_size": 16, "eval_samples": 2},
    methods=("joint", "naive", "ewc-separate", "radial-vcl"),
    method_images=40,
    methods_recipe={"hidden": [8], "batch_size": 16, "epochs": 2},
    run={"epochs": 1},
    run_recipes=("tuned recipe",),
    run_seeds=2,
    prediction_epochs=2,
    prediction_seeds=4,
    growth_images=32,
    widths=(25, 50),
    classes=(2, 3),
    draws=(1, 2),
    prediction_draws=(1, 2),
    tasks=(2, 3),
    task_images=8,
    group_sizes=(100, 400),
    lanes=(1, 2),
    regression_steps=5,
    lane_images=16,
    many_runs=(2, {"epochs": 1}),
)


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No data were downloaded before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    """A setting of a fraction of a second; `--quick` means it too."""
    monkeypatch.setattr(setting, "QUICK", TINY)
    images = noise(tmp_path / "images", 10, TINY.train_images, TINY.test_images)
    return Setting(TINY, TINY.repeats, images, tmp_path)
