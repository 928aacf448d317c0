"""A run that Avalanche's loop trains, with the plugins, metrics and loggers of its recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd

from vcl_radial.integrations.avalanche.parts import open_loggers
from vcl_radial.integrations.avalanche.trainer import StrategyTrainer
from vcl_radial.runs.training import Step
from vcl_radial.tracks.continual.avalanche_metrics import COLUMNS, FILE
from vcl_radial.tracks.continual.methods import make_strategy
from vcl_radial.tracks.continual.training import ContinualRun, OnEpoch


class AvalancheRun(ContinualRun):
    """A run in progress, as `ContinualRun`.

    A run with plugins or metrics is not stored between tasks, since only pickle could store their
    state: after an interruption it starts again.

    Args:
        folder: the folder of the run, for loggers.
        report: called after every task that is not stored.
    """

    def __init__(
        self,
        *args: Any,
        folder: Path = Path(),
        report: Callable[[Step], None] = lambda step: None,
        **settings: Any,
    ) -> None:
        self._folder, self._report = folder, report
        super().__init__(*args, **settings)

    def _trainer(self, network: Any, on_epoch: OnEpoch, *, watched: bool) -> StrategyTrainer:
        parts = self.recipe.avalanche
        return StrategyTrainer(
            make_strategy(self.recipe, network, tensor_stream=self.stream),
            self.stream,
            self.recipe.epochs_of,
            self._seed_of,
            on_epoch,
            self._set_iterations,
            self.evaluate_on if parts is not None and parts.metrics else None,
        )

    def _set_iterations(self, iterations: int) -> None:
        self.iterations = iterations

    def steps(self) -> Iterator[Step]:
        """Train and score task by task; yield after each one that can be stored."""
        parts = self.recipe.avalanche
        with ExitStack() as stack:
            if parts is not None and parts.loggers:
                # A run that resumes leaves the logs of its earlier tasks as they are.
                folder = self._folder / "avalanche" / f"from-task-{self.tasks_done + 1}"
                evaluator = self.trainer.strategy.evaluator
                evaluator.loggers = open_loggers(parts.loggers, folder, stack)
            for step in super().steps():
                if parts is None or not (parts.plugins or parts.metrics):
                    yield step
                else:
                    self._report(step)

    def files(self) -> dict[str, str]:
        """The files of a run, and the values of Avalanche's metrics if it has any."""
        if not self.trainer.metrics:
            return super().files()
        table = pd.DataFrame(self.trainer.metrics, columns=COLUMNS)
        return {**super().files(), FILE: table.to_csv(index=False)}
