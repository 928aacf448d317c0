"""The model that a run on a table keeps, and its way back from the folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.models.format import training_points
from vcl_radial.models.table import TableModel
from vcl_radial.tracks.regression.learner import Job, Learner
from vcl_radial.tracks.regression.seeds import split_seed
from vcl_radial.tracks.regression.settings import Run
from vcl_radial.tracks.regression.task_by_task import TaskByTask
from vcl_radial.training.lane_data import LaneData

if TYPE_CHECKING:
    from vcl_radial.tracks.regression.execute import TableRun


def kept(training: TableRun) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The card and the state of a finished run; None where its state does not predict."""
    learner = training.learner
    if not learner.state_predicts:
        return None
    state = learner.state_dict(training.lane)
    table = training.together.table
    card = {
        "input": {"shape": [training.together.splits.train.x.shape[-1]]},
        "columns": [[name, None if texts is None else [*texts]] for name, texts in table.columns],
        "target": table.target,
        "hidden": [*learner.job.hidden],
        "tasks": [{"name": name} for name in training.task_names],
        "training_points": training_points(state),
    }
    scaler = training.together.splits.scalers[training.lane]
    return card, {"learner": state, "standardiser": vars(scaler)}


def restored(run: Run, card: Mapping[str, Any], state: dict[str, Any]) -> TableModel:
    """The model of a folder.

    Raises:
        UserError: the method cannot be made, or the state does not fit it.
    """
    nothing = torch.zeros(1, 1, card["input"]["shape"][0])
    whole = LaneData(nothing, torch.zeros(1, 1), torch.ones(1, dtype=torch.int64))
    job = Job([run.recipe], [split_seed(run.seed)], [whole], nothing, card["hidden"])
    learner = learner_of(run, job, whole)
    learner.load_state_dict(0, state["learner"])

    def mixture(x: Tensor) -> Mixture:
        learner.job = replace(job, x=x.float()[None])
        predicted = learner.predict()

        def of_lane(values: Tensor) -> Tensor:
            return values[..., 0, :] if values.ndim > 1 else values

        degrees = predicted.degrees
        return Mixture(
            of_lane(predicted.mean),
            of_lane(predicted.scale),
            None if degrees is None else of_lane(degrees),
        )

    return TableModel(card, state["standardiser"], mixture)


def learner_of(run: Run, job: Job, whole: LaneData) -> Learner:
    """The learner of a run, as a lane or alone."""
    lanes = run.recipe.lane if run.is_lane else None
    return lanes(job) if lanes else TaskByTask(job, whole)
