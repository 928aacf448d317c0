"""Every kind of fault: what is done, and what must hold."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import commands
import damage
import disk
import diverged
import fuzz
import kills
import large
import long
import ray_nodes
import signals
import states
import twice
from work import Setting

_RESUMES = "the same command goes on to the same results"


@dataclass(frozen=True)
class Kind:
    """A kind of fault; `cases` gives None for each case that held, else what was lost."""

    name: str
    title: str
    must: str
    cases: Callable[[Setting], Iterator[str | None]]


KINDS = (
    Kind(
        "kill-inside",
        "`kill -9` at a step of training, evaluation or writing: `run` of every track, `sweep`, "
        "`report`",
        _RESUMES,
        kills.inside,
    ),
    Kind(
        "kill-outside",
        "`kill -9` of the driver, a worker, or all, `--jobs 2`, `run` and `sweep`",
        f"{_RESUMES}; no process is left behind",
        kills.outside,
    ),
    Kind(
        "signal-inside",
        "SIGINT or SIGTERM at a step of training, evaluation or writing: `run` of every track, "
        "`sweep`, `report`",
        f"one line and code 130; {_RESUMES}",
        signals.inside,
    ),
    Kind(
        "signal-outside",
        "SIGINT to all processes or SIGTERM to the driver, `--jobs 2`",
        "one line and code 130, with at most a fifth of the processor time of the whole command "
        f"after the signal; no process is left behind; {_RESUMES}",
        signals.outside,
    ),
    Kind(
        "commands",
        "`kill -9`, SIGINT or SIGTERM of `price`, `benchmarks.speed`, `pages` and `check`, at a "
        "change of a file and after a share of the work",
        "no file is half written; a signal is one line and code 130; the same command ends with "
        "the same files, but for the times in them",
        commands.stopped,
    ),
    Kind(
        "clock",
        "the clock set six years back or forward between a stop and the next start",
        _RESUMES,
        signals.clock,
    ),
    Kind(
        "full-disk",
        "a disk (tmpfs) that is full after a random number of kilobytes",
        f"one line that says so and code 1; with room again {_RESUMES}",
        disk.full,
    ),
    Kind(
        "read-only",
        "an output folder on a disk mounted read-only",
        f"one line that names it and code 1; writable again {_RESUMES}",
        disk.read_only,
    ),
    Kind(
        "deleted",
        "the folder of a run deleted while it is trained or scored",
        f"one line that names it, code 1, the other run finished; {_RESUMES}",
        disk.deleted,
    ),
    Kind(
        "deleted-out",
        "all of `--out` deleted while runs are trained or scored, `--jobs 1` and `2`",
        f"a line for each run that names it, code 1; no folder is made anew in part; {_RESUMES}",
        disk.out_deleted,
    ),
    Kind(
        "ray",
        "a node of a Ray cluster, or a worker on it, killed while two runs are at work",
        f"its run is done elsewhere, or one line says that it was lost; {_RESUMES}",
        ray_nodes.killed,
    ),
    Kind(
        "twice",
        "two of the same command at work in one folder, `run` and `sweep`",
        f"they share the work or one says so in one line; no run is done twice; {_RESUMES}",
        twice.together,
    ),
    Kind(
        "result-files",
        "a bit flipped in a file of a finished run of any track, or the file cut off",
        "noticed, and the file named",
        damage.result_files,
    ),
    Kind(
        "model-files",
        "a bit flipped in a file of a kept model, or the file cut off",
        "`vr.load` refuses it in one line that names the file",
        damage.model_files,
    ),
    Kind(
        "done-again",
        "the same, and the command given again",
        "that run is done again, the other kept; the same results",
        damage.redone,
    ),
    Kind(
        "checkpoints",
        "a bit flipped in a checkpoint, or the checkpoint cut off",
        "noticed and named, its run starts anew; the same results",
        damage.checkpoints,
    ),
    Kind(
        "states",
        "a checkpoint with the right checksum and a tensor of another shape or dtype, of NaN, "
        "absent or additional: methods on digits, photographs, tables in sequence",
        f"one line that names it and the fix; without it {_RESUMES}",
        states.altered,
    ),
    Kind(
        "payload",
        "a checkpoint with a pickled call and the right checksum",
        f"never executed; `run` refuses it in one line, `sweep` begins that run anew; {_RESUMES}",
        damage.payload,
    ),
    Kind(
        "sweep-files",
        "`sweep.toml`, `trials.csv` or a file of a run in a sweep damaged",
        _RESUMES,
        damage.sweep_files,
    ),
    Kind(
        "data-files",
        "data files that are not the published ones",
        "one line that names the file; no run is begun",
        damage.data_files,
    ),
    Kind(
        "tomls",
        "random and changed TOMLs of benchmarks, recipes and sweeps",
        "a valid spec, or a message of one line",
        fuzz.tomls,
    ),
    Kind(
        "command-lines",
        "random command lines",
        "code 0, or a message of one line",
        fuzz.command_lines,
    ),
    Kind(
        "large",
        "a table of 20,000 columns, a table of 1,000,000 rows, images of 1,000 classes",
        "to the end, or one line that says why not",
        large.inputs,
    ),
    Kind(
        "long",
        "200 tasks in a run, 100 seeds in a command",
        "no more than 32 MiB and 2 open files more in the last quarter than in the second; the "
        "report within 5 minutes",
        long.flat,
    ),
    Kind(
        "diverged-trials",
        "learning rates of 10³⁰ in a sweep",
        "rows marked `diverged` that say when and why; the other trials finished",
        diverged.rows,
    ),
    Kind(
        "diverged-run",
        "a learning rate of 10³⁰ in a `run`",
        "one line that names the run, the step and the fix; the other run finished",
        diverged.command,
    ),
)
