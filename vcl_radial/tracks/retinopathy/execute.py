"""One run from its start, or from where it was left, to its result files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

import pandas as pd
import torch

from vcl_radial.errors import Diverged, UserError, is_out_of_memory
from vcl_radial.runs import environment
from vcl_radial.runs.folder import DamagedCheckpoint, RunFolder, discard_damaged
from vcl_radial.tracks.retinopathy.networks import make_network
from vcl_radial.tracks.retinopathy.prediction import predict, together
from vcl_radial.tracks.retinopathy.prepare import Prepared, all_test_sets, all_validation_sets
from vcl_radial.tracks.retinopathy.processes import ALONE, Processes
from vcl_radial.tracks.retinopathy.scoring import calibration_table, prediction_table, score_table
from vcl_radial.tracks.retinopathy.settings import Run
from vcl_radial.tracks.retinopathy.training import (
    HISTORY,
    OnBatch,
    Training,
    derived,
    trained_network,
)

OnEpoch = Callable[[Sequence[Mapping[str, float]]], None]
"""Called after an epoch with the lines of the history up to it."""

Weights = dict[str, Any]
"""A network's state dict."""


def execute(
    folder: RunFolder[Run],
    sites: Sequence[Prepared],
    device: torch.device | str = "cpu",
    *,
    processes: Processes = ALONE,
    on_epoch: OnEpoch = lambda history: None,
    on_batch: OnBatch = lambda: None,
    command: str | None = None,
) -> None:
    """Train all members of a run on one site after another, predict, score and write its files.

    The state is stored after every epoch; a run that has a checkpoint goes on from it. Of several
    processes, which all see the folder, the first one writes.

    Raises:
        UserError: the run does not fit into memory, or its folder cannot be read or written.
        Diverged: the loss of a member stopped being a finite number, or its predictions are none.
    """
    environment.loaded()  # the commit, before anybody makes another
    # A network trained to a loss near 0 meets denormal numbers, and they are slow.
    torch.set_flush_denormal(True)
    run, device = folder.run, torch.device(device)
    recipe = run.recipe
    # Nobody reads while the first process still writes what another run left to be done.
    processes.wait()
    state = _left(folder, processes) or {"members": [], "training": None, "history": []}
    commits = [*state.get("commits", []), environment.loaded()]
    if state.setdefault("processes", processes.world) != processes.world:
        raise UserError(
            f"{folder.checkpoint}: was left by {state['processes']} processes; go on with as many, "
            "or delete it"
        )
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    engines = environment.engines_with(state.get("engines", []), name)
    if processes.is_first:
        environment.tell_if_mixed(folder.checkpoint, engines)
    processes.wait()
    # Of each member the weights after each site.
    members: list[list[Weights]] = state["members"]
    history: list[dict[str, float]] = state["history"]
    if processes.is_first:
        folder.start()

    def save(training: dict[str, Any] | None) -> None:
        if processes.is_first:
            done = {"members": members, "history": history, "processes": processes.world}
            behind = {"commits": commits, "engines": engines}
            folder.save("checkpoint.pt", {**done, **behind, "training": training})

    for member, site in product(range(recipe.members), range(len(sites))):
        if member == len(members):
            members.append([])
        after = members[member]
        if site < len(after):
            continue
        training = Training(
            recipe,
            sites[site],
            run.seed,
            member,
            device,
            site=site,
            start=after[-1] if after else None,
            processes=processes,
        )
        if state["training"] is not None:
            training.load_state_dict(state["training"])
        while not training.finished:
            with _memory_named(recipe.batch_size):
                training.run_epoch(on_batch)
            save(training.state_dict())
            on_epoch([*history, *training.history])
        after.append(training.selected())
        history += [{**line, "selected": _is_selected(training, line)} for line in training.history]
        state["training"] = None
        save(None)
    if processes.is_first:
        facts = _facts(folder, sites, history, name, commits)
        facts |= environment.of_engines(engines)
        facts |= {"processes": processes.world, "command": command}
        _finish(folder, sites, members, history, device, facts)
    processes.wait()


