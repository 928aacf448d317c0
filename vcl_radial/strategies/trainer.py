"""A user's own Avalanche strategy, trained by Avalanche's loop task by task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from avalanche.core import SupervisedPlugin
from avalanche.training.determinism.rng_manager import RNGManager

from vcl_radial.data.streams import TensorStream, to_avalanche
from vcl_radial.strategies.base import ContinualStrategy
from vcl_radial.strategies.upkeep import Upkeep
from vcl_radial.training.seeds import SeedOf


class StrategyTrainer:
    """Trains a strategy as `vcl_radial.training.trainer.Trainer` trains a method.

    Args:
        strategy: the strategy.
        stream: the stream, on the strategy's device.
        epochs_of: epochs of a task (from 1).
        seed_of: seed of each task.
        on_epoch: called with a task and an epoch of it, both from 1, and no means.
        on_step: called after every step.
    """

    def __init__(
        self,
        strategy: ContinualStrategy,
        stream: TensorStream,
        epochs_of: Callable[[int], int],
        seed_of: SeedOf,
        on_epoch: Callable[[int, int, Mapping[str, float]], None],
        on_step: Callable[[], None],
    ) -> None:
        self.strategy, self.method = strategy, strategy.method
        vars(self.method)["needs_whole_stream"] = strategy.needs_whole_stream
        self._experiences = list(to_avalanche(stream).train_stream)
        self._epochs_of, self._seed_of = epochs_of, seed_of
        # Before Avalanche's clock, whose counts they read.
        strategy.plugins = [_Callbacks(on_epoch, on_step), Upkeep(), *strategy.plugins]
        self.done = 0
        """Number of finished tasks."""

    @property
    def states(self) -> list[dict[str, Any]]:
        """The strategy's state after the last task."""
        return [self.strategy.state_dict()]

    def steps(self, source: object) -> Iterator[int]:
        """Train on the remaining tasks; yield after each."""
        at_once = self.strategy.needs_whole_stream
        parts = [self._experiences] if at_once else [[part] for part in self._experiences]
        for experiences in parts[self.done :]:
            RNGManager.set_random_seeds(self._seed_of("task", self.done, 0))
            self.strategy.train_epochs = self._epochs_of(self.done + 1)
            self.strategy.train(experiences, eval_streams=[])
            self.done += 1
            yield self.done

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers from which the training continues."""
        return {"strategy": self.strategy.state_dict(), "done": self.done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self.strategy.load_state_dict(state["strategy"])
        self.done = state["done"]


class _Callbacks(SupervisedPlugin):
    def __init__(
        self,
        on_epoch: Callable[[int, int, Mapping[str, float]], None],
        on_step: Callable[[], None],
    ) -> None:
        super().__init__()
        self._on_epoch, self._on_step = on_epoch, on_step

    def after_training_iteration(self, strategy: Any, **kwargs: Any) -> None:
        self._on_step()

    def after_training_epoch(self, strategy: Any, **kwargs: Any) -> None:
        task = strategy.experience.current_experience + 1
        self._on_epoch(task, strategy.clock.train_exp_epochs + 1, {})
