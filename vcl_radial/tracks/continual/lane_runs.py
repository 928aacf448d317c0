"""The continual track for many runs of one shape at once, as lanes of one program.

A lane gives the same numbers as a `ContinualRun` with the same seed and recipe, up to the rounding
of batched products; see `vcl_radial.training.lanes`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import torch
from torch import nn

from vcl_radial.data.streams.tensors import Split
from vcl_radial.errors import Diverged
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import Method
from vcl_radial.methods.registry import built_in, built_in_class
from vcl_radial.optimizers.schedules import SCHEDULES
from vcl_radial.runs.keys import declared
from vcl_radial.runs.training import Step
from vcl_radial.tracks.continual.methods import method_of
from vcl_radial.tracks.continual.networks import make_network, stream_for
from vcl_radial.tracks.continual.progress import TaskRun
from vcl_radial.tracks.continual.settings import Recipe, StreamSettings
from vcl_radial.tracks.continual.training import OnDemand, StreamTasks, task_seed
from vcl_radial.tracks.continual.uncertainty import of_run
from vcl_radial.training.lane_data import LaneData
from vcl_radial.training.lanes import LaneRun, LaneTrainer
from vcl_radial.training.source import TensorTask

MAY_DIFFER = declared(Recipe, lanes="may differ")
"""Keys of a recipe in which lanes of one program may differ; all other keys make its shape."""


@cache
def lane_method(strategy: str) -> type[Method] | None:
    """The class of a method whose runs can be lanes; None if they train one by one."""
    method = built_in_class(strategy) if strategy in built_in() else None
    return method if method is not None and vars(method).get("lane_step") else None


def shape(recipe: Recipe) -> str | None:
    """Keys that the recipes of one program share, as JSON; None for a recipe that runs alone."""
    method = lane_method(recipe.strategy)
    if (
        method is None
        or recipe.optimizer not in ("adam", "amsgrad")
        or set(recipe.options) - method.lane_options
    ):
        return None
    if (recipe.posterior == "none") != (recipe.strategy == "naive"):
        return None
    family = recipe.family
    has_lanes = recipe.posterior == "none" or (family is not None and family.has_lanes)
    if not has_lanes or recipe.network is not None or recipe.avalanche is not None:
        return None
    if recipe.is_without_lanes:
        return None
    return recipe.model_dump_json(exclude=MAY_DIFFER)


class LaneRuns:
    """Runs in progress that share a stream and the shape of their recipes.

    Args:
        settings: the task sequence.
        recipes: one for each lane, all of one `shape`.
        seeds: one for each lane.
        evaluate_on: "test" or "validation".
        data_dir: folder of the data; see `vcl_radial.data.streams`.
        device: the device of networks and data.
        report: called with a lane and its progress after every epoch.
    """

    def __init__(
        self,
        settings: StreamSettings,
        recipes: Sequence[Recipe],
        seeds: Sequence[int],
        *,
        evaluate_on: Split = "test",
        data_dir: Path | None = None,
        device: str = "cpu",
        report: Callable[[int, Step], None] = lambda lane, step: None,
    ) -> None:
        first = recipes[0]
        if len({shape(recipe) for recipe in recipes}) != 1 or shape(first) is None:
            raise ValueError("the recipes of lanes must have one shape")
        if settings.varies_with_seed and len(set(seeds)) != 1:
            raise ValueError("lanes share one stream, but here the stream depends on the seed")
        torch.set_flush_denormal(True)
        stream = stream_for(settings, first, data_dir, seeds[0])
        first.check_batches(min(map(len, stream.train)))
        lanes = []
        for recipe, seed in zip(recipes, seeds, strict=True):
            with seeded_rng(task_seed(seed, 0), torch.device("cpu")):
                network = make_network(stream, recipe)
            lanes.append(_lane(recipe, seed, network.to(device).eval()))
        self._report = report
        self.stream = stream.to(device)
        self.trainer = LaneTrainer(
            lanes,
            batch_size=first.batch_size,
            drop_last=first.drop_last,
            amsgrad=first.optimizer == "amsgrad",
            kl_schedule=first.kl_schedule,
            on_progress=self._on_epoch,
        )
        uncertainty = of_run(settings, self.stream, evaluate_on, data_dir)
        self.lanes = [
            TaskRun(self.stream, recipe, lane, evaluate_on, uncertainty)
            for recipe, lane in zip(recipes, lanes, strict=True)
        ]

    def leave_out(self, lane: int) -> None:
        """Stop training a lane."""
        self.trainer.lanes[lane].left_out = True

    def fault(self, lane: int) -> Diverged | None:
        """The error that ended a lane early; None if there was none."""
        return self.trainer.lanes[lane].fault

    def steps(self) -> Iterator[dict[int, Step]]:
        """Train and score task by task."""
        for k, lane in enumerate(self.lanes):
            if not lane.rows and not self.trainer.lanes[k].left_out:
                self._score(k, lane.evaluate)
        tasks = StreamTasks(self.stream, self.lanes[0].recipe).tasks()
        started = time.perf_counter()
        for trained in self.trainer.steps(OnDemand(len(tasks), lambda k: self._data(tasks[k]))):
            seconds = (time.perf_counter() - started) / max(1, len(trained))
            for k in trained:
                self._score(k, partial(self.lanes[k].end_task, seconds))
            yield {k: self.lanes[k].after_task() for k in trained if self.fault(k) is None}
            started = time.perf_counter()

    def _data(self, task: TensorTask) -> LaneData:
        """The data of a task, which all lanes share."""
        x, y, head = task.points
        return LaneData(x[None], y[None], torch.tensor([len(y)] * len(self.lanes)), int(head))

    def _score(self, lane: int, score: Callable[[], None]) -> None:
        """Score a lane; it stops if its predictions are not numbers."""
        try:
            score()
        except Diverged as fault:
            self.trainer.lanes[lane].fault = fault

    def _on_epoch(self, lane: int, task: int, epoch: int) -> None:
        self._report(lane, self.lanes[lane].after_epoch(task + 1, epoch, {}))


def _lane(recipe: Recipe, seed: int, network: nn.Module) -> LaneRun:
    """The training of a lane."""
    return LaneRun(
        method_of(recipe, network),
        lambda task: task_seed(seed, task + 1),
        recipe.learning_rate,
        recipe.rho_learning_rate,
        lambda task: recipe.epochs_of(task + 1),
        SCHEDULES[recipe.schedule],
    )
