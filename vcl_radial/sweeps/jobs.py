"""One job of a sweep: runs carried out in their folders, given up where they are hopeless."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vcl_radial.errors import Diverged, UserError, VclRadialError
from vcl_radial.experiments.execute import Event, Place, execute
from vcl_radial.experiments.lanes import execute_lanes
from vcl_radial.experiments.run_folder import RunFolder
from vcl_radial.experiments.specification import Run

How = Literal["finished", "pruned", "diverged", "failed", "lost", "blocked"]
"""How a run ended. `failed`: a fault of its settings or of its method. `lost`: its process died, it
is to be done again. `blocked`: the machine would not let it (a full disk), nor any other."""


@dataclass(frozen=True)
class Floor:
    """The least average accuracy, in per cent, with which a run goes on after a task."""

    task: int
    accuracy: float
    words: str


@dataclass(frozen=True)
class Job:
    """Runs that one worker carries out together; with floors it is one run."""

    runs: tuple[Run, ...]
    floors: tuple[Floor, ...] = ()


@dataclass(frozen=True)
class Ended:
    """How a run ended, and why in words (None for a finished one)."""

    run: Run
    how: How
    words: str | None = None


Tell = Callable[[Run, Event], None]


class Hopeless(VclRadialError):
    """A run fell below its floor."""


def attempt(job: Job, place: Place, tell: Tell) -> list[Ended]:
    """Carry the runs of a job out, going on from their checkpoints; never raises for a run's fault.

    A damaged checkpoint is named and thrown away: its run starts anew.
    """
    try:
        with warnings.catch_warnings():
            # Deprecations inside other people's packages are nothing a user of ours can mend.
            warnings.filterwarnings("ignore", module=r"(?!vcl_radial).*")
            if len(job.runs) > 1:
                return _together(job.runs, place, tell)
            return [_alone(job.runs[0], job.floors, place, tell)]
    except UserError as error:
        # What stands behind a message about a file that could not be written.
        how: How = "blocked" if isinstance(error.__context__, OSError) else "failed"
        return [Ended(run, how, str(error)) for run in job.runs]
    except BrokenPipeError:  # nobody is listening any more
        raise
    except OSError as error:
        return [Ended(run, "blocked", str(error)) for run in job.runs]
    except Exception as error:
        words = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return [Ended(run, "failed", words) for run in job.runs]


def accuracies(rows: Sequence[Sequence[Any]]) -> dict[int, float]:
    """The average accuracy over the tasks trained so far, after each task, in per cent.

    Args:
        rows: `task_trained, task_evaluated, metric, value`.
    """
    seen: dict[int, list[float]] = {}
    for trained, evaluated, metric, value in rows:
        if metric == "accuracy" and 1 <= evaluated <= trained:
            seen.setdefault(trained, []).append(value)
    return {task: sum(values) / len(values) for task, values in sorted(seen.items())}


def accuracies_so_far(folder: RunFolder) -> dict[int, float]:
    """`accuracies` of a run folder, finished or not.

    Raises:
        UserError: its checkpoint is damaged.
    """
    if folder.fault() is None:
        _, *rows = csv.reader((folder.path / "accuracy.csv").read_text().splitlines())
        return accuracies([(int(i), int(j), metric, float(value)) for i, j, metric, value in rows])
    state = folder.load_checkpoint()
    return accuracies(state["rows"]) if state is not None else {}


def _alone(run: Run, floors: Sequence[Floor], place: Place, tell: Tell) -> Ended:
    before = _sound_checkpoint(RunFolder(place.out, run))

    def check(done: dict[int, float]) -> None:
        for floor in floors:
            if floor.task in done and done[floor.task] < floor.accuracy:
                accuracy = done[floor.task]
                raise Hopeless(f"after task {floor.task}: {accuracy:.2f} %, {floor.words}")

    def on_event(event: Event) -> None:
        tell(run, event)
        if event.kind == "task" and event.accuracy is not None:
            check({event.task: event.accuracy})

    try:
        check(before)
        execute(run, place, on_event)
    except Hopeless as error:
        return Ended(run, "pruned", str(error))
    except Diverged as error:
        return Ended(run, "diverged", str(error))
    return Ended(run, "finished")


def _together(runs: Sequence[Run], place: Place, tell: Tell) -> list[Ended]:
    for run in runs:
        _sound_checkpoint(RunFolder(place.out, run))
    faults = execute_lanes(runs, place, tell)
    # A lane ends early for one reason only, its checkpoint being sound: its loss is not finite.
    ends = zip(runs, faults, strict=True)
    return [Ended(run, "diverged" if fault else "finished", fault) for run, fault in ends]


def _sound_checkpoint(folder: RunFolder) -> dict[int, float]:
    """The accuracies in a checkpoint; one that is damaged is thrown away."""
    try:
        return accuracies_so_far(folder)
    except (UserError, LookupError, ValueError, TypeError) as error:
        print(f"{error}: this run starts anew", flush=True)
        folder.checkpoint.unlink(missing_ok=True)
        return {}
