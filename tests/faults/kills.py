"""kill -9: of a command or its workers at random times, and at exact steps of its work."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from children import Child, cpu_of_ended, fork
from moments import drawn, kill, struck
from work import Setting, Work, ends_well, others, run, sweep, works


def inside(setting: Setting) -> Iterator[str | None]:
    """One process, killed at steps drawn from all of its training, evaluation and writing."""
    for work in works(setting):
        for moment in drawn(setting, work, setting.moments // 6):
            root = setting.new_folder()
            end = struck(work, root, moment, kill)
            fault = None
            if end.code != -signal.SIGKILL:
                fault = f"it was not killed ({end.last_line})"
            fault = fault or ends_well(setting, work, root)
            yield fault and f"{work}, {moment}: {fault}"


def outside(setting: Setting) -> Iterator[str | None]:
    """Two workers and their driver, killed after a random share of their processor time."""
    for work in (run(seeds=2), others(setting)[0], sweep(setting)):

        def start(root: Path, work: Work = work) -> Child:
            return fork(work.arguments(root / "out", 2), root / "output")

        whole = cpu_of(setting, start)
        for _ in range(max(1, setting.moments // 2)):
            root, child, seconds = under_way(setting, start, 0.05 * whole, 0.95 * whole)
            victim = strike(setting, child)
            end = child.wait()
            # In half of the cases it goes on while what was left of it may still be at work.
            stays = setting.rng.random() < 0.5 and not child.leaves_nobody()
            fault = None
            if victim == "worker" and (end.code not in (0, 1) or "Traceback" in end.errors):
                fault = f"the driver did not go on: {end.last_line}"
            elif victim != "worker" and end.code != -signal.SIGKILL:
                fault = f"it was not killed: {end.last_line}"
            fault = fault or ends_well(setting, work, root)
            if fault is None and (stays or not child.leaves_nobody()):
                fault = "a process was left behind"
            yield fault and f"{work}, {victim} after {seconds / whole:.0%}: {fault}"


def strike(setting: Setting, child: Child) -> str:
    """Kill the driver, a worker where there is one, or all; who it was."""
    workers = child.workers()
    victim = setting.rng.choice(["driver", "all", *(["worker"] if workers else [])])
    if victim == "all":
        child.signal_all(signal.SIGKILL)
    else:
        child.signal(signal.SIGKILL, setting.rng.choice(workers) if victim == "worker" else None)
    return victim


def under_way(
    setting: Setting, start: Callable[[Path], Child], least: float, most: float
) -> tuple[Path, Child, float]:
    """A command that has used a random time of the processor; one that ends before is no case.

    Args:
        setting: of the fault.
        start: begins the command in a root.
        least: seconds.
        most: seconds.

    Returns:
        Its root, the command at work, and the seconds.
    """
    while True:
        root, seconds = setting.new_folder(), setting.rng.uniform(least, most)
        child = start(root)
        if child.at_cpu(seconds):
            return root, child, seconds
        child.wait()


def cpu_of(setting: Setting, start: Callable[[Path], Child]) -> float:
    """The processor time of a whole command, workers and all."""
    before = cpu_of_ended()
    end = start(setting.new_folder()).wait()
    if end.code != 0:
        raise RuntimeError(f"the undisturbed work fails: {end.last_line}")
    return cpu_of_ended() - before
