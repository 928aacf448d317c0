"""One run from its start, or from where it was left, to its result files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from vcl_radial.experiments import environment
from vcl_radial.fundus import check_memory, estimate_memory
from vcl_radial.referral.folder import ReferralFolder
from vcl_radial.referral.prediction import predict, together
from vcl_radial.referral.prepare import Prepared
from vcl_radial.referral.scoring import calibration_table, prediction_table, score_table
from vcl_radial.referral.training import HISTORY, OnBatch, Training, derived, trained_network

OnEpoch = Callable[[dict[str, float]], None]
"""Told the line of the history of an epoch that has ended."""


def execute(
    folder: ReferralFolder,
    prepared: Prepared,
    device: torch.device | str = "cpu",
    *,
    on_epoch: OnEpoch = lambda line: None,
    on_batch: OnBatch = lambda: None,
) -> None:
    """Train all members of a run, predict, score and write its files.

    The state is stored after every epoch; a run that has a checkpoint goes on from it.

    Raises:
        UserError: the run would not fit into memory, or its folder cannot be read or written.
        Diverged: the loss of a member stopped being a finite number.
    """
    # A network trained to a loss near 0 meets denormal numbers, and they are slow.
    torch.set_flush_denormal(True)
    run, device = folder.run, torch.device(device)
    recipe = run.recipe
    state = folder.load("checkpoint.pt") or {"members": [], "training": None, "history": []}
    members: list[dict[str, Any]] = state["members"]
    history: list[dict[str, float]] = state["history"]
    folder.start()
    while len(members) < recipe.members:
        training = Training(recipe, prepared, run.seed, len(members), device)
        check_memory(
            estimate_memory(
                training.network,
                (3, prepared.data.size, prepared.data.size),
                recipe.batch_size,
                optimizer={"sgd": "sgd-momentum"}.get(recipe.optimizer, recipe.optimizer),
            ),
            device,
        )
        if state["training"] is not None:
            training.load_state_dict(state["training"])
        while not training.finished:
            line = training.run_epoch(on_batch)
            folder.save(
                "checkpoint.pt",
                {"members": members, "history": history, "training": training.state_dict()},
            )
            on_epoch(line)
        members.append(training.selected())
        history += [{**line, "selected": _is_selected(training, line)} for line in training.history]
        state["training"] = None
        folder.save("checkpoint.pt", {"members": members, "history": history, "training": None})
    folder.save("weights.pt", {"members": members})
    predictions = _predictions(folder, prepared, members, device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    network = trained_network(recipe, members[0], torch.device("cpu"))
    facts = environment.describe(name, torch.get_num_threads()) | {
        "parameters": recipe.members * sum(p.numel() for p in network.parameters()),
        "seconds": sum(line["seconds"] for line in history),
        "seconds_per_epoch": sum(line["seconds"] for line in history) / len(history),
        "photographs": {"train": len(prepared.split.train), "test": len(prepared.split.test)},
        "notices": prepared.notices,
    }
    tables = {
        "predictions": predictions,
        "scores": score_table(predictions),
        "calibration": calibration_table(predictions),
        "history": pd.DataFrame(history, columns=[*HISTORY, "selected"]).astype(
            {"member": int, "epoch": int}
        ),
    }
    files = {f"{kind}.csv": table.to_csv(index=False) for kind, table in tables.items()}
    folder.finish({**files, "environment.json": json.dumps(facts, indent=2) + "\n"})


def _predictions(
    folder: ReferralFolder,
    prepared: Prepared,
    members: list[dict[str, Any]],
    device: torch.device,
) -> pd.DataFrame:
    recipe, seed = folder.run.recipe, folder.run.seed
    draws: dict[str, list[Tensor]] = {name: [] for name, _, _ in prepared.test_sets()}
    for k, weights in enumerate(members):
        network = trained_network(recipe, weights, device)
        for name, data, rows in prepared.test_sets():
            draws[name].append(
                predict(
                    network,
                    data,
                    rows,
                    normalisation=prepared.normalisation,
                    samples=recipe.eval_samples if recipe.draws else 1,
                    seed=derived(seed, "prediction", k),
                    device=device,
                )
            )
    return pd.concat(
        [
            prediction_table(name, data.photographs.select(rows), together(draws[name]))
            for name, data, rows in prepared.test_sets()
        ],
        ignore_index=True,
    )


def _is_selected(training: Training, line: dict[str, float]) -> bool:
    chosen = training.epoch if training.best is None else training.best_epoch
    return int(line["epoch"]) == chosen
