"""The report on task sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from vcl_radial.data.backbones import PRETRAINING
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.reporting import figures, sections
from vcl_radial.reporting.blocks import Column, Figure, Section, Table, Text, with_spread
from vcl_radial.reporting.scores import (
    UNCERTAINTY_NAMES,
    at_the_end,
    joined,
    runs_table,
    scores_table,
    without_avalanche,
)
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.continual import avalanche_metrics

if TYPE_CHECKING:
    import pandas as pd


def report(finished: Sequence[FinishedRun]) -> list[Section]:
    """The leaderboard, differences, curves, heatmaps and layers; single runs and their settings.

    Raises:
        DataError: tables do not fit together.
    """
    scores, runs = without_avalanche(scores_table(finished)), runs_table(finished)
    by_run = figures.seed_table(scores, runs)
    names = finished[0].environment["tasks"]
    if finished[0].spec.stream.get("class_order") == "seed":  # classes differ between seeds
        names = [f"task {number}" for number in range(1, len(names) + 1)]
    return sections.shown(
        [
            _with_pretraining(sections.leaderboard(scores, by_run, names), finished),
            sections.against_first(scores),
            sections.curves(scores),
            sections.matrices(scores, names),
            uncertainty_section(scores),
            _layers(finished),
            avalanche_metrics.section(finished),
            sections.matrices_in_numbers(scores, names),
            sections.single_runs(by_run, runs),
            sections.settings(finished),
        ]
    )


def _with_pretraining(section: Section, finished: Sequence[FinishedRun]) -> Section:
    """The section, which states the licence and the training of a network that gave the inputs."""
    stream = finished[0].spec.stream
    if (name := stream.get("features")) not in PRETRAINING:
        return section
    layers = ", ".join(map(str, stream["feature_layers"]))
    note = Text(
        f"Inputs are features of {name} ({PRETRAINING[name]}): layers {layers}, "
        f"{stream['feature_size']} pixels, {stream['feature_pool']}x{stream['feature_pool']} cells."
    )
    return replace(section, blocks=[*section.blocks, note])


def _layers(finished: Sequence[FinishedRun]) -> Section | None:
    """What the layers do; None without a method that has a posterior."""
    if (layers := joined(finished, "layers")).empty:
        return None
    draw = partial(figures.layer_movement, layers)
    note = Text(
        "The means' shift is in units of the prior's noise: with a small noise a small shift looks "
        "large."
    )
    picture = Figure("layers", draw, "What the layers do, task by task")
    return Section("What the layers do", [note, picture], {"layers.csv": figures.to_csv(layers)})


COVERED = {
    "coverage": "coverage (%)",
    "set_size": "set size",
}
JUDGED = {
    "answered_accuracy": "accuracy on the surer 80 % (%)",
    "later_auc": "AUC of later tasks (%)",
    "ood_auc": "AUC of other data (%)",
}


def uncertainty_section(scores: pd.DataFrame) -> Section | None:
    """What the networks know of their own errors; None if it was not scored.

    Scores of trained tasks are averages over tasks, right after each and after the last one; those
    of later tasks are averages over all moments and tasks.
    """
    if not scores["metric"].eq("coverage").any():
        return None
    ends = at_the_end(scores)
    in_order = scores.groupby("run")["after"].transform(lambda after: after.eq(1).any())
    learnt = scores[in_order & (scores["after"] == scores["task"])]
    moments = "just after a task", "at the end"
    heads = [f"{heading}, {moment}" for heading in COVERED.values() for moment in moments]
    covered, judged = [], []
    for method in figures.method_names(scores):
        rows, first, final = (t[t["method"] == method] for t in (scores, learnt, ends))
        covered.append([method, *(_mean(t, m) for m in COVERED for t in (first, final))])
        for name, printed in UNCERTAINTY_NAMES.items():
            if rows["metric"].eq(f"answered_accuracy_by_{name}").any():
                cells = [
                    _mean(rows if metric == "later_auc" else final, f"{metric}_by_{name}")
                    for metric in JUDGED
                ]
                judged.append([method, printed, *cells])
    texts = [Column(name, is_text=True) for name in ("method", "uncertainty")]
    note = Text(
        "A 90 % prediction set has its limit from validation images right after the task, and "
        "always the most probable class: a coverage below 90 % at the end is forgetting that the "
        "network does not notice. The AUC is that of telling images of a task that is not learned "
        "yet, or of other data, by their uncertainty; 50 is chance. MI is the mutual information "
        "of class and weights. Mean ± standard error over seeds."
    )
    tables = [Table([texts[0], *heads], covered), Table([*texts, *JUDGED.values()], judged)]
    return Section("What it does not know", [note, *tables])


def _mean(rows: pd.DataFrame, metric: str) -> str:
    """A metric averaged over the rows of each run: mean and standard error over runs."""
    runs = rows[rows["metric"] == metric].groupby("run")["value"].mean()
    decimals = 2 if metric == "set_size" else 1
    return with_spread(*mean_and_standard_error(runs), decimals) if len(runs) else ""
