"""200 tasks and 100 seeds in one command: memory and open files stay as they were."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from children import Child, begin
from work import Setting, Work

_TINY = ("epochs=1", "hidden=[4]", "eval_samples=2", "batch_size=256")
_MORE_MIB = 32
"""Allowed growth between the second and the last quarter; each score takes bytes."""
_MORE_FILES = 2
_REPORT = 300.0
"""Seconds for the report at most."""


def flat(setting: Setting) -> Iterator[str | None]:
    """Peaks of memory and open files in the second quarter of the work and in the last."""
    tasks, seeds = min(200, 20 * setting.moments), min(100, 10 * setting.moments)
    permuted = ("stream.kind=permuted", f"stream.tasks={tasks}")
    many_tasks = ("run", "split-digits-single-head", "--method", "ewc", "--set", *_TINY, *permuted)
    many_seeds = ("run", "split-digits-multi-head", "--method", "naive", "--seeds", str(seeds))
    for words, total, done in (
        (many_tasks, tasks, _tasks_done),
        ((*many_seeds, "--set", *_TINY, "stream.tasks=2"), seeds, _runs_done),
    ):
        root = setting.new_folder()
        child = begin(Work(words).arguments(root / "out"), root / "output")
        memory, files, seconds = _peaks(child, root, total, done)
        end = child.wait()
        figures = f"{memory[1]} to {memory[3]} MiB, {files[1]} to {files[3]} files"
        name = f"{total} {'tasks' if words is many_tasks else 'seeds'}"
        print(f"  {name}: {figures}, report in {seconds:.0f} s", flush=True)
        fault = None if end.code == 0 else f"it does not get through: {end.last_line}"
        if memory[3] > memory[1] + _MORE_MIB or files[3] > files[1] + _MORE_FILES:
            fault = fault or f"it grows: {figures}"
        if seconds > _REPORT:
            fault = fault or f"its report takes {seconds:.0f} s"
        yield fault and f"{name}: {fault}"


def _peaks(
    child: Child, root: Path, total: int, done: Callable[[Path], int]
) -> tuple[list[int], list[int], float]:
    """Peaks of memory in MiB and of open files by quarters of the work; seconds after all of it."""
    memory, files, ended = [0] * 4, [0] * 4, None
    while child.poll() is None:
        count = done(root)
        if count < total:
            quarter, (mib, opened) = 4 * count // total, child.holds()
            memory[quarter] = max(memory[quarter], mib)
            files[quarter] = max(files[quarter], opened)
        else:
            ended = ended or time.monotonic()
        time.sleep(0.1)
    return memory, files, time.monotonic() - (ended or time.monotonic())


def _tasks_done(root: Path) -> int:
    counts = re.findall(r" task (\d+) of ", (root / "output.out").read_text())
    finished = list((root / "out").glob("**/done"))
    return 10**6 if finished else int(counts[-1]) - 1 if counts else 0


def _runs_done(root: Path) -> int:
    return len(list((root / "out").glob("**/done")))
