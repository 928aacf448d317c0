"""A game in progress: every round a choice, every few rounds a training."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pandas as pd
import torch

from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.runs.training import NonResumableTraining, Step
from vcl_radial.tracks.bandits.agents import make_agent
from vcl_radial.tracks.bandits.data import load_table
from vcl_radial.tracks.bandits.environment import Bandit, Memory, make_bandit, play
from vcl_radial.tracks.bandits.settings import Run
from vcl_radial.tracks.bandits.table import Table

POINTS = 200
"""Number of rounds of a game at which its cumulative reward is kept."""

_REPORTS = 50
"""Number of progress reports in a game."""


def bandit_of(run: Run, data_dir: Path | None) -> Bandit:
    """The game of a run's seed, on the rows that the run is scored on.

    Raises:
        UserError: see `load_table` and `make_bandit`.
    """
    table = table_of(run, data_dir)
    if run.data.validation:
        table = _part(table, run.data.validation, run.evaluate_on == "validation")
    return make_bandit(table, run.seed, run.data.rounds)


def table_of(run: Run, data_dir: Path | None) -> Table:
    """The complete table of a run.

    Raises:
        UserError: see `load_table`.
    """
    return _table(run.data.table, run.data.checksum, data_dir)


class Game(NonResumableTraining):
    """A game of a run's agent. All its randomness comes from the run's seed.

    Args:
        run: the spec.
        bandit: the game.
        report: called with the step that the played rounds have reached.
    """

    def __init__(self, run: Run, bandit: Bandit, report: Callable[[Step], None]) -> None:
        super().__init__(bandit.rounds)
        self.run, self.bandit, self.report = run, bandit, report
        self.rewards = torch.zeros(0)
        self.seconds = 0.0

    def train(self) -> None:
        """Play, and keep the reward of every round."""
        data, bandit, started = self.run.data, self.bandit, time.perf_counter()
        with seeded_rng(self.run.seed, torch.device("cpu")):
            agent = make_agent(self.run.recipe, bandit.contexts.shape[1], bandit.actions)
            memory = play(
                bandit,
                agent.choose,
                agent.learn,
                pulls=data.pulls,
                every=data.every,
                on_round=self._on_round,
            )
        self.rewards = memory.rewards
        self.seconds = time.perf_counter() - started

    def facts(self) -> dict[str, float]:
        """Seconds of the game."""
        return {"seconds": self.seconds}

    def files(self) -> dict[str, str]:
        """Cumulative rewards, and expected rewards of the best actions, at some of the rounds."""
        earned, best = self.rewards.double().cumsum(0), self.bandit.optimum.double().cumsum(0)
        count = min(POINTS, self.bandit.rounds)
        rounds = torch.linspace(1, self.bandit.rounds, count).round().long()
        columns = {"round": rounds, "reward": earned[rounds - 1], "optimum": best[rounds - 1]}
        table = pd.DataFrame({name: values.numpy() for name, values in columns.items()})
        return {"rewards.csv": table.to_csv(index=False)}

    def _on_round(self, memory: Memory) -> None:
        number = memory.points
        if number % max(1, self.epochs // _REPORTS) == 0:
            progress = f"round {number} of {self.epochs}"
            scalars = {"reward": float(memory.rewards[:number].sum())}
            self.report(
                Step(0, progress, epoch=number, epochs=self.epochs, scalars=scalars, at=number)
            )


@lru_cache(maxsize=1)  # a process plays many games on one table
def _table(name: str, checksum: str | None, data_dir: Path | None) -> Table:
    return load_table(name, data_dir)


def _part(table: Table, share: float, validation: bool) -> Table:
    """The held-out rows, which are the same for every seed, or all other rows."""
    order = torch.randperm(len(table.contexts), generator=torch.Generator().manual_seed(0))
    count = max(1, round(share * len(order)))
    rows = (order[:count] if validation else order[count:]).sort().values
    return replace(table, contexts=table.contexts[rows], labels=table.labels[rows])
