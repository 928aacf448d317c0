"""A command's games: finished ones are kept, each of the others gets a file when it ends."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from vcl_radial.runs.folder import make_folder
from vcl_radial.runs.result_file import Unit, read, write
from vcl_radial.runs.settings import Count
from vcl_radial.runs.supervisor import Report, carry_out, workers
from vcl_radial.tracks.bandits.agents.base import AgentSettings
from vcl_radial.tracks.bandits.data import load_table

PLACES = 200
"""Of a run at which its cumulative reward is kept."""


class BanditUnit(Unit):
    """One game of one agent.

    Attributes:
        dataset: of `vcl_radial.tracks.bandits.data.DATASETS`.
        rounds: the first so many of the game; None for every row once.
        pulls: of each action at the start.
        every: rounds between two trainings, t_f.
        settings: of the agent.
        data: a checksum of the data set's rows.
    """

    dataset: str
    rounds: Count | None = None
    pulls: Count = 3
    every: Count = 20
    settings: AgentSettings = AgentSettings()
    data: str

    def path(self, out: Path) -> Path:
        """Of its result file, in a folder of the data set."""
        return super().path(out / self.dataset)


def perform(
    units: Sequence[BanditUnit], out: Path, to: Path, data_dir: Path | None, jobs: int
) -> None:
    """Play what is not finished yet.

    Args:
        units: all of them.
        out: the folder of the results.
        to: the folder that the report is to go to, made before the work.
        data_dir: see `vcl_radial.tracks.bandits.data`.
        jobs: worker processes, of one thread each.

    Raises:
        UserError: something the user can mend; what was finished stays.
        Diverged: a loss is no longer a finite number.
    """
    make_folder(out)
    make_folder(to)
    todo = [unit for unit in units if read(unit, out) is None]
    console = Console(highlight=False, soft_wrap=True)
    kept = f", {len(units) - len(todo)} kept from before" if len(todo) < len(units) else ""
    console.print(f"bandits: {len(todo)} games to play{kept}", markup=False)
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn()
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    ) as bar:
        whole = bar.add_task("games", total=len(todo))
        games = carry_out(partial(_attempt, out=out, data_dir=data_dir), todo, workers(jobs, todo))
        for done, game in enumerate(games, 1):
            unit, (relative, seconds) = game.job, game.result
            bar.advance(whole)
            console.print(
                f"{unit.dataset}  {unit.method}  seed {unit.seed}  {relative:.3f} of the optimum  "
                f"{seconds:.0f} s  [{done} of {len(todo)}]",
                markup=False,
            )


def _attempt(
    unit: BanditUnit, report: Report, out: Path, data_dir: Path | None
) -> tuple[float, float]:
    """Play, keep the result, and give the relative reward and the seconds."""
    import torch

    from vcl_radial.runs import environment

    torch.set_num_threads(1)
    described = environment.describe("cpu", 1)
    started = time.perf_counter()
    numbers = play_unit(unit, data_dir)
    seconds = time.perf_counter() - started
    write(unit, out, numbers, described | {"seconds": seconds})
    return numbers["relative"], seconds


def play_unit(unit: BanditUnit, data_dir: Path | None) -> dict[str, Any]:
    """Play the game of a unit; all its randomness comes from its seed.

    Returns:
        `reward` and `optimum`, the sums over all rounds; `relative`, the first over the second, nan
        where nothing could be earned; `regret`, their difference; and `places` with the cumulative
        `rewards` and `optima` there.
    """
    import torch

    from vcl_radial.predict import own_randomness
    from vcl_radial.tracks.bandits.agents import AGENTS
    from vcl_radial.tracks.bandits.environment import make_bandit, play

    torch.set_flush_denormal(True)
    bandit = make_bandit(load_table(unit.dataset, data_dir), unit.seed, unit.rounds)
    with own_randomness(unit.seed, torch.device("cpu")):
        agent = AGENTS[unit.method](bandit.contexts.shape[1], bandit.actions, unit.settings)
        memory = play(bandit, agent.choose, agent.learn, pulls=unit.pulls, every=unit.every)
    rewards, optima = memory.rewards.double().cumsum(0), bandit.optimum.double().cumsum(0)
    places = torch.linspace(1, bandit.rounds, min(PLACES, bandit.rounds)).round().long()
    reward, optimum = float(rewards[-1]), float(optima[-1])
    return {
        "reward": reward,
        "optimum": optimum,
        "relative": reward / optimum if optimum else math.nan,
        "regret": optimum - reward,
        "places": places.tolist(),
        "rewards": rewards[places - 1].tolist(),
        "optima": optima[places - 1].tolist(),
    }
