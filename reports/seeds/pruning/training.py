"""The part of the training that all networks to be pruned share."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from reports.seeds.pruning.settings import NUMBERS, PruningSpec
from vcl_radial.runs.training import NonResumableTraining, Step
from vcl_radial.training.losses import Epoch


class PruningTraining(NonResumableTraining):
    """A network that is trained and pruned; after an interruption it starts again.

    Args:
        run: the run.
        data: the images, as the track loads them.
        report: function that reports progress between steps.
    """

    def __init__(self, run: PruningSpec, data: Any, report: Callable[[Step], None]) -> None:
        super().__init__(run.recipe.epochs)
        self.run, self.data, self._report = run, data, report

    def train(self) -> None:
        """Train and prune the network, and keep its numbers."""
        started = time.perf_counter()
        self.numbers = self.prune()
        self.seconds = time.perf_counter() - started

    @abstractmethod
    def prune(self) -> dict[str, Any]:
        """Train and prune the network; returns plain numbers by name."""

    def on_epoch(self, epoch: Epoch) -> None:
        """Report an epoch."""
        news = f"epoch {epoch.epoch} of {self.epochs}"
        self._report(Step(0, news, epoch=epoch.epoch, epochs=self.epochs, news=news))

    def files(self) -> dict[str, str]:
        """The result file with the numbers."""
        return {NUMBERS: json.dumps(self.numbers, indent=1) + "\n"}

    def facts(self) -> dict[str, Any]:
        """Seconds of the training."""
        return {"seconds": self.seconds}
