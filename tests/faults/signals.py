"""Ctrl-C and SIGTERM at random moments, and a clock that is set meanwhile."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from children import Child, begin, fork
from kills import cpu_of, moments_of
from moments import PHASES, Counter, arm
from work import Setting, Work, ends_well, lost, one_line, run, sweep

SECONDS = 5.0
"""Within which a command is to stop, on a machine that has little else to do."""
_YEARS = 3 * 365 * 24 * 3600
_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void) { const char *s = getenv("FAULTS_CLOCK"); return s ? atol(s) : 0; }
int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, now);
    if (!failed && which == CLOCK_REALTIME) now->tv_sec += shift();
    return failed;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec t;
    int failed = clock_gettime(CLOCK_REALTIME, &t);
    now->tv_sec = t.tv_sec;
    now->tv_usec = t.tv_nsec / 1000;
    return failed;
}
time_t time(time_t *to) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (to) *to = t.tv_sec;
    return t.tv_sec;
}
"""


def inside(setting: Setting) -> Iterator[str | None]:
    """A signal at a step of training, evaluation or writing of one process."""
    for work in (run(), sweep(setting)):
        for phase in PHASES:
            total = moments_of(setting, work, phase)
            count = max(1, round(setting.moments / len(PHASES) / 4))
            for at in sorted(setting.rng.sample(range(1, total + 1), min(count, total))):
                number = setting.rng.choice([signal.SIGINT, signal.SIGTERM])
                place = setting.place()
                out, counter = place / "out", Counter()

                def strike(number: int = number) -> None:
                    os.kill(os.getpid(), number)

                end = fork(
                    work.arguments(out),
                    place / "said",
                    lambda p=phase, o=out, c=counter, n=at, s=strike: arm(p, o, c, n, s),
                ).wait()
                fault = one_line(end, 130, "stopped; the same command goes on")
                fault = fault or ends_well(setting, work, place)
                name = signal.Signals(number).name
                yield fault and f"{work.words[0]}, {name}, {phase} {at} of {total}: {fault}"


def outside(setting: Setting) -> Iterator[str | None]:
    """A signal after a random share of the processor time of a command with two workers."""
    for work in (run(seeds=2), sweep(setting)):
        place = setting.place()
        whole = cpu_of(begin(work.arguments(place / "out", 2), place / "said"))
        for _ in range(max(1, setting.moments // 10)):
            place = setting.place()
            number = setting.rng.choice([signal.SIGINT, signal.SIGTERM])
            share = setting.rng.uniform(0.3, 0.85)
            child = begin(work.arguments(place / "out", 2), place / "said")
            fault = None
            if child.at_cpu(share * whole):
                # Ctrl-C reaches every process at the terminal, SIGTERM the command alone.
                (child.signal_all if number == signal.SIGINT else child.signal)(number)
                fault = _stops(child)
                if fault is None and not child.leaves_nobody():
                    fault = "a process was left behind"
            else:
                child.wait()
            fault = fault or ends_well(setting, work, place, jobs=2, forked=False)
            name = signal.Signals(number).name
            yield fault and f"{work.words[0]}, {name} at {share:.0%}: {fault}"


def _stops(child: Child) -> str | None:
    """What is wrong with how it stops; on a machine that others keep busy it may take longer."""
    started = time.monotonic()
    end = child.wait()
    seconds = time.monotonic() - started
    fault = one_line(end, 130, "stopped; the same command goes on")
    busy = os.getloadavg()[0] > 2 * (os.cpu_count() or 1)
    if fault is None and seconds > SECONDS and not busy:
        return f"it took {seconds:.1f} s to stop"
    return fault


def clock(setting: Setting) -> Iterator[str | None]:
    """The clock set back or forward by three years between a stop and the next start."""
    library = _clock(setting.scratch)
    if library is None:
        yield "skipped: there is no C compiler to make another clock with"
        return
    for work in (run(), sweep(setting)):
        place = setting.place()
        whole = cpu_of(begin(work.arguments(place / "out"), place / "said"))
        for shift in (_YEARS, -_YEARS):
            place = setting.place()
            share = setting.rng.uniform(0.5, 0.9)
            child = _begin(work, place, "first", library, -shift)
            child.at_cpu(share * whole)
            child.signal(signal.SIGTERM)
            child.wait()
            end = _begin(work, place, "second", library, shift).wait()
            fault = None if end.code == 0 else f"it does not go on: {end.words}"
            fault = fault or lost(setting, work, place / "out")
            yield fault and f"{work.words[0]}, the clock moved by {2 * shift} s: {fault}"


def _begin(work: Work, place: Path, name: str, library: Path, shift: int) -> Child:
    environment = {"LD_PRELOAD": str(library), "FAULTS_CLOCK": str(shift)}
    return begin(work.arguments(place / "out"), place / name, environment)


def _clock(scratch: Path) -> Path | None:
    """A library that moves the time of day of the process that it is loaded into."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    source, library = scratch / "clock.c", scratch / "clock.so"
    source.write_text(_CLOCK)
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library
