"""Searches on fundus photographs: a step is an epoch, a score is that of the validation part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.run import Place
from vcl_radial.runs.track import Objective, Step, Track
from vcl_radial.tracks.retinopathy import catalogue
from vcl_radial.tracks.retinopathy.execute import execute, history_so_far
from vcl_radial.tracks.retinopathy.prepare import on_data, prepare
from vcl_radial.tracks.retinopathy.scoring import validation_scores
from vcl_radial.tracks.retinopathy.settings import Run


class Referral(Track[Run]):
    """What `vcl-radial refer` runs."""

    command = "refer"
    table = "data"
    step = "epoch"
    objectives: ClassVar = {
        "validation_auc": Objective("maximize", "validation AUC (%)"),
        "validation_nll": Objective("minimize", "validation NLL (nats)"),
    }

    def benchmarks(self) -> list[str]:
        """Those of `refer`."""
        return list(catalogue.BENCHMARKS)

    def recipe_of(self, benchmark: str) -> Mapping[str, Any]:
        """The [recipe] of a user's own; the shipped ones set none."""
        recipe: Mapping[str, Any] = catalogue.load_benchmark(benchmark).table.get("recipe", {})
        return recipe

    def plan(self, benchmark: str, method: str, seed: int, settings: Mapping[str, Any]) -> Run:
        """A run of `vcl-radial refer`."""
        (run,) = catalogue.plan(benchmark, [method], [seed], settings)
        return run

    def validated(self, tables: Mapping[str, Any]) -> Run:
        """A run from its settings."""
        return catalogue.validated(tables)

    def on_data(self, run: Run, data_dir: Path | None) -> Run:
        """A run with the checksum of its photographs."""
        return on_data(run, data_dir)

    def check_data(self, runs: Sequence[Run], data_dir: Path | None) -> None:
        """Decode the photographs, for all runs to read."""
        for data in {run.needed.model_dump_json(): run.needed for run in runs}.values():
            prepare(data, data_dir)

    def execute(self, run: Run, place: Place, tell: Callable[[Step], None]) -> None:
        """Carry a run out."""
        torch.set_num_threads(place.threads)
        folder, sites = RunFolder(place.out, run), prepare(run.needed, place.data_dir)
        lines = history_so_far(folder)
        epochs = run.recipe.members * len(sites) * run.recipe.epochs

        def on_epoch(line: dict[str, float]) -> None:
            lines.append(line)
            done = len(lines)
            tell(
                Step(done, f"epoch {min(done + 1, epochs)}/{epochs}", _worth(run, lines).get(done))
            )

        execute(folder, sites, place.device, on_epoch=on_epoch, command=place.command)

    def so_far(self, folder: RunFolder[Run]) -> dict[int, float]:
        """The validation AUC of the weights that would be kept, after each epoch of the run."""
        return _worth(folder.run, history_so_far(folder))

    def score(self, folder: RunFolder[Run], objective: str) -> float | None:
        """Of the selected weights: of the best epoch, unless the recipe says otherwise."""
        return validation_scores(folder.path)[objective]

    def chance(self, folder: RunFolder[Run]) -> float | None:
        """An AUC of 50 %."""
        return 50.0

    def epochs(self, run: Run) -> int:
        """Of all members and sites; photographs say how many sites there are."""
        return run.recipe.members * run.recipe.epochs

    def seconds(self, environment: Mapping[str, Any]) -> float:
        """All epochs, with their validation."""
        return float(environment["seconds"])


def _worth(run: Run, lines: Sequence[Mapping[str, float]]) -> dict[int, float]:
    """The validation AUC of the weights that would be kept after each epoch of the run.

    Nothing of epochs of the means alone: they are no posterior, and are not kept.
    """
    recipe = run.recipe
    best: dict[tuple[float, float], float] = {}
    found = {}
    for number, line in enumerate(lines, start=1):
        if not line["site"] and line["epoch"] <= recipe.pretrain_epochs:
            continue
        network = line["member"], line["site"]
        best[network] = max(line["validation_auc"], best.get(network, 0.0))
        found[number] = best[network] if recipe.select == "best" else line["validation_auc"]
    return found
