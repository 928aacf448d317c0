"""The continual track: one run of a method over a task sequence, trained and scored.

For every task: train against the carried prior, consolidate, evaluate every task. All randomness
of task t comes from (seed, t) alone, so that a run that resumes from a checkpoint ends with the
same bytes as one that was never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from avalanche.core import SupervisedPlugin
from avalanche.evaluation import PluginMetric
from avalanche.training.determinism.rng_manager import RNGManager
from avalanche.training.plugins import EvaluationPlugin
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam, Optimizer

from vcl_radial.data.streams import TensorStream, to_avalanche
from vcl_radial.likelihoods import OneHot
from vcl_radial.methods.base import Method
from vcl_radial.methods.carried import carried_bytes, contents
from vcl_radial.methods.options import not_made, require_base
from vcl_radial.methods.registry import find_method
from vcl_radial.nn import variational_weights
from vcl_radial.nn.movement import LayerMovement, layer_starts
from vcl_radial.optimizers.schedules import SCHEDULES
from vcl_radial.strategies.base import ContinualStrategy, Strategy
from vcl_radial.strategies.scores import Scores
from vcl_radial.strategies.task_model import TaskModel
from vcl_radial.strategies.upkeep import Upkeep
from vcl_radial.system.seeds import seed_of
from vcl_radial.tracks.continual.networks import make_network, stream_for
from vcl_radial.tracks.continual.settings import Recipe, StreamSettings
from vcl_radial.tracks.methods import draws, settings_of

EVAL_BATCH = 16_384
"""Maximum rows of an evaluation batch; predictions do not depend on it."""

EVAL_NUMBERS = 2**23
"""Maximum input numbers of an evaluation batch: a convolution makes many of each."""

OnEpoch = Callable[[int, int, Mapping[str, float]], None]
"""A function of the task and epoch (from 1) that just ended, and means over its batches."""


class Scored:
    """The scores of a run in progress, and how far its posterior moved."""

    rows: list[tuple[int, int, str, float]]
    layers: list[tuple[int, LayerMovement]]
    tasks_done: int

    def accuracy(self) -> pd.DataFrame:
        """The tidy scores so far: `task_trained, task_evaluated, metric, value`."""
        return pd.DataFrame(
            self.rows, columns=["task_trained", "task_evaluated", "metric", "value"]
        )

    def movement(self) -> pd.DataFrame:
        """How far the posterior moved in each task: `task_trained` and `LayerMovement`'s fields."""
        return movement_table(self.layers)

    def average_accuracy(self) -> float:
        """The mean accuracy over the tasks trained so far, in per cent."""
        last = [v for i, j, m, v in self.rows if i == self.tasks_done >= j and m == "accuracy"]
        return sum(last) / len(last)


