"""Plan, check and carry out the runs of a command: what `run` does before its report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcl_radial.config.command_lines import command_line, set_arguments
from vcl_radial.errors import UserError, bad_value
from vcl_radial.runs import catalogue, planning
from vcl_radial.runs.attempt import RunOutcome
from vcl_radial.runs.context import Logger, RunContext
from vcl_radial.runs.devices import device_of, may_have_cuda
from vcl_radial.runs.executor import Executor
from vcl_radial.runs.peers import under_torchrun
from vcl_radial.runs.processes import start_server
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import AnyTrack

SCRIPT = "__main__"
"""The module of a script or a notebook, which no other process can import."""


@dataclass(frozen=True)
class Performed:
    """The runs of a command after it has tried all of them.

    Attributes:
        runs: all runs of the command, methods x seeds, in order.
        context: the folder and the device of the runs.
        ends: outcomes of the runs that were not finished before.
        is_first: whether this process reports; under `torchrun` only the first process does.
    """

    runs: Sequence[RunSpec]
    context: RunContext
    ends: Sequence[RunOutcome]
    is_first: bool = True

    @property
    def failures(self) -> list[RunOutcome]:
        """Outcomes of the runs that have no result."""
        return [end for end in self.ends if end.fault is not None]


def perform_command(
    benchmark: str,
    methods: Sequence[planning.NamedMethod] = (),
    seeds: Sequence[int] = range(1),
    settings: Mapping[str, Any] | None = None,
    *,
    out: Path,
    tuned: bool = False,
    jobs: int | None = None,
    lanes: int | None = None,
    device: str = "auto",
    data_dir: Path | None = None,
    log: Mapping[str, Logger] | None = None,
    executor: Executor | None = None,
    model: bool = True,
    buffer: bool = True,
    meanwhile: Callable[[], None] = lambda: None,
) -> Performed:
    """Plan the runs of a command, check them, and carry out those that are not finished yet.

    Args:
        benchmark: a name or a path.
        methods: methods as `planning.plan` takes them.
        seeds: seeds; each method has one run per seed.
        settings: keys and values that replace values of the TOMLs.
        out: the folder of the results.
        tuned: whether methods use the settings that a search selected for this benchmark.
        jobs: worker processes; None for one per core, but one on a GPU.
        lanes: runs of one shape that train together; None for the track's number.
        device: "auto", "cpu" or "cuda".
        data_dir: the folder of the data; None for the usual places.
        log: loggers (`vcl_radial.integrations.loggers`) by the names of their folders.
        executor: an executor; None for worker processes on this machine.
        model: whether finished runs keep their models.
        buffer: whether these hold the training points that a method stores.
        meanwhile: work that this process does while workers import PyTorch.

    Raises:
        UserError: a name, a key, a value or the data are wrong; raised before any run starts.
    """
    track = catalogue.track_of(catalogue.load("benchmark", benchmark))
    in_workers = False
    alone = "torch" in sys.modules or track.uses_all_cores or executor is not None
    # Where there are results, all runs may be finished: then no worker has to import PyTorch.
    alone |= (out / catalogue.load("benchmark", benchmark).name).exists()
    if not alone and (device == "cpu" or not may_have_cuda()):
        # The server imports while this process checks the arguments, and ends with it.
        in_workers = start_server("cpu", *track.worker_modules)
    runs = planning.plan(benchmark, methods, seeds, settings, tuned)
    check_command_options(track, benchmark, jobs=jobs, lanes=lanes, device=device, log=bool(log))
    context = RunContext(
        out,
        data_dir,
        device_of(device, track, executor),
        log=log or {},
        command=_command(benchmark, methods, seeds, settings or {}, lanes=lanes, tuned=tuned),
        keep_model=model,
        keep_points=buffer,
    )
    runs = [run.on_data(data_dir) for run in runs]

    from vcl_radial.runs.runner import perform

    if under_torchrun():
        from vcl_radial.runs.together import perform_together

        ends = perform_together(runs, context)
        return Performed(runs, context, ends or [], is_first=ends is not None)
    ends = perform(
        runs,
        context,
        _jobs_of(methods, jobs),
        1 if log else lanes,
        in_workers=in_workers,
        executor=executor,
        meanwhile=meanwhile,
    )
    return Performed(runs, context, ends)


def check_command_options(
    track: AnyTrack,
    benchmark: str,
    *,
    jobs: int | None = None,
    lanes: int | None = None,
    device: str = "auto",
    log: bool = False,
) -> None:
    """Check that options fit together, and that the track supports them.

    The arguments have the same meaning as in `perform_command`.

    Raises:
        UserError: two options contradict each other, or the track does not support one.
    """
    if under_torchrun() and not track.has_peers:
        raise UserError(
            f"a run of {benchmark} uses one process; start it without torchrun", at="torchrun"
        )
    if under_torchrun() and (jobs or 1) > 1:
        raise bad_value("jobs", jobs, "is for a single process: leave it out under torchrun")
    if log and (lanes or 1) > 1:
        raise bad_value("lanes", lanes, "trains runs as one program, which logs nothing: set 1")
    if (lanes or 1) > 1 and not track.has_lanes:
        raise bad_value("lanes", lanes, f"is impossible: runs of {benchmark} train one by one")
    check_device(track, benchmark, device)


def check_device(track: AnyTrack, benchmark: str, device: str) -> None:
    """Check that a track can compute on a device.

    Raises:
        UserError: the track does not support the device.
    """
    if device not in ("auto", *track.devices):
        raise bad_value("device", device, f"is not for runs of {benchmark}: they compute on a CPU")


def _jobs_of(methods: Sequence[planning.NamedMethod], jobs: int | None) -> int | None:
    """The number of worker processes: 1 where this script defines a method.

    Raises:
        UserError: several processes were requested; they cannot import the script.
    """
    local = [m.__name__ for m in methods if not isinstance(m, str) and m.__module__ == SCRIPT]
    if not local:
        return jobs
    if (jobs or 1) > 1:
        raise bad_value(
            "jobs",
            jobs,
            f"is impossible: worker processes cannot import {local[0]}, which this script or "
            "notebook defines: leave jobs out, or put the class into a file and import it",
        )
    return 1


def _command(
    benchmark: str,
    methods: Sequence[planning.NamedMethod],
    seeds: Sequence[int],
    settings: Mapping[str, Any],
    **options: Any,
) -> str | None:
    """The command that makes the same runs; None where a class or gaps in the seeds prevent it."""
    names = [method for method in methods if isinstance(method, str)]
    first, last = seeds[0], seeds[-1]
    if len(names) < len(methods) or list(seeds) != list(range(first, last + 1)):
        return None
    return command_line(
        "run",
        benchmark,
        method=names,
        seeds=f"{first}-{last}" if first else last + 1 if last else None,
        **options,
        set=set_arguments(settings),
    )
