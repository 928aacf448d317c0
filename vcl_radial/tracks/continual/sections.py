"""The report on task sequences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from vcl_radial.reporting import figures, sections
from vcl_radial.reporting.blocks import Figure, Section
from vcl_radial.reporting.scores import joined, runs_table, scores_table, without_avalanche
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.continual import avalanche_metrics


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
            sections.leaderboard(scores, by_run, names),
            sections.against_first(scores),
            sections.curves(scores),
            sections.matrices(scores, names),
            _layers(finished),
            avalanche_metrics.section(finished),
            sections.matrices_in_numbers(scores, names),
            sections.single_runs(by_run, runs),
            sections.settings(finished),
        ]
    )


def _layers(finished: Sequence[FinishedRun]) -> Section | None:
    """What the layers do; None without a method that has a posterior."""
    if (layers := joined(finished, "layers")).empty:
        return None
    draw = partial(figures.layer_movement, layers)
    picture = Figure("layers", draw, "What the layers do, task by task")
    return Section("What the layers do", [picture], {"layers.csv": figures.to_csv(layers)})