class ContinualRun(Scored):
    """A run in progress.

    Args:
        settings: the task sequence.
        recipe: the method.
        seed: seed of the initial weights, the batches and the weight samples.
        evaluate_on: "test" or "validation".
        data_dir: folder of the data; see `vcl_radial.data.streams`.
        device: the device of network and data.
        on_epoch: called after every epoch.
        watched: whether it is called with `nll` (nats per point) and `accuracy` (per cent).
    """

    def __init__(
        self,
        settings: StreamSettings,
        recipe: Recipe,
        seed: int,
        *,
        evaluate_on: str = "test",
        data_dir: Path | None = None,
        device: str = "cpu",
        on_epoch: OnEpoch = lambda task, epoch, scalars: None,
        watched: bool = False,
    ) -> None:
        # A network trained to a loss near 0 meets denormal numbers, and they are slow.
        torch.set_flush_denormal(True)
        self.seed, self.recipe = seed, recipe
        self.stream = stream_for(settings, recipe, data_dir, seed)
        recipe.check_batches(min(map(len, self.stream.train)))
        benchmark = to_avalanche(self.stream)
        self.train_experiences = list(benchmark.train_stream)
        self.eval_experiences = list(
            benchmark.streams[{"validation": "valid"}.get(evaluate_on, evaluate_on)]
        )
        self.scores = Scores()
        means = _EpochMeans() if watched else None
        self._seed_task(0)
        self.strategy = make_strategy(
            recipe,
            make_network(self.stream, recipe),
            tensor_stream=self.stream.to(device),
            device=device,
            evaluator=EvaluationPlugin(self.scores, *([means] if means else []), loggers=[]),
            plugins=[_EpochCallback(on_epoch, means), Upkeep()],
        )
        self.starts = layer_starts(self.strategy.network)
        self._start = contents(self.strategy.network.state_dict())
        self.rows: list[tuple[int, int, str, float]] = []
        self.layers: list[tuple[int, LayerMovement]] = []
        self.tasks_done = 0
        self.seconds = {"training": 0.0, "evaluation": 0.0}

    @property
    def tasks(self) -> int:
        """The number of tasks, T."""
        return len(self.train_experiences)

    @property
    def trainings(self) -> int:
        """Number of trainings: one per task, or one for all tasks."""
        return 1 if self.strategy.needs_whole_stream else self.tasks

    @property
    def iterations(self) -> int:
        """The training steps made so far."""
        return int(self.strategy.clock.train_iterations)

    @property
    def parameters(self) -> int:
        """Number of trained numbers of the network; a Gaussian weight has two."""
        return sum(p.numel() for p in self.strategy.network.parameters())

    @property
    def carried_bytes(self) -> int | None:
        """Bytes that the method keeps after the last task; None if it learns all tasks at once."""
        if self.trainings == 1:
            return None
        return carried_bytes(self.strategy.state_dict(), self._start)

    def finish_tasks(self) -> Iterator[int]:
        """Train and score the remaining tasks; yield the number of tasks done after each step."""
        if not self.rows:
            self._evaluate()
        while self.tasks_done < self.tasks:
            at_once = self.tasks if self.strategy.needs_whole_stream else 1
            experiences = self.train_experiences[self.tasks_done : self.tasks_done + at_once]
            self._seed_task(self.tasks_done + at_once)
            self.strategy.train_epochs = self.recipe.epochs_of(self.tasks_done + 1)
            started = time.perf_counter()
            self.strategy.train(experiences, eval_streams=[])
            self.seconds["training"] += time.perf_counter() - started
            self.tasks_done += at_once
            self.layers += [(self.tasks_done, layer) for layer in self.strategy.movement]
            self._evaluate()
            yield self.tasks_done

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers from which the run resumes."""
        return {
            "strategy": self.strategy.state_dict(),
            "rows": self.rows,
            "layers": [(task, *layer) for task, layer in self.layers],
            "tasks_done": self.tasks_done,
            "iterations": self.iterations,
            "seconds": self.seconds,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from what `state_dict` gave."""
        self.strategy.load_state_dict(state["strategy"])
        self.rows = [tuple(row) for row in state["rows"]]
        self.layers = [(task, LayerMovement(*layer)) for task, *layer in state["layers"]]
        self.tasks_done, self.seconds = state["tasks_done"], state["seconds"]
        # The clock decides nothing but where a logger puts a point; lanes do not keep it.
        self.strategy.clock.train_iterations = state.get("iterations", 0)

    def _evaluate(self) -> None:
        started = time.perf_counter()
        newest = (
            None
            if self.strategy.needs_whole_stream
            else newest_classes(self.stream, self.tasks_done)
        )
        for task in evaluated_tasks(self.stream, self.tasks_done):
            self.strategy.eval([self.eval_experiences[task]])
            scores = dict(self.scores.values)
            if newest is not None and self.scores.predictions is not None:
                scores["predicted_as_newest"] = share_predicted_as(newest, self.scores.predictions)
            self.rows += [(self.tasks_done, task + 1, name, v) for name, v in scores.items()]
        self.seconds["evaluation"] += time.perf_counter() - started

    def _seed_task(self, task: int) -> None:
        RNGManager.set_random_seeds(task_seed(self.seed, task))


def movement_table(layers: Sequence[tuple[int, LayerMovement]]) -> pd.DataFrame:
    """A row for each task and layer; none for a method without a posterior and a prior."""
    columns = ["task_trained", *LayerMovement._fields]
    return pd.DataFrame([(task, *layer) for task, layer in layers], columns=columns)


class _EpochMeans(PluginMetric[float]):
    """Means over the training batches of an epoch.

    Avalanche's mean of the loss cannot be compared between methods: some losses have the gradient
    of their penalty without its value.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def reset(self, **kwargs: Any) -> None:
        """Reset all means."""
        self.points, self.nll, self.correct = 0, 0.0, 0

    def before_training_epoch(self, strategy: Any) -> None:
        """Drop batches that a method trained before the task's epochs, by another objective."""
        self.reset()

    def result(self, **kwargs: Any) -> float | None:
        """Return nothing: Avalanche's loggers show no such metric."""

    def after_training_iteration(self, strategy: Any) -> None:
        """Count a batch."""
        output, y = strategy.mb_output.detach(), strategy.mb_y
        self.points += len(y)
        self.nll += float(cross_entropy(output, y, reduction="sum"))
        self.correct += int((output.argmax(-1) == y).sum())

    def take(self) -> dict[str, float]:
        """Return NLL in nats per point and accuracy in per cent, and reset."""
        means = {"nll": self.nll / self.points, "accuracy": 100 * self.correct / self.points}
        self.reset()
        return means