@contextmanager
def _memory_named(batch_size: int) -> Iterator[None]:
    """Inside, memory that runs out is the batch's fault."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(
            f"batch_size = {batch_size}: a step does not fit into memory; choose a smaller one"
        ) from error


def history_so_far(folder: RunFolder[Run]) -> list[dict[str, float]]:
    """The lines of the history of a run, finished or not.

    Raises:
        UserError: its checkpoint is damaged.
    """
    if folder.finished():
        rows = csv.DictReader((folder.path / "history.csv").read_text().splitlines())
        return [{name: float(row[name]) for name in HISTORY} for row in rows]
    state = folder.load("checkpoint.pt") or {"history": [], "training": None}
    return [*state["history"], *(state["training"] or {"history": []})["history"]]


def _left(folder: RunFolder[Run], processes: Processes) -> dict[str, Any] | None:
    """The checkpoint, or None where there is none, or a damaged one: the run starts anew."""
    try:
        return folder.load("checkpoint.pt")
    except DamagedCheckpoint:
        if processes.is_first:
            discard_damaged(folder.checkpoint)
        return None


def _finish(
    folder: RunFolder[Run],
    sites: Sequence[Prepared],
    members: Sequence[Sequence[Weights]],
    history: Sequence[Mapping[str, float]],
    device: torch.device,
    facts: Mapping[str, Any],
) -> None:
    """Predict, score and write all files."""
    if folder.run.evaluate_on == "test":
        folder.save("weights.pt", {"members": members})
    predictions = _predictions(folder, sites, members, device)
    tables = {
        "predictions": predictions,
        "scores": score_table(predictions),
        "calibration": calibration_table(predictions),
        "history": pd.DataFrame(history, columns=[*HISTORY, "selected"]).astype(
            {"member": int, "site": int, "epoch": int}
        ),
    }
    files = {f"{kind}.csv": table.to_csv(index=False) for kind, table in tables.items()}
    folder.finish({**files, "environment.json": json.dumps(facts, indent=2) + "\n"})


def _facts(
    folder: RunFolder[Run],
    sites: Sequence[Prepared],
    history: Sequence[Mapping[str, float]],
    device: str,
    commits: Sequence[str | None],
) -> dict[str, Any]:
    """What stands in `environment.json`."""
    recipe = folder.run.recipe
    parameters = sum(p.numel() for p in make_network(recipe, sites[0].data.size).parameters())
    return environment.describe(device, torch.get_num_threads(), commits) | {
        "parameters": recipe.members * parameters,
        "seconds": sum(line["seconds"] for line in history),
        "seconds_per_epoch": sum(line["seconds"] for line in history) / len(history),
        "photographs": {
            part: sum(len(getattr(site.split, part)) for site in sites)
            for part in ("train", "validation", "test")
        },
        "sites": [site.name for site in sites],
        "notices": list(sites[0].notices),
    }


def _predictions(
    folder: RunFolder[Run],
    sites: Sequence[Prepared],
    members: Sequence[Sequence[Weights]],
    device: torch.device,
) -> pd.DataFrame:
    """What the members say together about all that is scored on, after every site."""
    recipe, seed = folder.run.recipe, folder.run.seed
    scored = all_test_sets if folder.run.evaluate_on == "test" else all_validation_sets
    tables = []
    for k, site in enumerate(sites):
        networks = [trained_network(recipe, site.data.size, after[k], device) for after in members]
        for name, data, rows in scored(sites):
            draws = [
                predict(
                    network,
                    data,
                    rows,
                    normalisation=site.normalisation,
                    samples=recipe.eval_samples if recipe.draws else 1,
                    seed=derived(seed, "prediction", member),
                    batch_size=recipe.batch_size,
                    device=device,
                )
                for member, network in enumerate(networks)
            ]
            if not all(draw.isfinite().all() for draw in draws):
                raise Diverged(
                    f"predictions on {name} are not numbers: choose a smaller learning_rate"
                )
            photographs = data.photographs.select(rows)
            tables.append(prediction_table(site.name, name, photographs, together(draws)))
    return pd.concat(tables, ignore_index=True)


def _is_selected(training: Training, line: Mapping[str, float]) -> bool:
    chosen = training.epoch if training.best is None else training.best_epoch
    return int(line["epoch"]) == chosen
