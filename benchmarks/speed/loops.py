"""A run by Avalanche's loop over the same run by the suite's trainer.

Both make the same numbers on `split-digits-multi-head`, of which a run trains and scores all tasks.
By Avalanche's loop it has no plugins, metrics or loggers, and cuts batches from the same tensor.
"""

from __future__ import annotations

from functools import partial

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Row, Setting, compare
from benchmarks.speed.timing import timed
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.continual.avalanche import AvalancheRun
from vcl_radial.tracks.continual.settings import Run
from vcl_radial.tracks.continual.training import ContinualRun

METHODS = ("naive", "radial-vcl")
LOOPS = {"trainer": ContinualRun, "Avalanche": AvalancheRun}
RATIO = "ratio to trainer"
PICTURES = (Ratios("loops", f"A run by Avalanche's loop, {RATIO}", RATIO),)


def measure(setting: Setting) -> list[Row]:
    """Seconds of a run by both loops, and their ratio, for each method."""
    rows: list[Row] = []
    for run in plan("split-digits-multi-head", METHODS, [0], setting.sizes.run):
        work = {
            name: timed(partial(_perform, kind, run, setting.device), setting.clock)
            for name, kind in LOOPS.items()
        }
        rows += compare(work, setting, "seconds", reference="trainer", size=run.method)
    return rows


def _perform(kind: type[ContinualRun], run: Run, device: str) -> None:
    """Train and score all tasks of a run."""
    for _ in kind(run.stream, run.recipe, run.seed, device=device).finish_tasks():
        pass