class _EpochCallback(SupervisedPlugin):
    def __init__(self, on_epoch: OnEpoch, means: _EpochMeans | None) -> None:
        super().__init__()
        self.on_epoch, self.means = on_epoch, means

    def after_training_epoch(self, strategy: Any, **kwargs: Any) -> None:
        task = strategy.experience.current_experience + 1
        means = {} if self.means is None else self.means.take()
        self.on_epoch(task, strategy.clock.train_exp_epochs + 1, means)


def task_seed(seed: int, task: int) -> int:
    """The seed of all randomness of a task; task 0 is before the first."""
    return seed_of(seed, task)


def evaluated_tasks(stream: TensorStream, tasks_done: int) -> range:
    """The tasks (from 0) that are scored after `tasks_done` tasks: the trained ones.

    With one head for all tasks, forward transfer needs the next task too, and before the first
    task all of them. A head that has not been trained predicts by chance.
    """
    if stream.multi_head:
        return range(tasks_done)
    return range(min(tasks_done + 1, stream.n_tasks) if tasks_done else stream.n_tasks)


def newest_classes(stream: TensorStream, tasks_done: int) -> torch.Tensor | None:
    """The classes of the last trained task, if all tasks share one head of classes."""
    if tasks_done == 0 or stream.multi_head:
        return None
    newest = stream.task_classes[tasks_done - 1]
    return torch.tensor(newest) if len(newest) < stream.n_classes else None


def share_predicted_as(classes: torch.Tensor, predictions: torch.Tensor) -> float:
    """Share of predictions `[B, C]` that are of these classes, in per cent."""
    return 100 * torch.isin(predictions.argmax(-1).cpu(), classes).double().mean().item()


def make_strategy(recipe: Recipe, network: nn.Module, **settings: Any) -> ContinualStrategy:
    """Make the strategy of a recipe with its `options`.

    Raises:
        UserError: the method does not take these options, or its constructor lacks a base argument.
    """
    cls = find_method(recipe.strategy)
    arguments = {
        "kl_weight": recipe.kl_weight,
        "train_samples": recipe.train_samples,
        "eval_samples": recipe.eval_samples if draws(recipe, cls) else 1,
        "loss_value": False,
        **settings_of(recipe, cls),
    }
    if (likelihood := likelihood_of(recipe)) is not None:
        arguments["likelihood"] = likelihood
    settings |= {
        "optimizer": optimizer_for(recipe),
        "train_mb_size": recipe.batch_size,
        "train_epochs": recipe.epochs,
        "eval_mb_size": _eval_batch(settings.get("tensor_stream")),
        "drop_last": recipe.drop_last,
        "schedule": SCHEDULES[recipe.schedule],
    }
    try:
        if issubclass(cls, Method):
            method = cls(network, **arguments)
            require_base(method)
            strategy: ContinualStrategy = Strategy(method, **settings)
        else:
            strategy = cls(model=network, **arguments, **settings)
            require_base(strategy)
    except (TypeError, ValueError) as error:
        raise not_made(recipe.strategy, cls, recipe.options, error) from error
    if isinstance(strategy.model, TaskModel) and list(variational_weights(strategy.network, [])):
        strategy.method.eval_samples = recipe.eval_samples  # the class has made its own posterior
    return strategy


def likelihood_of(recipe: Recipe) -> OneHot | None:
    """The likelihood of a recipe's classes; None for a softmax, every method's default."""
    if recipe.likelihood == "categorical":
        return None
    return OneHot(recipe.label_variance, recipe.label_scale)


def _eval_batch(stream: TensorStream | None) -> int:
    if stream is None:
        return EVAL_BATCH
    return min(EVAL_BATCH, max(1, EVAL_NUMBERS // stream.x[0].numel()))


def optimizer_for(recipe: Recipe) -> Callable[[nn.Module], Optimizer]:
    """A function that makes the recipe's optimiser, with another learning rate for spreads."""

    def make(model: nn.Module) -> Optimizer:
        spreads = ("rho", "log_concentration", "factor")
        rho = {id(p) for name, p in model.named_parameters() if name.endswith(spreads)}
        groups: list[dict[str, Any]] = [
            {"params": [p for p in model.parameters() if id(p) not in rho]},
            {
                "params": [p for p in model.parameters() if id(p) in rho],
                "lr": recipe.rho_learning_rate or recipe.learning_rate,
            },
        ]
        groups = [group for group in groups if group["params"]]
        if recipe.optimizer == "sgd":
            return SGD(groups, lr=recipe.learning_rate)
        amsgrad = recipe.optimizer == "amsgrad"
        return Adam(groups, lr=recipe.learning_rate, amsgrad=amsgrad, fused=True)

    return make
