"""An Avalanche strategy, trained by Avalanche's loop task by task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.determinism.rng_manager import RNGManager

from vcl_radial.data.streams import TensorStream, to_avalanche
from vcl_radial.data.streams.tensors import Split
from vcl_radial.integrations.avalanche.base import ContinualStrategy
from vcl_radial.integrations.avalanche.upkeep import Upkeep
from vcl_radial.training.seeds import SeedOf


class StrategyTrainer:
    """Trains a strategy as `vcl_radial.training.trainer.Trainer` trains a method.

    Args:
        strategy: the strategy.
        stream: the stream, on the strategy's device.
        epochs_of: epochs of a task (from 1).
        seed_of: seed of each task.
        on_epoch: called with a task and its epoch, both from 1, and an empty mapping.
        on_iterations: called after every epoch with the number of steps so far.
        evaluate_on: the part of the stream for the strategy's metrics: "test" or "validation"; None
            to compute none.
    """

    def __init__(
        self,
        strategy: ContinualStrategy,
        stream: TensorStream,
        epochs_of: Callable[[int], int],
        seed_of: SeedOf,
        on_epoch: Callable[[int, int, Mapping[str, float]], None],
        on_iterations: Callable[[int], None],
        evaluate_on: Split | None = None,
    ) -> None:
        self.strategy, self.method = strategy, strategy.method
        vars(self.method)["needs_whole_stream"] = strategy.needs_whole_stream
        self.benchmark = to_avalanche(stream)
        """The stream as Avalanche's benchmark."""
        streams = self.benchmark.streams
        self._experiences = list(streams["train"])
        self._held_out = list(streams.get("valid", ()))
        scored = {"test": streams["test"], "validation": self._held_out, None: ()}
        self._scored = list(scored[evaluate_on])
        self._multi_head = stream.multi_head
        self._epochs_of, self._seed_of = epochs_of, seed_of
        # Before Avalanche's clock, whose counts they read.
        strategy.plugins = [_Callbacks(on_epoch, on_iterations), Upkeep(), *strategy.plugins]
        self.done = 0
        """Number of finished trainings."""
        self.metrics: list[tuple[int, str, float]] = []
        """Values of the strategy's metrics: number of trained tasks, name and value."""

    @property
    def states(self) -> list[dict[str, Any]]:
        """The strategy's state after the last task."""
        return [self.strategy.state_dict()]

    def steps(self, source: object) -> Iterator[int]:
        """Train on the remaining tasks; yield after each."""
        at_once = self.strategy.needs_whole_stream
        tasks = range(len(self._experiences))
        parts = [tasks] if at_once else [range(task, task + 1) for task in tasks]
        for part in parts[self.done :]:
            RNGManager.set_random_seeds(self._seed_of("task", self.done, 0))
            self.strategy.train_epochs = self._epochs_of(self.done + 1)
            self.strategy.evaluator.reset_last_metrics()
            self.strategy.train(
                [self._experiences[task] for task in part],
                # `eval_every` of the strategy decides how often they are evaluated.
                eval_streams=[self._held_out[task] for task in part if self._held_out],
            )
            self.done += 1
            self._evaluate(part.stop)
            yield self.done

    def _evaluate(self, trained: int) -> None:
        """Compute the metrics: on trained tasks, or on all if these share a head."""
        scored = self._scored[:trained] if self._multi_head else self._scored
        if not scored:
            return
        self.strategy.eval(scored)
        for name, value in self.strategy.evaluator.get_last_metrics().items():
            if isinstance(value, int | float) or (torch.is_tensor(value) and value.numel() == 1):
                self.metrics.append((trained, name, float(value)))

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers from which the training continues."""
        iterations = int(self.strategy.clock.train_iterations)
        state = self.strategy.state_dict()
        return {"strategy": state, "done": self.done, "iterations": iterations}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self.strategy.load_state_dict(state["strategy"])
        self.done = state["done"]
        self.strategy.clock.train_iterations = state["iterations"]


class _Callbacks(SupervisedPlugin):
    """It has no callback of a step, since one that may read gradients makes steps slower."""

    def __init__(
        self,
        on_epoch: Callable[[int, int, Mapping[str, float]], None],
        on_iterations: Callable[[int], None],
    ) -> None:
        super().__init__()
        self._on_epoch, self._on_iterations = on_epoch, on_iterations

    def after_training_epoch(self, strategy: Any, **kwargs: Any) -> None:
        task = strategy.experience.current_experience + 1
        self._on_iterations(int(strategy.clock.train_iterations))
        self._on_epoch(task, strategy.clock.train_exp_epochs + 1, {})
