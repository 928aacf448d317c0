"""The continual track for many runs of one shape at once, as lanes of one program.

A lane ends with the numbers of `ContinualRun` with its seed and recipe, up to the rounding of
batched products: it has its own generator, seeded as that run is, and draws from it in the same
order. Heads, consolidation, predictions, checkpoints and scores are those of the lanes' own
networks; only training is done for all lanes together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vcl_radial.errors import Diverged
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import Method
from vcl_radial.methods.carried import carried_bytes, contents
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.registry import built_in, built_in_class
from vcl_radial.nn.carry import consolidate
from vcl_radial.nn.lane_step import LaneSettings, Loss, categorical_loss
from vcl_radial.nn.lanes import Lanes
from vcl_radial.nn.movement import LayerMovement, layer_starts, movement
from vcl_radial.optimizers.schedules import SCHEDULES
from vcl_radial.runs.keys import declared
from vcl_radial.strategies.scores import scores_of
from vcl_radial.strategies.task_model import TaskModel
from vcl_radial.tracks.continual.cuda_graph import Replayed
from vcl_radial.tracks.continual.networks import make_network, stream_for
from vcl_radial.tracks.continual.settings import Recipe, StreamSettings
from vcl_radial.tracks.continual.training import (
    EVAL_BATCH,
    Scored,
    evaluated_tasks,
    likelihood_of,
    newest_classes,
    share_predicted_as,
    task_seed,
)

MAY_DIFFER = declared(Recipe, lanes="may differ")
"""Keys of a recipe in which lanes of one program may differ; the others make its shape."""


@cache
def lane_method(strategy: str) -> type[Method] | None:
    """The class of a method whose runs can be lanes; None if they train one by one."""
    method = built_in_class(strategy) if strategy in built_in() else None
    return method if method is not None and vars(method).get("lane_step") else None


def shape(recipe: Recipe) -> str | None:
    """Keys that the recipes of one program share, as JSON; None for a recipe that runs alone."""
    method = lane_method(recipe.strategy)
    if method is None or recipe.optimizer == "sgd" or set(recipe.options) - method.lane_options:
        return None
    if (recipe.posterior == "none") != (recipe.strategy == "naive"):
        return None
    family = recipe.family
    has_lanes = recipe.posterior == "none" or (family is not None and family.has_lanes)
    if not has_lanes or recipe.network is not None:
        return None
    return recipe.model_dump_json(exclude=MAY_DIFFER)


def _loss(recipe: Recipe) -> Loss:
    """The mean NLL of each lane."""
    likelihood = likelihood_of(recipe)
    if likelihood is None:
        return categorical_loss
    return lambda outputs, targets: likelihood.nll_per_point(outputs, targets).mean(-1)


class Lane(Scored):
    """State of one run; it has the fields of `ContinualRun`."""

    def __init__(self, recipe: Recipe, seed: int, model: TaskModel, on_epoch: Any) -> None:
        self.recipe, self.seed, self.model, self.on_epoch = recipe, seed, model, on_epoch
        self.starts = layer_starts(model.network)
        self._start = contents(model.network.state_dict())
        self.rows: list[tuple[int, int, str, float]] = []
        self.layers: list[tuple[int, LayerMovement]] = []
        self.tasks_done = 0
        self.seconds = {"training": 0.0, "evaluation": 0.0}
        self.fault: Diverged | None = None
        self.left_out = False

    iterations = 0
    """Training steps are not counted."""

    @property
    def parameters(self) -> int:
        """Number of trained numbers of the network, as `ContinualRun` counts them."""
        return sum(p.numel() for p in self.model.network.parameters())

    @property
    def carried_bytes(self) -> int:
        """Bytes that the method keeps after the last task."""
        return carried_bytes(self.model.state_dict(), self._start)

    def state_dict(self) -> dict[str, Any]:
        """The state; `ContinualRun` and a lane can resume from each other's."""
        return {
            "strategy": {"model": self.model.state_dict()},
            "rows": self.rows,
            "layers": [(task, *layer) for task, layer in self.layers],
            "tasks_done": self.tasks_done,
            "seconds": self.seconds,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from what `state_dict` gave."""
        self.model.load_state_dict(state["strategy"]["model"])
        self.rows = [tuple(row) for row in state["rows"]]
        self.layers = [(task, LayerMovement(*layer)) for task, *layer in state["layers"]]
        self.tasks_done, self.seconds = state["tasks_done"], dict(state["seconds"])


class LaneRuns:
    """Runs in progress that share a stream and the shape of their recipes.

    Args:
        settings: the task sequence.
        recipes: one for each lane, all of one `shape`.
        seeds: one for each lane.
        evaluate_on: "test" or "validation".
        data_dir: folder of the data; see `vcl_radial.data.streams`.
        device: the device of networks and data.
        on_epoch: called after every epoch with the lane, and its task and epoch (from 1).
    """

    def __init__(
        self,
        settings: StreamSettings,
        recipes: Sequence[Recipe],
        seeds: Sequence[int],
        *,
        evaluate_on: str = "test",
        data_dir: Path | None = None,
        device: str = "cpu",
        on_epoch: Callable[[int, int, int], None] = lambda lane, task, epoch: None,
    ) -> None:
        if len({shape(recipe) for recipe in recipes}) != 1 or shape(recipes[0]) is None:
            raise ValueError("the recipes of lanes must have one shape")
        if settings.varies_with_seed and len(set(seeds)) != 1:
            raise ValueError("lanes have one stream, and here each seed has its own")
        torch.set_flush_denormal(True)
        stream = stream_for(settings, recipes[0], data_dir, seeds[0])
        recipes[0].check_batches(min(map(len, stream.train)))
        self.evaluate_on = evaluate_on
        self.lanes: list[Lane] = []
        for recipe, seed in zip(recipes, seeds, strict=True):
            with seeded_rng(task_seed(seed, 0), torch.device("cpu")):
                samples = 1 if recipe.posterior == "none" else recipe.eval_samples
                network = make_network(stream, recipe)
            predicting = Naive(network, eval_samples=samples, likelihood=likelihood_of(recipe))
            model = TaskModel(predicting)
            model = model.to(device).eval()
            number = len(self.lanes)
            self.lanes.append(
                Lane(recipe, seed, model, lambda t, e, lane=number: on_epoch(lane, t, e))
            )
        self.stream = stream.to(device)
        self.device = torch.device(device)

    @property
    def tasks(self) -> int:
        """The number of tasks, T."""
        return self.stream.n_tasks

    def leave_out(self, lane: int) -> None:
        """Stop training a lane."""
        self.lanes[lane].left_out = True

    def finish_tasks(self) -> Iterator[list[int]]:
        """Train and score the remaining tasks; yield the lanes that finished another task.

        A lane that diverges stops; its `fault` says why.
        """
        new = [lane for lane in self.lanes if not lane.rows and not lane.left_out]
        if new:
            self._evaluate(new)
        while unfinished := self._unfinished():
            done = min(lane.tasks_done for lane in unfinished)
            together = [lane for lane in unfinished if lane.tasks_done == done]
            self._train(together, done)
            together = [lane for lane in together if lane.fault is None]
            if together:
                self._evaluate(together)
            yield [i for i, x in enumerate(self.lanes) if x in together and x.fault is None]

    def _unfinished(self) -> list[Lane]:
        active = [lane for lane in self.lanes if lane.fault is None and not lane.left_out]
        return [lane for lane in active if lane.tasks_done < self.tasks]

    def _train(self, lanes: list[Lane], task: int) -> None:
        """Train a task (from 0) in lanes that have reached it, and consolidate it."""
        started = time.perf_counter()
        # Sort by epochs, descending, so that active lanes form a prefix.
        epochs = {lane: lane.recipe.epochs_of(task + 1) for lane in lanes}
        lanes = sorted(lanes, key=lambda lane: -epochs[lane])
        recipe, label = lanes[0].recipe, self.stream.task_label(task)
        x, y = self.stream.inputs(task, "train"), self.stream.labels(task, "train")
        seeds = [task_seed(lane.seed, task + 1) for lane in lanes]
        orders = [torch.Generator().manual_seed(seed) for seed in seeds]
        draws = orders
        if self.device.type == "cuda":
            draws = [torch.Generator(self.device).manual_seed(seed) for seed in seeds]
        method = lane_method(recipe.strategy)
        assert method is not None  # `shape` has checked it
        assert method.lane_step is not None
        for lane in lanes:
            method.begin_lane(lane.model.network, [label], **recipe.options)
        stacked = Lanes([lane.model.network for lane in lanes], label)
        step = Replayed(
            method.lane_step(
                stacked,
                [
                    LaneSettings(
                        lane.recipe.learning_rate,
                        lane.recipe.rho_learning_rate or lane.recipe.learning_rate,
                        lane.recipe.kl_weight / len(y),
                    )
                    for lane in lanes
                ],
                draws,
                x,
                y,
                samples=recipe.train_samples,
                amsgrad=recipe.optimizer == "amsgrad",
                loss=_loss(recipe),
            )
        )
        for epoch in range(1, epochs[lanes[0]] + 1):
            active = [lane for lane in lanes if epochs[lane] >= epoch]
            step.scale_rates(
                [SCHEDULES[x.recipe.schedule]((epoch - 1) / epochs[x]) for x in active]
            )
            losses = self._epoch(step, orders[: len(active)], len(y), recipe)
            finite = torch.isfinite(losses).tolist()
            for lane, is_finite, loss in zip(active, finite, losses.tolist(), strict=True):
                if not is_finite and lane.fault is None:
                    lane.fault = Diverged(
                        f"the loss became {loss} in epoch {epoch} of task {task + 1}; "
                        "try a smaller learning_rate"
                    )
                lane.on_epoch(task + 1, epoch)
        stacked.write_back()
        seconds = (time.perf_counter() - started) / len(lanes)
        for lane in lanes:
            lane.tasks_done += 1
            lane.model.add_task(label, self.stream.n_classes)
            lane.layers += [(lane.tasks_done, x) for x in movement(lane.model.network, [label])]
            consolidate(lane.model.network, [label])
            lane.seconds["training"] += seconds

    def _epoch(
        self, step: Replayed, orders: Sequence[torch.Generator], points: int, recipe: Recipe
    ) -> Tensor:
        """Train every active lane on the task in the lane's own order; return the last losses."""
        order = torch.stack([torch.randperm(points, generator=g) for g in orders]).to(self.device)
        size = recipe.batch_size
        end = points - points % size if recipe.drop_last else points
        losses = torch.zeros(len(orders))
        for start in range(0, end, size):
            losses = step(order[:, start : min(start + size, end)])
        return losses

    def _evaluate(self, lanes: list[Lane]) -> None:
        started = time.perf_counter()
        done = lanes[0].tasks_done
        newest = newest_classes(self.stream, done)
        for task in evaluated_tasks(self.stream, done):
            labels = self.stream.labels(task, self._part)
            for lane in lanes:
                predictions, spread = self._predictions(lane, task)
                try:
                    scores = scores_of(predictions, labels, spread)
                except Diverged as fault:
                    lane.fault = fault
                    continue
                if newest is not None:
                    scores["predicted_as_newest"] = share_predicted_as(newest, predictions)
                lane.rows += [(done, task + 1, name, value) for name, value in scores.items()]
        seconds = (time.perf_counter() - started) / len(lanes)
        for lane in lanes:
            lane.seconds["evaluation"] += seconds

    @property
    def _part(self) -> Any:
        return self.evaluate_on

    @torch.no_grad()
    def _predictions(self, lane: Lane, task: int) -> tuple[Tensor, Tensor]:
        """Predictions of a lane for a task, as those of a run alone.

        Returns the log-predictive `[n, C]` in nats, and its spread over draws, `[n]` in per cent.
        """
        label, method = self.stream.task_label(task), lane.model.method
        parts = []
        for batch in torch.split(self.stream.inputs(task, self._part), EVAL_BATCH):
            prediction = method.predict(batch, label)
            assert method.sampling is not None
            parts.append((prediction, method.sampling))
        predictions, spread = map(torch.cat, zip(*parts, strict=True))
        return predictions, spread
