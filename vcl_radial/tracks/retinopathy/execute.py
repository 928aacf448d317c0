"""Steps of a run on photographs for the run machine: a step is an epoch on a site."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from vcl_radial.data.fundus import FundusData, Split
from vcl_radial.errors import Diverged, UserError, is_out_of_memory
from vcl_radial.files.reading import read_text
from vcl_radial.methods.carried import carried_bytes, contents
from vcl_radial.methods.registry import find_method
from vcl_radial.nn.movement import layer_starts
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.peers import ALONE, Peers
from vcl_radial.runs.training import Step
from vcl_radial.tracks.retinopathy.prediction import predict
from vcl_radial.tracks.retinopathy.prepare import Prepared, all_test_sets, all_validation_sets
from vcl_radial.tracks.retinopathy.scoring import calibration_table, prediction_table, score_table
from vcl_radial.tracks.retinopathy.settings import Run
from vcl_radial.tracks.retinopathy.training import (
    HISTORY,
    Training,
    derived,
    start_of,
    trained_method,
)

State = dict[str, Any]
"""A method's state dict."""

History = list[dict[str, float]]
"""One line for each epoch."""


class EpochTraining:
    """The method of a run, trained on one site after another.

    Args:
        run: the specification of the run.
        sites: the photographs, ready for training.
        device: the device of networks and pixels.
        peers: processes that share every batch.
    """

    def __init__(
        self, run: Run, sites: Sequence[Prepared], device: str = "cpu", peers: Peers = ALONE
    ) -> None:
        self.run, self.sites, self.device, self.peers = run, sites, torch.device(device), peers
        at_once = find_method(run.recipe.strategy).needs_whole_stream
        self.trained_on = [together(sites)] if at_once else sites
        """The sites of the trainings, in order; or all sites merged into one."""
        self.states: list[State] = []
        """The method's state after each training."""
        self._history: History = []
        self._training: Training | None = None

    @property
    def history(self) -> History:
        """The lines of all epochs so far."""
        return [*self._history, *(self._training.history if self._training else [])]

    def position(self) -> Step:
        """The step of the last epoch that is done."""
        here, done = self._step(), len(self.history)
        news = f"resumes after epoch {done}" if done else None
        network = start_of(self.run.recipe, self.sites[0].data.size, self.run.seed).network
        start = tuple(map(str, layer_starts(network)))
        return replace(here, score=None, news=news, start=start, scalars={})

    def _step(self) -> Step:
        return step(self.run, [site.name for site in self.trained_on], self.history)

    def state_dict(self) -> dict[str, Any]:
        """The states after the sites, the training in progress, and the history."""
        return {
            "states": self.states,
            "history": self._history,
            "processes": self.peers.world,
            "training": self._training.state_dict() if self._training else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from what `state_dict` gave.

        Raises:
            UserError: another number of processes wrote the state.
        """
        if state["processes"] != self.peers.world:
            raise UserError(
                f"{state['processes']} processes wrote the checkpoint; resume with as many, or "
                "delete it"
            )
        self.states, self._history = state["states"], state["history"]
        if state["training"] is not None:
            self._training = self._begin()
            self._training.load_state_dict(state["training"])

    def steps(self) -> Iterator[Step]:
        """Train the remaining epochs.

        Raises:
            UserError: a step does not fit into memory.
            Diverged: the loss stopped being a finite number.
        """
        while len(self.states) < len(self.trained_on):
            training = self._training = self._training or self._begin()
            while not training.finished:
                with _memory_checked(self.run.recipe.batch_size):
                    training.run_epoch()
                    if training.finished:
                        # In the same step, because a method may use its last gradients.
                        self._end(training)
                yield self._step()

    def files(self) -> dict[str, str]:
        """Predictions, scores, calibration and history.

        Raises:
            Diverged: predictions are not numbers.
        """
        predictions = self._predictions()
        tables = {
            "predictions": predictions,
            "scores": score_table(predictions),
            "calibration": calibration_table(predictions),
            "history": pd.DataFrame(self._history, columns=[*HISTORY, "selected"]).astype(
                {"member": int, "site": int, "epoch": int}
            ),
        }
        return {f"{kind}.csv": table.to_csv(index=False) for kind, table in tables.items()}

    def kept(self) -> dict[str, Any]:
        """The states after all sites, for a run that is scored on test data."""
        return {"weights.pt": {"states": self.states}} if self.run.evaluate_on == "test" else {}

    def facts(self) -> dict[str, Any]:
        """Parameters, bytes carried between sites, seconds, photographs, sites, and notices."""
        recipe, sites, history = self.run.recipe, self.sites, self._history
        network = start_of(recipe, sites[0].data.size, self.run.seed).network
        carried = None
        if len(self.states) > 1:
            carried = carried_bytes(self.states[-1], contents(network.state_dict()))
        seconds = sum(line["seconds"] for line in history)
        return {
            "parameters": sum(p.numel() for p in network.parameters()),
            "carried_bytes": carried,
            "seconds": seconds,
            "seconds_per_epoch": seconds / len(history),
            "photographs": {
                part: sum(len(getattr(site.split, part)) for site in sites)
                for part in ("train", "validation", "test")
            },
            "sites": [site.name for site in sites],
            "notices": list(sites[0].notices),
            "processes": self.peers.world,
        }

    def _begin(self) -> Training:
        site = len(self.states)
        return Training(
            self.run.recipe,
            self.trained_on[site],
            self.run.seed,
            self.device,
            site=site,
            start=self.states[-1] if site else None,
            peers=self.peers,
        )

    def _end(self, training: Training) -> None:
        self._history += [
            {**line, "selected": _is_selected(training, line)} for line in training.history
        ]
        self.states.append(training.carried())
        self._training = None

    def _predictions(self) -> pd.DataFrame:
        """Predictions on all evaluated parts after every training."""
        recipe, seed, sites = self.run.recipe, self.run.seed, self.sites
        parts = list(enumerate(all_validation_sets(sites)))
        if self.run.evaluate_on == "test":
            parts = [*enumerate(all_test_sets(sites)), *parts]
        tables = []
        for after, state in zip(self.trained_on, self.states, strict=True):
            method = trained_method(recipe, after.data.size, state, self.device)
            for number, (name, data, rows) in parts:
                if not len(rows):
                    continue
                # A shifted set belongs to no site.
                network = method.predictor(number if number < len(sites) else None)
                with method.using(network):
                    log_draws = predict(
                        method,
                        data,
                        rows,
                        normalisation=after.normalisation,
                        samples=method.eval_samples,
                        seed=derived(seed, "prediction", 0),
                        batch_size=recipe.batch_size,
                        device=self.device,
                    )
                if not log_draws.isfinite().all():
                    raise Diverged(
                        f"predictions on {name} are not numbers: choose a smaller learning_rate"
                    )
                photographs = data.photographs.select(rows)
                tables.append(prediction_table(after.name, name, photographs, log_draws))
        return pd.concat(tables, ignore_index=True)


def together(sites: Sequence[Prepared]) -> Prepared:
    """Merge all sites into one for a method that learns them at once; it has the last one's name.

    So scores after the last site are scores after all sites.
    """
    starts = np.cumsum([0, *(len(site.data) for site in sites[:-1])])
    parts = (
        np.concatenate([getattr(s.split, part) + at for s, at in zip(sites, starts, strict=True)])
        for part in ("train", "validation", "test")
    )
    data = FundusData.together([site.data for site in sites])
    return replace(sites[-1], data=data, split=Split(*parts))


def step(run: Run, sites: Sequence[str], history: Sequence[Mapping[str, float]]) -> Step:
    """The step that a run has reached, from the names of its sites and its history."""
    epochs = len(sites) * run.recipe.epochs
    if not history:
        return Step(0, f"epoch 1 of {epochs}", epochs=epochs)
    line = history[-1]
    site, epoch = int(line["site"]), int(line["epoch"])
    # Training that ended early leaves a gap.
    done = site * run.recipe.epochs + epoch
    prefix, suffix = (f"{sites[site]}  ", f"/{sites[site]}") if len(sites) > 1 else ("", "")
    return Step(
        done=len(history),
        message=f"epoch {done} of {epochs}",
        score=selected_score_by_epoch(run, history).get(len(history)),
        epoch=done,
        epochs=epochs,
        news=f"{prefix}epoch {epoch}: NLL {line['nll']:.4f} nats, "
        f"validation AUC {line['validation_auc']:.2f} %",
        scalars={f"{key}{suffix}": line[key] for key in ("loss", "nll", "kl", "validation_auc")},
        at=len(history),
    )


def selected_score_by_epoch(run: Run, lines: Sequence[Mapping[str, float]]) -> dict[int, float]:
    """The validation AUC of the weights that would be kept after each epoch of the run."""
    best: dict[float, float] = {}
    values = {}
    for number, line in enumerate(lines, start=1):
        site = line["site"]
        best[site] = max(line["validation_auc"], best.get(site, 0.0))
        values[number] = best[site] if run.recipe.select == "best" else line["validation_auc"]
    return values


@contextmanager
def _memory_checked(batch_size: int) -> Iterator[None]:
    """Raise an error that names the batch size if memory runs out inside."""
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
        UserError: the checkpoint is damaged.
    """
    if folder.finished():
        rows = csv.DictReader(read_text(folder.path / "history.csv").splitlines())
        return [{name: float(row[name]) for name in HISTORY} for row in rows]
    state = folder.load_checkpoint() or {"history": [], "training": None}
    return [*state["history"], *(state["training"] or {"history": []})["history"]]


def _is_selected(training: Training, line: Mapping[str, float]) -> bool:
    chosen = training.epoch if training.best is None else training.best_epoch
    return int(line["epoch"]) == chosen
