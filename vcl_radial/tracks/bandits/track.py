"""Contextual bandits by Thompson sampling: a seed is a game."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.track import Cost, Track, objectives
from vcl_radial.runs.training import Step, Training
from vcl_radial.tracks.bandits.files import path_of
from vcl_radial.tracks.bandits.settings import Run

if TYPE_CHECKING:
    import pandas as pd

    from vcl_radial.methods.base import Method
    from vcl_radial.reporting.blocks import Section
    from vcl_radial.runs.track import FinishedRun
    from vcl_radial.tracks.bandits.agents import Agent


class Bandits(Track[Run]):
    """Games in which an action's reward is seen only when it is chosen."""

    spec = Run
    methods = ("badam", "mc-dropout", "gaussian-vcl", "vadam", "radial-vcl", "naive", "uniform")
    step = "game"
    objectives: ClassVar = objectives("game")
    worker_modules = ("vcl_radial.runs.attempt", "vcl_radial.tracks.bandits.game")
    counts = "rounds"
    curves = "regret"
    has_scores_between = False
    devices = ("cpu",)

    def check_data(self, runs: Sequence[Run], data_dir: Path | None) -> None:
        """Report the rows of each table; make one game and each method for the table once."""
        from vcl_radial.data.decoding import print_progress
        from vcl_radial.tracks.bandits.agents import MethodAgent, make_agent
        from vcl_radial.tracks.bandits.game import bandit_of, table_of
        from vcl_radial.tracks.methods import check_made

        report_once, games = cache(print_progress), {}
        for data, run in {run.data: run for run in runs}.items():
            games[data] = bandit_of(run, data_dir)
            report_once(f"{path_of(data.table, data_dir)}: {table_of(run, data_dir).rows:,} rows")

        def make(run: Run) -> Agent | Method:
            game = games[run.data]
            agent = make_agent(run.recipe, game.contexts.shape[1], game.actions)
            return agent.method if isinstance(agent, MethodAgent) else agent

        check_made(runs, make)

    def open(self, run: Run, context: RunContext, report: Callable[[Step], None]) -> Training:
        """Open a game before its first round."""
        from vcl_radial.tracks.bandits.game import Game, bandit_of

        return Game(run, bandit_of(run, context.data_dir), report)

    def score(self, folder: RunFolder[Run], objective: str) -> float | None:
        """The score of all rounds; None if nothing could be earned."""
        from vcl_radial.tracks.bandits.sections import with_metrics

        game = with_metrics(self.read(folder.path, {})["rewards"])
        value = float(game[objective].iloc[-1])
        return value if math.isfinite(value) else None

    def costs(
        self, groups: Sequence[Sequence[Run]], data_dir: Path | None, device: str
    ) -> Iterable[Cost]:
        """Rounds, time and memory of a game, from its first rounds with five trainings."""
        from vcl_radial.system.memory import peak, reset_peak
        from vcl_radial.system.processor import clock
        from vcl_radial.tracks.bandits.environment import Bandit
        from vcl_radial.tracks.bandits.game import Game, bandit_of

        for run, *_ in groups:
            game, few = bandit_of(run, data_dir), slice(5 * run.data.every)
            parts = (game.contexts[few], game.rewards[few], game.optimum[few])
            first = Game(run, Bandit(*parts), lambda step: None)
            reset_peak(device)
            started = clock(device)
            first.train()
            seconds = (clock(device) - started) * game.rounds / first.bandit.rounds
            yield Cost(f"{game.rounds:,} rounds", seconds, peak(device))

    def epochs(self, run: Run) -> int:
        """Number of rounds; 0 if there is one for every row."""
        return run.data.rounds or 0

    def read(self, path: Path, environment: Mapping[str, Any]) -> Mapping[str, pd.DataFrame]:
        """Read `rewards`: `round`, and the cumulative `reward` and `optimum` after it."""
        from vcl_radial.reporting.stored import stored_table

        types = {"round": int, "reward": float, "optimum": float}
        return {"rewards": stored_table(path / "rewards.csv", types, types)}

    def scores(self, run: FinishedRun) -> pd.DataFrame:
        """The cumulative `reward`, the `optimum` of the best actions and metrics, by round."""
        from vcl_radial.tracks.bandits.sections import with_metrics

        table = with_metrics(run.tables["rewards"]).rename(columns={"round": "after"})
        return table.melt("after", var_name="metric").sort_values("after", kind="stable")

    def sections(self, runs: Sequence[FinishedRun], data_dir: Path | None) -> list[Section]:
        """Table 1 of the BAdam paper beside ours, regret over the rounds, and the protocol."""
        from vcl_radial.tracks.bandits.sections import report

        return report(runs)


TRACK = Bandits
