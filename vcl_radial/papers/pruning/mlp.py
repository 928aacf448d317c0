"""An MLP pruned by the signal-to-noise ratio of its weights, method by method (BAdam, Fig. 2)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from vcl_radial.data.streams import TensorStream
from vcl_radial.papers.pruning.mlp_methods import METHODS, MLPUnit, load_stream, train
from vcl_radial.papers.pruning.mlp_pruning import accuracies
from vcl_radial.runs import environment
from vcl_radial.runs.folder import make_folder
from vcl_radial.runs.result_file import read, write


def perform(units: Sequence[MLPUnit], out: Path, to: Path, data_dir: Path | None) -> None:
    """Train and prune what is not finished.

    Args:
        units: all of them.
        out: the folder of the results.
        to: the folder that the report is to go to, made before the work.
        data_dir: where the images lie; None for the usual places.

    Raises:
        UserError: the data cannot be read or a result cannot be written.
        Diverged: a loss is no longer a finite number.
    """
    make_folder(out)
    make_folder(to)
    torch.set_num_threads(1)
    todo = [unit for unit in units if read(unit, out) is None]
    kept = f", {len(units) - len(todo)} kept from before" if len(todo) < len(units) else ""
    print(f"{units[0].dataset}: {len(todo)} networks to train{kept}", flush=True)
    if not todo:
        return
    stream = load_stream(todo[0].dataset, data_dir)
    for k, unit in enumerate(todo, start=1):
        _carry_out(unit, stream, out, f"[{k} of {len(todo)}]")


def _carry_out(unit: MLPUnit, stream: TensorStream, out: Path, place: str) -> None:
    """Train, prune by both orders, and write the result."""
    described = environment.describe("cpu", 1)
    started = time.perf_counter()
    epochs = unit.recipe.epochs

    def on_epoch(epoch: int) -> None:
        if epoch % max(1, epochs // 5) == 0 and epoch < epochs:
            print(f"  {unit.method} seed {unit.seed}: epoch {epoch} of {epochs}", flush=True)

    method = replace(METHODS[unit.method], recipe=unit.recipe)
    trained = train(method, stream, unit.seed, on_epoch)
    x, labels = stream.inputs(0, "test"), stream.labels(0, "test")
    numbers = {"magnitude": accuracies(trained, None, x, labels)}
    if trained.scales is not None:
        numbers["signal-to-noise"] = accuracies(trained, trained.scales, x, labels)
    seconds = time.perf_counter() - started
    write(unit, out, numbers, described | {"seconds": seconds})
    print(
        f"{unit.method} seed {unit.seed}: {numbers['magnitude'][0]:.2f} % before pruning, "
        f"{seconds:.0f} s  {place}",
        flush=True,
    )
