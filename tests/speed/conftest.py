from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.speed import memory, setting
from benchmarks.speed.data import noise
from benchmarks.speed.setting import QUICK, Setting

TINY = replace(
    QUICK,
    repeats=1,
    unit_seconds=1e-4,
    train_images=40,
    test_images=4,
    recipe={"hidden": [8], "batch_size": 16, "eval_samples": 2},
    step_batches=(8,),
    convolution_batches=(4,),
    convolution_images=2,
    patients=30,
    photographs={"data.size": 8, "channels": 1},
    methods=("joint", "naive", "ewc-separate", "radial-vcl"),
    method_images=40,
    prediction_seeds=2,
    run={"epochs": 1},
    growth_images=32,
    widths=(25,),
    draws=(2,),
    tasks=(3,),
    task_images=8,
    group_sizes=(100, 400),
    regression_steps=2,
    lanes=(1, 2),
    lane_images=16,
)


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No data were downloaded before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    """A setting of a fraction of a second; `--quick` means it too."""
    monkeypatch.setattr(setting, "QUICK", TINY)
    images = noise(tmp_path, 10, TINY.train_images, TINY.test_images)
    return Setting(TINY, TINY.repeats, images, tmp_path)


@pytest.fixture
def probes_here(monkeypatch):
    """Memory is probed in this process: a fresh one takes seconds for its imports alone."""

    def measure_here(probes):
        return [memory.measure_probe(probe) for probe in probes]

    monkeypatch.setattr(memory, "in_fresh_processes", measure_here)
