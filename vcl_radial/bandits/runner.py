"""A command's games: finished ones are kept, each of the others gets a file when it ends."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from vcl_radial.bandits.agents.base import AgentSettings
from vcl_radial.bandits.data import load_table
from vcl_radial.errors import UserError
from vcl_radial.experiments.processes import end_with_parent
from vcl_radial.experiments.result_file import Unit, read, write
from vcl_radial.tracks.settings import Count

PLACES = 200
"""Of a run at which its cumulative reward is kept."""


class BanditUnit(Unit):
    """One game of one agent.

    Attributes:
        dataset: of `vcl_radial.bandits.data.DATASETS`.
        rounds: the first so many of the game; None for every row once.
        pulls: of each action at the start.
        every: rounds between two trainings, t_f.
        settings: of the agent.
    """

    dataset: str
    rounds: Count | None = None
    pulls: Count = 3
    every: Count = 20
    settings: AgentSettings = AgentSettings()

    def path(self, out: Path) -> Path:
        """Of its result file, in a folder of the data set."""
        return super().path(out / self.dataset)


def perform(units: Sequence[BanditUnit], out: Path, data_dir: Path | None, jobs: int) -> None:
    """Play what is not finished yet.

    Args:
        units: all of them.
        out: the folder of the results.
        data_dir: see `vcl_radial.bandits.data`.
        jobs: worker processes, of one thread each.

    Raises:
        UserError: something the user can mend; what was finished stays.
        Diverged: a loss is no longer a finite number.
    """
    todo = [unit for unit in units if read(unit, out) is None]
    for name in dict.fromkeys(unit.dataset for unit in todo):
        load_table(name, data_dir)  # one message before the work, not one from each worker
    console = Console(highlight=False, soft_wrap=True)
    kept = f", {len(units) - len(todo)} kept from before" if len(todo) < len(units) else ""
    console.print(f"bandits: {len(todo)} games to play{kept}", markup=False)
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn()
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    ) as bar:
        whole = bar.add_task("games", total=len(todo))
        for done, (unit, relative, seconds) in enumerate(_played(todo, out, data_dir, jobs), 1):
            bar.advance(whole)
            console.print(
                f"{unit.dataset}  {unit.method}  seed {unit.seed}  {relative:.3f} of the optimum  "
                f"{seconds:.0f} s  [{done} of {len(todo)}]",
                markup=False,
            )


def _played(
    todo: Sequence[BanditUnit], out: Path, data_dir: Path | None, jobs: int
) -> Iterator[tuple[BanditUnit, float, float]]:
    """Each unit as its game ends, with its relative reward and its seconds."""
    if jobs == 1 or len(todo) < 2:
        for unit in todo:
            yield _attempt(unit, out, data_dir)
        return
    context = multiprocessing.get_context("spawn")
    # A terminal's Ctrl-C goes to the workers too; they inherit that they are to leave it to us.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(min(jobs, len(todo)), context, initializer=_start) as pool:
        futures = [pool.submit(_attempt, unit, out, data_dir) for unit in todo]
        signal.signal(signal.SIGINT, handler)
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            raise UserError(
                "a worker process died (out of memory?); run the same command again to go on from "
                "the finished games, with fewer --jobs"
            ) from None
        finally:
            if not all(future.done() for future in futures):
                pool.shutdown(wait=False, cancel_futures=True)
                for process in multiprocessing.active_children():
                    process.terminate()


def _start() -> None:
    """What a worker does first."""
    threading.Thread(target=end_with_parent, daemon=True).start()


def _attempt(unit: BanditUnit, out: Path, data_dir: Path | None) -> tuple[BanditUnit, float, float]:
    from vcl_radial.experiments import environment

    described = environment.describe("cpu", 1)
    started = time.perf_counter()
    numbers = play_unit(unit, data_dir)
    seconds = time.perf_counter() - started
    write(unit, out, numbers, described | {"seconds": seconds})
    return unit, numbers["relative"], seconds


def play_unit(unit: BanditUnit, data_dir: Path | None) -> dict[str, Any]:
    """Play the game of a unit; all its randomness comes from its seed.

    Returns:
        `reward` and `optimum`, the sums over all rounds; `relative`, the first over the second;
        `regret`, their difference; and `places` with the cumulative `rewards` and `optima` there.
    """
    import torch

    from vcl_radial.bandits.agents import AGENTS
    from vcl_radial.bandits.environment import make_bandit, play
    from vcl_radial.predict import own_randomness

    torch.set_num_threads(1)
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
        "relative": reward / optimum,
        "regret": optimum - reward,
        "places": places.tolist(),
        "rewards": rewards[places - 1].tolist(),
        "optima": optima[places - 1].tolist(),
    }
