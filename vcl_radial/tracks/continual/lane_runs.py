"""The continual track for many runs of one shape at once, as lanes of one program.

A lane gives the same numbers as a `ContinualRun` with the same seed and recipe, up to the rounding
of batched products: it has a separate generator with the seed of that run, and draws from it in the
same order. Every lane has a network with heads, consolidation, predictions, checkpoints and scores;
only training is done for all lanes together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vcl_radial.data.streams.tensors import Split, TensorStream
from vcl_radial.errors import Diverged
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import Method
from vcl_radial.methods.carried import carried_bytes
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.registry import built_in, built_in_class
from vcl_radial.nn.carry import consolidate
from vcl_radial.nn.lane_step import LaneSettings, Loss, categorical_loss
from vcl_radial.nn.lanes import Lanes
from vcl_radial.nn.movement import movement
from vcl_radial.optimizers.schedules import SCHEDULES
from vcl_radial.runs.keys import declared
from vcl_radial.runs.training import Step
from vcl_radial.tracks.continual.cuda_graph import Replayed
from vcl_radial.tracks.continual.evaluation import evaluate
from vcl_radial.tracks.continual.methods import likelihood_of
from vcl_radial.tracks.continual.networks import make_network, stream_for
from vcl_radial.tracks.continual.progress import TaskRun
from vcl_radial.tracks.continual.settings import Recipe, StreamSettings
from vcl_radial.tracks.continual.training import task_seed
from vcl_radial.training.trainer import Trainer

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
    return recipe.model_dump_json(exclude=MAY_DIFFER)


def _loss(recipe: Recipe) -> Loss:
    """The mean NLL of each lane."""
    likelihood = likelihood_of(recipe)
    if likelihood is None:
        return categorical_loss
    return lambda outputs, targets: likelihood.nll_per_point(outputs, targets).mean(-1)


class Lane(TaskRun):
    """One of the runs that are trained as one program."""

    def __init__(
        self,
        stream: TensorStream,
        recipe: Recipe,
        seed: int,
        method: Method,
        on_epoch: Callable[[int, int], None],
    ) -> None:
        super().__init__(stream, recipe, method.network)
        self.seed, self.method, self.on_epoch = seed, method, on_epoch
        self.done = 0
        self.fault: Diverged | None = None
        self.left_out = False

    @property
    def tasks_done(self) -> int:
        """Number of tasks that are trained."""
        return self.done

    @property
    def carried_bytes(self) -> int:
        """Bytes that the method keeps after the last task."""
        return carried_bytes(self.network.state_dict(), self._start)

    def trainer_state(self) -> dict[str, Any]:
        """The state of a trainer between tasks."""
        states = [{"network": self.network.state_dict()}] if self.done else []
        return Trainer.state_between_tasks(states, self.done)

    def load_trainer_state(self, state: dict[str, Any]) -> None:
        """Load what `trainer_state` returned."""
        for carried in state["states"]:
            self.network.load_state_dict(carried["network"])
        self.done = state["done"]

    def steps(self) -> Iterator[Step]:
        """Raise: lanes are trained together, by `LaneRuns`."""
        raise NotImplementedError


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
        evaluate_on: Split = "test",
        data_dir: Path | None = None,
        device: str = "cpu",
        on_epoch: Callable[[int, int, int], None] = lambda lane, task, epoch: None,
    ) -> None:
        if len({shape(recipe) for recipe in recipes}) != 1 or shape(recipes[0]) is None:
            raise ValueError("the recipes of lanes must have one shape")
        if settings.varies_with_seed and len(set(seeds)) != 1:
            raise ValueError("lanes share one stream, but here the stream depends on the seed")
        torch.set_flush_denormal(True)
        stream = stream_for(settings, recipes[0], data_dir, seeds[0])
        recipes[0].check_batches(min(map(len, stream.train)))
        self.evaluate_on = evaluate_on
        self.lanes: list[Lane] = []
        for recipe, seed in zip(recipes, seeds, strict=True):
            with seeded_rng(task_seed(seed, 0), torch.device("cpu")):
                samples = 1 if recipe.posterior == "none" else recipe.eval_samples
                network = make_network(stream, recipe)
            network = network.to(device).eval()
            predicting = Naive(network, eval_samples=samples, likelihood=likelihood_of(recipe))
            report = partial(on_epoch, len(self.lanes))
            self.lanes.append(Lane(stream, recipe, seed, predicting, report))
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
            method.begin_lane(lane.network, [label], **recipe.options)
        stacked = Lanes([lane.network for lane in lanes], label)
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
            lane.done += 1
            lane.layers += [(lane.tasks_done, x) for x in movement(lane.network, [label])]
            consolidate(lane.network, [label])
            lane.seconds["training"] += seconds

    def _epoch(
        self, step: Replayed, orders: Sequence[torch.Generator], points: int, recipe: Recipe
    ) -> Tensor:
        """Train every active lane on the task, in its order of batches; return the last losses."""
        order = torch.stack([torch.randperm(points, generator=g) for g in orders]).to(self.device)
        size = recipe.batch_size
        end = points - points % size if recipe.drop_last else points
        losses = torch.zeros(len(orders))
        for start in range(0, end, size):
            losses = step(order[:, start : min(start + size, end)])
        return losses

    def _evaluate(self, lanes: list[Lane]) -> None:
        for lane in lanes:
            started = time.perf_counter()
            try:
                lane.rows += evaluate(lane.method, self.stream, self.evaluate_on, lane.tasks_done)
            except Diverged as fault:
                lane.fault = fault
            lane.seconds["evaluation"] += time.perf_counter() - started
