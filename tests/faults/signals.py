"""Ctrl-C and SIGTERM at random moments, and a clock that is set meanwhile."""

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from children import Child, begin, cpu_of_ended
from kills import cpu_of, under_way
from moments import drawn, struck
from work import Setting, Work, ends_well, lost, one_line, run, sweep, works

AT_ONCE = 0.2
"""With at most this share of the processor time of the whole command: seconds depend on others."""
_LEAVING = 0.05
"""A share of it that the end of a process takes."""
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
    for work in works(setting):
        for moment in drawn(setting, work, setting.moments // 12):
            number = setting.rng.choice([signal.SIGINT, signal.SIGTERM])
            root = setting.new_folder()
            end = struck(work, root, moment, partial(signal.raise_signal, number))
            fault = one_line(end, 130, "stopped; the same command resumes")
            fault = fault or ends_well(setting, work, root)
            yield fault and f"{work}, {signal.Signals(number).name}, {moment}: {fault}"


def outside(setting: Setting) -> Iterator[str | None]:
    """A signal after a random share of the processor time of a command with two workers."""
    for work in (run(seeds=2), sweep(setting)):

        def start(root: Path, work: Work = work) -> Child:
            return begin(work.arguments(root / "out", 2), root / "output")

        whole = cpu_of(setting, start)
        for _ in range(max(1, setting.moments // 10)):
            number = setting.rng.choice([signal.SIGINT, signal.SIGTERM])
            root, share, fault = _stopped(setting, start, whole, number)
            fault = fault or ends_well(setting, work, root)
            name = signal.Signals(number).name
            yield fault and f"{work.command[0]}, {name} after {share:.0%}: {fault}"


def _stopped(
    setting: Setting, start: Callable[[Path], Child], whole: float, number: int
) -> tuple[Path, float, str | None]:
    """Stop a command at work: its folder, the share of its work done, and the fault."""
    while True:
        root, child, seconds = under_way(setting, start, 0.3 * whole, 0.85 * whole)
        before = cpu_of_ended() + child.cpu()
        # Ctrl-C reaches every process at the terminal, SIGTERM the command alone.
        (child.signal_all if number == signal.SIGINT else child.signal)(number)
        end = child.wait()
        more = (cpu_of_ended() - before) / whole
        if end.code in (0, -signal.SIGTERM) and more < _LEAVING:
            continue  # it was through, and leaving: no case
        fault = one_line(end, 130, "stopped; the same command resumes")
        if fault is None and more > AT_ONCE:
            fault = f"it went on for {more:.0%} of the processor time of the whole"
        if fault is None and not child.leaves_nobody():
            fault = "a process was left behind"
        return root, seconds / whole, fault


def clock(setting: Setting) -> Iterator[str | None]:
    """The clock set back or forward by six years between a stop and the next start."""
    library = _clock(setting.scratch)
    if library is None:
        yield "skipped: there is no C compiler to make another clock with"
        return
    for work in (run(), sweep(setting)):

        def start(root: Path, shift: int = 0, work: Work = work) -> Child:
            environment = {"LD_PRELOAD": str(library), "FAULTS_CLOCK": str(shift)}
            return begin(work.arguments(root / "out"), root / f"at{shift}", environment)

        whole = cpu_of(setting, start)
        for shift in (_YEARS, -_YEARS):
            first = partial(start, shift=-shift)
            root, _, fault = _stopped(setting, first, whole, signal.SIGTERM)
            end = start(root, shift).wait()
            if fault is None and end.code != 0:
                fault = f"it does not go on: {end.last_line}"
            fault = fault or lost(setting, work, root / "out")
            yield fault and f"{work.command[0]}, the clock moved by {2 * shift} s: {fault}"


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
