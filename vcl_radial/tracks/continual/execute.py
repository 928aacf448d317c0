"""Runs of a task sequence for the run machine: opened, and checked before any trains."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.training import Step
from vcl_radial.tracks.continual.methods import (
    by_avalanche,
    make_strategy,
    method_of,
    optimizer_for,
)
from vcl_radial.tracks.continual.networks import make_network, stream_for
from vcl_radial.tracks.continual.settings import Run
from vcl_radial.tracks.continual.training import ContinualRun
from vcl_radial.tracks.continual.uncertainty import of_run
from vcl_radial.tracks.continual.updating import UpdatedRun, updated_stream
from vcl_radial.tracks.methods import check_made


def open_run(spec: Run, context: RunContext, report: Callable[[Step], None]) -> ContinualRun:
    """Open a run at its start."""

    def on_epoch(task: int, epoch: int, scalars: Mapping[str, float]) -> None:
        if context.log and (task, epoch) == (1, 1):
            report(run.untrained())
        report(run.after_epoch(task, epoch, scalars))

    settings: dict[str, Any] = {
        "evaluate_on": spec.evaluate_on,
        "device": context.device,
        "on_epoch": on_epoch,
        "watched": bool(context.log),
    }
    if spec.updates:
        run: ContinualRun = UpdatedRun(updated_stream(spec, context.data_dir), spec, **settings)
    else:
        run = run_class(spec, context, report)(
            spec.stream, spec.recipe, spec.seed, data_dir=context.data_dir, **settings
        )
    return run


def run_class(
    spec: Run, context: RunContext, report: Callable[[Step], None]
) -> Callable[..., ContinualRun]:
    """The class of a run: the trainer's or Avalanche's loop."""
    if not by_avalanche(spec.recipe):
        return ContinualRun
    from vcl_radial.tracks.continual.avalanche import AvalancheRun

    return partial(AvalancheRun, folder=RunFolder(context.out, spec).path, report=report)


def check_update(run: Run, data_dir: Path | None) -> None:
    """Read the data of a run that updates a model, and report what is not scored again.

    Raises:
        UserError: the parent or the new data do not fit.
    """
    if run.stream.statistics == "all-tasks" and run.stream.kind != "permuted":
        print(
            f"{run.method}: the inputs are standardised by the statistics that the model keeps, "
            "those of all tasks of its benchmark",
            file=sys.stderr,
        )
    stream = updated_stream(run, data_dir, lambda line: print(line, file=sys.stderr))
    run.recipe.check_batches(len(stream.train[-1]))


def check_made_on(runs: Sequence[Run], data_dir: Path | None) -> None:
    """Make the stream that the runs share, and each method for it once.

    Raises:
        UserError: the data are missing or damaged, or a method cannot be made for them.
    """
    stream = stream_for(runs[0].stream, runs[0].recipe, data_dir, runs[0].seed)
    of_run(runs[0].stream, stream, runs[0].evaluate_on, data_dir)

    def make(run: Run) -> Any:
        run.recipe.check_batches(min(map(len, stream.train)))
        network = make_network(stream, run.recipe)
        if not by_avalanche(run.recipe):
            method = method_of(run.recipe, network)
            method.check_optimizer(optimizer_for(run.recipe)(method.network))
            return method
        from vcl_radial.integrations.avalanche.upkeep import check_objective

        strategy = make_strategy(run.recipe, network, tensor_stream=stream)
        check_objective(strategy)
        return strategy

    check_made(runs, make)
