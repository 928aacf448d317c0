"""`vcl-radial sweep`: search for good settings."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from vcl_radial.cli.arguments import (
    DONE,
    FAILED,
    add_data_dir,
    add_device,
    add_out,
    count,
)
from vcl_radial.cli.executors import add_executor, executor_of


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "Search for settings of methods on a benchmark, scored on validation data: a "
        "grid, a random search, or a Bayesian search. The same command resumes after an "
        "interruption; `report` shows the result and writes the best recipes."
    )
    parser.add_argument("sweep", metavar="SWEEP", help="a name that `list` prints, or a .toml file")
    add_executor(parser)
    parser.add_argument(
        "--trials",
        metavar="N",
        type=count,
        help="number of trials per method (default: the number in SWEEP)",
    )
    parser.add_argument(
        "--storage",
        metavar="URL",
        help="also write the trials to this database, with Optuna (default: none)",
    )
    add_data_dir(parser, "; else the data are downloaded once, if that is allowed")
    add_out(parser, "runs/sweeps", "the folder of the results, with a folder for each sweep")
    add_device(parser)
    parser.set_defaults(command=_sweep)


def _sweep(options: argparse.Namespace) -> int:
    from vcl_radial.sweeps.command import sweep

    studies = sweep(
        options.sweep,
        trials=options.trials,
        out=options.out,
        jobs=options.jobs,
        lanes=options.lanes,
        device=options.device,
        data_dir=options.data_dir,
        storage=options.storage,
        executor=executor_of(options),
    )
    print()
    for study in studies:
        best = study.best()
        outcomes = [result.outcome for result in study.results.values()]
        print(f"{study.plan.label}: " + _counts(outcomes))
        if best is not None:
            settings = study.trials[best].parameters
            text = ", ".join(f"{key} = {value}" for key, value in settings.items())
            print(f"  best: trial {best}, {study.results[best].score:.4g} with {text}")
    folder = options.out / studies[0].plan.name
    print(f"  {folder / 'trials.csv'}; vcl-radial report {folder}")
    return DONE if any(study.best() is not None for study in studies) else FAILED


def _counts(outcomes: Sequence[str]) -> str:
    kinds = [kind for kind in ("finished", "pruned", "diverged", "failed") if kind in outcomes]
    return ", ".join(f"{outcomes.count(kind)} {kind}" for kind in kinds) or "no trial has ended"
