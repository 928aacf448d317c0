"""The Python function `run`: run methods on a benchmark and return their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcl_radial.data.data_files import checked_folder
from vcl_radial.errors import UserError
from vcl_radial.integrations.loggers import loggers_of
from vcl_radial.reporting.gather import read_runs
from vcl_radial.reporting.results import Results
from vcl_radial.runs.command import perform_command
from vcl_radial.runs.folder import RunFolder
from vcl_radial.system.seeds import isolated_rng

if TYPE_CHECKING:
    from vcl_radial.runs.planning import NamedMethod


def run(
    benchmark: str,
    methods: NamedMethod | Sequence[NamedMethod] = (),
    *,
    seeds: int | Sequence[int] = 1,
    settings: Mapping[str, Any] | None = None,
    tuned: bool = False,
    out: str | Path = "runs",
    jobs: int | None = None,
    lanes: int | None = None,
    device: str = "auto",
    data_dir: str | Path | None = None,
    log: Sequence[str] = (),
    model: bool = True,
    buffer: bool = True,
) -> Results:
    """Run methods on a benchmark, one run per method and seed.

    Runs are stored in `out`, as by `vcl-radial run`. The same call resumes after an interruption
    and repeats no finished run. A run that fails or diverges is listed in `failures` of the
    results; the other runs continue. `report(out)` writes the tables and figures as files.

    Args:
        benchmark: a name of `list_benchmarks`, or the path of a .toml file.
        methods: names of `list_methods`, paths of .toml files, or subclasses of `Method`; by
            default the benchmark's methods. A class of a script or notebook runs in this process.
        seeds: the number of seeds, from 0, or the seeds themselves.
        settings: keys of the recipe (`{"epochs": 40}`), of the method (`"options.strength"`) or of
            the data (`"stream.tasks"`, `"data.size"`).
        tuned: whether each method uses its tuned settings for this benchmark, from a search or a
            paper.
        out: the folder of the runs.
        jobs: runs at a time; None for one per core, but one on a GPU.
        lanes: runs of one shape that train together; None for the track's number.
        device: "auto", "cpu" or "cuda".
        data_dir: the folder of the data; None for $VCL_RADIAL_DATA, else they are downloaded once.
        log: "tensorboard" or "wandb", to write the curves of each run into its folder.
        model: whether each finished run keeps its model, for `load`.
        buffer: whether that model holds the training points that the method stores (replay,
            coresets); without them it predicts, but learns no further task.

    Raises:
        UserError: a name, a key, a value or the data are wrong; raised before any run starts.
    """
    several = [methods] if isinstance(methods, (str, type)) else list(methods)
    with isolated_rng():
        done = perform_command(
            benchmark,
            several,
            _seeds(seeds),
            settings,
            out=Path(out),
            tuned=tuned,
            jobs=jobs,
            lanes=lanes,
            device=device,
            data_dir=checked_folder(data_dir),
            log=loggers_of(log),
            model=model,
            buffer=buffer,
        )
    folders = [RunFolder(done.context.out, spec) for spec in done.runs]
    finished = read_runs([folder.path for folder in folders if folder.finished()])
    failures = [
        (end.run.benchmark, end.run.method, end.run.seed, end.status, end.fault or "")
        for end in done.failures
    ]
    return Results(finished, failures, done.context.data_dir)


def _seeds(seeds: int | Sequence[int]) -> Sequence[int]:
    """The list of seeds.

    Raises:
        UserError: the list is empty, or a seed is no whole number from 0.
    """
    chosen = range(seeds) if isinstance(seeds, int) else list(seeds)
    if not chosen or not all(isinstance(seed, int) and seed >= 0 for seed in chosen):
        raise UserError(f"seeds = {seeds!r}: give their number, or a list of whole numbers from 0")
    return chosen
