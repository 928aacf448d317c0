"""Read, check and carry out a sweep: what `vcl-radial sweep` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vcl_radial.config.command_lines import command_line
from vcl_radial.data.data_files import checked_folder
from vcl_radial.errors import bad_value
from vcl_radial.runs.command import check_command_options, check_device
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.devices import device_of
from vcl_radial.runs.executor import Executor, LocalExecutor
from vcl_radial.runs.folder import check_output
from vcl_radial.runs.lock import held
from vcl_radial.runs.processes import start_server
from vcl_radial.runs.runner import available_cores, default_lanes, with_threads
from vcl_radial.sweeps.driver import Driver
from vcl_radial.sweeps.folder import SweepFolder
from vcl_radial.sweeps.plans import Plan, read
from vcl_radial.sweeps.progress import Progress
from vcl_radial.sweeps.storage import opened
from vcl_radial.sweeps.study import Study


def sweep(
    name: str,
    *,
    trials: int | None = None,
    out: str | Path = "runs/sweeps",
    jobs: int | None = None,
    lanes: int | None = None,
    device: str = "auto",
    data_dir: str | Path | None = None,
    storage: str | None = None,
    executor: Executor | None = None,
) -> list[Study]:
    """Search for good settings of methods, scored on validation data.

    The same call resumes after an interruption. `report` writes the best recipes and all trials.

    Args:
        name: name of a shipped sweep, or the path of a .toml file.
        trials: number of trials per method; None for the number in the file.
        out: the folder of the results, with a folder for each sweep.
        jobs: runs at a time; None for one per core, but one on a GPU.
        lanes: runs of one shape that train together; None for the track's number.
        device: "auto", "cpu" or "cuda".
        data_dir: the folder of the data; None for $VCL_RADIAL_DATA.
        storage: the URL of a database to which Optuna writes the trials.
        executor: an executor; None for worker processes on this machine.

    Returns:
        A study per method with its `trials`, their `results` by number, and the number of the
        `best()` one.

    Raises:
        UserError: a name, a key, a value or the data are wrong; finished runs stay.
    """
    plans = read(name, trials)
    track, out, data = plans[0].track, Path(out), checked_folder(data_dir)
    check_device(track, plans[0].base.benchmark, device)
    check_output(out)
    command = command_line("sweep", name, trials=trials, lanes=lanes)
    context = RunContext(out, data, device_of(device, track, executor), command=command)
    return perform_sweep(plans, context, jobs=jobs, lanes=lanes, storage=storage, executor=executor)


def perform_sweep(
    plans: Sequence[Plan],
    context: RunContext,
    *,
    jobs: int | None = None,
    lanes: int | None = None,
    storage: str | None = None,
    executor: Executor | None = None,
) -> list[Study]:
    """Carry out a sweep in `<context.out>/<name>`; it resumes if the folder exists.

    Args:
        plans: the plans of the sweep.
        context: device and folders of the runs.
        jobs: runs (or batches of lanes) at a time; None for one per core, but one on a GPU.
        lanes: runs of one shape that train together; None for the track's number, but 1 with
            pruning.
        storage: the URL of a database to which Optuna writes the trials; or None.
        executor: an executor; None for worker processes on this machine.

    Raises:
        UserError: a fault that the user can fix; finished runs stay.
    """
    track, prunes = plans[0].track, plans[0].sweep.pruning is not None
    on_gpu = context.device == "cuda"
    lanes = lanes or (1 if prunes else default_lanes(track, context.device))
    jobs = jobs or (1 if on_gpu else available_cores())
    check_command_options(track, plans[0].base.benchmark, lanes=lanes)
    if lanes > 1 and prunes:
        raise bad_value(
            "lanes", lanes, "is impossible: a sweep with [pruning] stops runs one by one"
        )
    plans = [plan.at(context.data_dir) for plan in plans]
    folder = SweepFolder(context.out / plans[0].name)
    with held(folder.path):
        # Checked once before all runs, so that a fault is reported once. Making a method checks its
        # options.
        examples = [(plan, parameters) for plan in plans for parameters in plan.space.examples]
        runs = [plan.run(parameters, plan.base.seed) for plan, parameters in examples]
        track.check_data(runs, context.data_dir)
        owner = folder.claim(plans)
        with opened(storage) as database:
            studies = [Study(plan, database, owner) for plan in plans]
            how = f"{jobs} at a time" if executor is None else "on a cluster"
            with Progress(studies, str(folder.path), how) as progress:
                driver = Driver(studies, folder, lanes, progress)
                runs_at = replace(with_threads(context, track, jobs), out=folder.runs)
                workers = jobs if jobs > 1 and executor is None else 0
                if workers:
                    start_server(context.device, *track.worker_modules)
                executor = executor or LocalExecutor(workers)
                executor.start(track, runs_at, driver.on_step)
                driver.carry_out(executor)
    return studies
