"""kill -9: of a command or its workers at random times, and at exact steps of its work."""

import signal
from collections.abc import Iterator

from children import Child, begin, fork
from moments import PHASES, Counter, arm, kill
from work import Setting, Work, ends_well, run, sweep

VICTIMS = ("driver", "worker", "all")


def inside(setting: Setting) -> Iterator[str | None]:
    """One process, killed at steps drawn from all of its training, evaluation and writing."""
    for work in (run(), sweep(setting)):
        for phase in PHASES:
            total = moments_of(setting, work, phase)
            count = max(1, round(setting.moments / len(PHASES) / 2))
            for at in sorted(setting.rng.sample(range(1, total + 1), min(count, total))):
                place = setting.place()
                out, counter = place / "out", Counter()
                end = fork(
                    work.arguments(out),
                    place / "said",
                    lambda p=phase, o=out, c=counter, n=at: arm(p, o, c, n, kill),
                ).wait()
                where = f"{work.words[0]}, {phase} {at} of {total}"
                if end.code != -signal.SIGKILL:
                    yield f"{where}: it was not killed ({end.words})"
                    continue
                fault = ends_well(setting, work, place)
                yield fault and f"{where}: {fault}"


def moments_of(setting: Setting, work: Work, phase: str) -> int:
    """How many moments an undisturbed work has."""
    place, counter = setting.place(), Counter()
    out = place / "out"
    fork(
        work.arguments(out), place / "said", lambda: arm(phase, out, counter, None, lambda: None)
    ).wait()
    return counter.total


def outside(setting: Setting) -> Iterator[str | None]:
    """Two workers and their driver, killed after a random share of their processor time."""
    for work in (run(seeds=2), sweep(setting)):
        place = setting.place()
        whole = cpu_of(begin(work.arguments(place / "out", 2), place / "said"))
        for _ in range(setting.moments // 2):
            place, victim = setting.place(), setting.rng.choice(VICTIMS)
            share = setting.rng.uniform(0.3, 0.95)
            child = begin(work.arguments(place / "out", 2), place / "said")
            child.at_cpu(share * whole)
            strike(setting, child, victim)
            # In half of the cases it goes on while what was left of it may still be at work.
            waits = setting.rng.random() < 0.5
            stays = waits and not child.leaves_nobody()
            child.wait()
            fault = ends_well(setting, work, place, jobs=2, forked=False)
            if fault is None and (stays or not child.leaves_nobody()):
                fault = "a process was left behind"
            yield fault and f"{work.words[0]}, {victim} at {share:.0%}: {fault}"


def strike(setting: Setting, child: Child, victim: str) -> None:
    """Kill whom it is to be; the driver where there is no worker yet."""
    if victim == "all":
        child.signal_all(signal.SIGKILL)
        return
    workers = child.workers() if victim == "worker" else []
    child.signal(signal.SIGKILL, setting.rng.choice(workers) if workers else None)


def cpu_of(child: Child) -> float:
    """The processor time of a whole command, workers and all."""
    used = 0.0
    while child.poll() is None:
        used = max(used, child.cpu())
        child.at_cpu(used + 0.1)
    return used
