"""Steps of a run on photographs for the run machine: a step is an epoch on a site."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pandas as pd
import torch

from vcl_radial.errors import Diverged, UserError, is_out_of_memory
from vcl_radial.files.reading import read_text
from vcl_radial.methods.carried import carried_bytes, contents
from vcl_radial.nn.movement import layer_starts
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.peers import ALONE, Peers
from vcl_radial.runs.training import Step
from vcl_radial.tracks.retinopathy.prediction import predict
from vcl_radial.tracks.retinopathy.prepare import Prepared, all_test_sets, all_validation_sets
from vcl_radial.tracks.retinopathy.scoring import calibration_table, prediction_table, score_table
from vcl_radial.tracks.retinopathy.settings import Run
from vcl_radial.tracks.retinopathy.training import Sites, derived, trained_method, trainer_of

HISTORY = ("member", "site", "epoch", "loss", "nll", "kl", "validation_auc", "seconds")
"""Columns of the history; sites count from 0, epochs from 1.

The member is 0: an ensemble trains its members together. Loss and NLL are in nats per photograph,
the AUC in per cent; the loss of an ensemble is the sum over its members, and the NLL their mean.
The KL is the method's penalty (whatever it is) in nats. The NLL is the mean over the epoch; the KL
and its share of the loss are the values at the end of the epoch.
"""

History = list[dict[str, float]]
"""One line for each epoch."""

Known = Mapping[tuple[str, str], pd.DataFrame]
"""Predictions by the last trained site and the name of a part."""


class EpochTraining:
    """The method of a run, trained on one site after another.

    Args:
        run: the specification of the run.
        sites: the photographs, ready for training.
        device: the device of networks and pixels.
        peers: processes that share every batch.
        learnt: number of sites that were learnt before the run, and are not trained again.
    """

    def __init__(
        self,
        run: Run,
        sites: Sequence[Prepared],
        device: str = "cpu",
        peers: Peers = ALONE,
        learnt: int = 0,
    ) -> None:
        self.run, self.sites, self.device, self.peers = run, sites, torch.device(device), peers
        self.source = Sites(run.recipe, sites, run.seed, device, peers)
        self.trainer = trainer_of(run.recipe, sites[0].data.size, run.seed, device, peers)
        at_once = self.trainer.method.needs_whole_stream
        self.trained_on = [self.source.whole] if at_once else sites
        """The sites of the trainings, in order; or all sites merged into one."""
        self.learnt = learnt
        self.known: Known = {}
        """Predictions that need not be made, as a finished run has them."""
        network = self.trainer.method.network
        self._starts, self._start = layer_starts(network), contents(network.state_dict())
        self._parameters = sum(p.numel() for p in network.parameters())

    @property
    def history(self) -> History:
        """The lines of all epochs so far."""
        return [history_line(epoch) for epoch in self.trainer.history]

    def position(self) -> Step:
        """The step of the last finished epoch."""
        done = len(self.trainer.history)
        news = f"resumes after epoch {done}" if done else None
        start = tuple(map(str, self._starts))
        return replace(self._step(), score=None, news=news, start=start, scalars={})

    def _step(self) -> Step:
        names = [site.name for site in self.trained_on]
        return step(self.run, names, self.history, self.learnt)

    def state_dict(self) -> dict[str, Any]:
        """The states after the sites, the training in progress, and the history."""
        return self.trainer.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from the result of `state_dict`; see `Trainer.load_state_dict`."""
        self.trainer.load_state_dict(state)

    def steps(self) -> Iterator[Step]:
        """Train the remaining epochs.

        Raises:
            UserError: a step does not fit into memory.
            Diverged: the loss stopped being a finite number.
        """
        with _memory_checked(self.run.recipe.batch_size):
            for _ in self.trainer.steps(self.source):
                yield self._step()

    def files(self) -> dict[str, str]:
        """Predictions, scores, calibration and history.

        Raises:
            Diverged: predictions are not numbers.
        """
        predictions, history = self._predictions(), self.history
        tables = {
            "predictions": predictions,
            "scores": score_table(predictions),
            "calibration": calibration_table(predictions),
            "history": pd.DataFrame(history, columns=HISTORY)
            .assign(selected=selected_epochs(self.run, history))
            .astype({"member": int, "site": int, "epoch": int}),
        }
        return {f"{kind}.csv": table.to_csv(index=False) for kind, table in tables.items()}

    def kept(self) -> dict[str, Any]:
        """The states after all sites, for a run that is scored on test data."""
        if self.run.evaluate_on != "test":
            return {}
        return {"weights.pt": {"states": self.trainer.states}}

    def facts(self) -> dict[str, Any]:
        """Parameters, bytes carried between sites, seconds, photographs, sites, and notices."""
        sites, history, states = self.sites, self.history, self.trainer.states
        carried = None if len(states) == 1 else carried_bytes(states[-1], self._start)
        seconds = sum(line["seconds"] for line in history)
        return {
            "parameters": self._parameters,
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

    def _predictions(self) -> pd.DataFrame:
        """Predictions on all evaluated parts after every training."""
        recipe, seed, sites = self.run.recipe, self.run.seed, self.sites
        parts = list(enumerate(all_validation_sets(sites)))
        if self.run.evaluate_on == "test":
            parts = [*enumerate(all_test_sets(sites)), *parts]
        tables = []
        for after, state in zip(self.trained_on, self.trainer.states, strict=True):
            method = trained_method(recipe, after.data.size, state, self.device)
            for number, (name, data, rows) in parts:
                if (known := self.known.get((after.name, name))) is not None:
                    tables.append(known)
                    continue
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


def history_line(epoch: Sequence[float]) -> dict[str, float]:
    """An epoch as a line of the history."""
    return dict(zip(HISTORY, map(float, (0, *epoch)), strict=True))


def step(
    run: Run, sites: Sequence[str], history: Sequence[Mapping[str, float]], learnt: int = 0
) -> Step:
    """The step that a run has reached, from the names of its sites and its history.

    Sites that were learnt before the run have no epochs.
    """
    epochs = (len(sites) - learnt) * run.recipe.epochs
    if not history:
        return Step(0, f"epoch 1 of {epochs}", epochs=epochs)
    line = history[-1]
    site, epoch = int(line["site"]), int(line["epoch"])
    # Training that ended early leaves a gap.
    done = (site - learnt) * run.recipe.epochs + epoch
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
    state = folder.load_checkpoint() or {"history": []}
    return [history_line(epoch) for epoch in state["history"]]


def selected_epochs(run: Run, history: History) -> list[bool]:
    """Whether the weights after each epoch were kept: a site's best or last epoch."""
    chosen: dict[float, dict[str, float]] = {}
    for line in history:
        best = chosen.get(line["site"])
        if (
            best is None
            or run.recipe.select == "last"
            or line["validation_auc"] > best["validation_auc"]
        ):
            chosen[line["site"]] = line
    return [line is chosen[line["site"]] for line in history]
