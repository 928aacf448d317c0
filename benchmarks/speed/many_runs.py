"""Seeds of one run, carried out by one process and by two, each with and without lanes."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.speed.setting import Images, Row, Setting, row
from benchmarks.speed.timing import interleaved, ratios
from vcl_radial.errors import VclRadialError
from vcl_radial.runs.place import Place
from vcl_radial.runs.runner import available_cores, perform
from vcl_radial.tracks.continual.specification import Run

JOBS = 2
TIMES = "times one process"
"""The metric: one process's seconds over those of a way."""

_ONE = "one process"


def cost_of_runs(name: str, runs: Sequence[Run], images: Images, setting: Setting) -> list[Row]:
    """Wall-clock seconds of all runs, and one process's seconds over them.

    Args:
        name: of the network.
        runs: of one shape.
        images: the data.
        setting: repeats, and where the run folders go for as long as they are needed.
    """
    lanes = _lanes(len(runs))
    ways = {
        _ONE: (1, 1),
        f"--jobs {JOBS}": (JOBS, 1),
        f"--jobs {JOBS} --lanes {lanes}": (JOBS, lanes),
    }
    work = {
        way: partial(_carry_out, runs, images, setting, *numbers) for way, numbers in ways.items()
    }
    # Not the time of this process: the work is done by others.
    seconds = interleaved(work, setting.repeats, time.perf_counter, warm_up=0)
    times = {way: [1 / ratio for ratio in to_one] for way, to_one in ratios(seconds, _ONE).items()}
    return [
        row("lanes", f"{name}, {way}", "", metric, values)
        for metric, by_way in (("seconds", seconds), (TIMES, times))
        for way, values in by_way.items()
    ]


def note(setting: Setting) -> str:
    """What has to be said beside the rows."""
    runs = [
        ", ".join([f"{name}: {seeds} seeds", *(f"{key}={value}" for key, value in keys.items())])
        for name, (seeds, keys) in setting.sizes.many_runs.items()
    ]
    return (
        f"`--jobs {JOBS}`: wall-clock seconds of whole runs with evaluation and run folders, and "
        "one process's over them; the processes have to start in that time. "
        f"{available_cores()} core(s). {'; '.join(runs)}."
    )


def _lanes(runs: int) -> int:
    """As many lanes as give every job one batch of runs."""
    return -(-runs // JOBS)


def _carry_out(
    runs: Sequence[Run], images: Images, setting: Setting, jobs: int, lanes: int
) -> None:
    with TemporaryDirectory(dir=setting.scratch) as out, redirect_stdout(io.StringIO()):
        ends = perform(runs, Place(Path(out), images.folder), jobs, lanes)
    for end in ends:
        if end.fault is not None:
            raise VclRadialError(end.fault)
