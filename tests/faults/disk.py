"""A full disk, a disk that takes no writing, a folder that is deleted at work."""

import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from children import RunOutcome, fork
from isolation import isolated, mount, remount
from moments import Moment, interrupt, moments_of, struck
from work import BENCHMARK, METHODS, Setting, Work, ends_well, one_line, results, run, sweep, works

_AMPLE = "size=256m"


def full(setting: Setting) -> Iterator[str | None]:
    """A disk that is full after a random number of kilobytes."""

    def cases() -> Iterator[str | None]:
        for work in works(setting):
            setting.undisturbed(work)
            needed = _kilobytes(setting, work)
            for _ in range(max(1, setting.moments // 6)):
                size, root = setting.rng.randrange(8, round(0.9 * needed)), setting.new_folder()
                mount(root / "out", size)
                end = fork(work.arguments(root / "out"), root / "output").wait()
                fault = one_line(end, 1, most=len(METHODS))
                if fault is None and not ("full" in end.errors or "No space" in end.errors):
                    fault = f"it does not say that the disk is full: {end.last_line}"
                remount(root / "out", _AMPLE)
                fault = fault or ends_well(setting, work, root)
                yield fault and f"{work}, {size} of {needed} kB: {fault}"

    return isolated(cases, setting.scratch / "full.json")


def read_only(setting: Setting) -> Iterator[str | None]:
    """An output folder on a disk that takes no writing."""

    def cases() -> Iterator[str | None]:
        for work in (run(), sweep(setting)):
            root = setting.new_folder()
            out = root / "out"
            mount(out, 1 << 18)
            struck(work, root, Moment("training", 12, 0), interrupt)
            before = results(out)
            remount(out, "ro")
            end = fork(work.arguments(out), root / "output").wait()
            fault = one_line(end, 1, str(out))
            if fault is None and results(out) != before:
                fault = "what was finished has changed"
            remount(out, "rw")
            fault = fault or ends_well(setting, work, root)
            yield fault and f"{work.command[0]}: {fault}"

    return isolated(cases, setting.scratch / "read-only.json")


def deleted(setting: Setting) -> Iterator[str | None]:
    """The folder of a run deleted while it is trained, scored and written."""
    work = run()
    for phase in ("training", "evaluation"):
        total = moments_of(setting, work, phase)
        for _ in range(max(1, setting.moments // 10)):
            # In the first of the two runs.
            moment = Moment(phase, setting.rng.randrange(2, total // 2), total)
            root = setting.new_folder()
            first, other = (root / "out" / BENCHMARK / method for method in METHODS)
            end = struck(work, root, moment, partial(shutil.rmtree, first))
            fault = one_line(end, 1, f"{first}/", "was deleted", most=2)
            if fault is None and not list(other.glob("*/done")):
                fault = "the other run was not finished"
            fault = fault or ends_well(setting, work, root)
            yield fault and f"{moment}: {fault}"


def out_deleted(setting: Setting) -> Iterator[str | None]:
    """All results deleted while the first of two runs is at work; then while both are."""
    work, long = run(), run("batch_size=1")
    for phase in ("training", "evaluation"):
        total = moments_of(setting, work, phase)
        for _ in range(max(1, setting.moments // 10)):
            moment = Moment(phase, setting.rng.randrange(2, total // 2), total)
            root = setting.new_folder()
            end = struck(work, root, moment, partial(shutil.rmtree, root / "out"))
            yield _gone(setting, work, root, end, str(moment))

    for _ in range(max(1, setting.moments // 10)):
        root = setting.new_folder()
        child = fork(long.arguments(root / "out", 2), root / "output")
        while child.poll() is None and len(list((root / "out").glob("**/spec.toml"))) < 2:
            time.sleep(0.02)
        # At once, for a worker may write while a folder is emptied.
        (root / "out").rename(root / "removed")
        yield _gone(setting, long, root, child.wait(), "two at a time")


def _gone(setting: Setting, work: Work, root: Path, end: RunOutcome, when: str) -> str | None:
    """The fault after all results were deleted; None without one."""
    fault = one_line(end, 1, "was deleted", most=len(METHODS))
    for folder in (path.parent for path in (root / "out").glob("**/seed-*/*")):
        if fault is None and not (folder / "done").exists():
            fault = f"{folder.relative_to(root)} was made anew in part"
    fault = fault or ends_well(setting, work, root)
    return fault and f"{when}: {fault}"


def _kilobytes(setting: Setting, work: Work) -> int:
    """What the undisturbed work takes on a disk, a page of it at least for each file."""
    root = setting.new_folder()
    fork(work.arguments(root / "out"), root / "output").wait()
    files = (path for path in (root / "out").glob("**/*") if path.is_file())
    return sum(-(-path.stat().st_size // 4096) * 4 for path in files)
