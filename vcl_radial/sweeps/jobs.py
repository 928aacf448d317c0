"""One job of a sweep: runs carried out in their folders, given up where they are hopeless."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from vcl_radial.errors import Diverged, UserError, VclRadialError
from vcl_radial.experiments.execute import Place
from vcl_radial.quiet import quiet
from vcl_radial.sweeps.tracks import track_of
from vcl_radial.sweeps.tracks.track import Folder, Run, Step

How = Literal["finished", "pruned", "diverged", "failed", "lost", "blocked"]
"""How a run ended. `failed`: a fault of its settings or of its method. `lost`: its process died, it
is to be done again. `blocked`: the machine would not let it (a full disk), nor any other."""


@dataclass(frozen=True)
class Floor:
    """The least score, in per cent, with which a run goes on after a step."""

    step: int
    score: float
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


Tell = Callable[[Run, Step], None]


class Hopeless(VclRadialError):
    """A run fell below its floor."""


def attempt(job: Job, place: Place, tell: Tell) -> list[Ended]:
    """Carry the runs of a job out, going on from their checkpoints; never raises for a run's fault.

    A damaged checkpoint is named and thrown away: its run starts anew.
    """
    try:
        with quiet():
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


def _alone(run: Run, floors: Sequence[Floor], place: Place, tell: Tell) -> Ended:
    track = track_of(run)
    before = _sound_checkpoint(track.folder(place.out, run))

    def check(scores: dict[int, float]) -> None:
        for floor in floors:
            if floor.step in scores and scores[floor.step] < floor.score:
                where = f"after {track.step} {floor.step}"
                raise Hopeless(f"{where}: {scores[floor.step]:.2f} %, {floor.words}")

    def on_step(step: Step) -> None:
        tell(run, step)
        if step.score is not None:
            check({step.done: step.score})

    try:
        check(before)
        track.execute(run, place, on_step)
    except Hopeless as error:
        return Ended(run, "pruned", str(error))
    except Diverged as error:
        return Ended(run, "diverged", str(error))
    return Ended(run, "finished")


def _together(runs: Sequence[Run], place: Place, tell: Tell) -> list[Ended]:
    track = track_of(runs[0])
    for run in runs:
        _sound_checkpoint(track.folder(place.out, run))
    faults = track.execute_together(runs, place, tell)
    # A lane ends early for one reason only, its checkpoint being sound: its loss is not finite.
    ends = zip(runs, faults, strict=True)
    return [Ended(run, "diverged" if fault else "finished", fault) for run, fault in ends]


def _sound_checkpoint(folder: Folder) -> dict[int, float]:
    """The scores in a checkpoint; one that is damaged is thrown away."""
    try:
        return track_of(folder.run).so_far(folder)
    except (UserError, LookupError, ValueError, TypeError) as error:
        print(f"{error}: this run starts anew", flush=True)
        folder.checkpoint.unlink(missing_ok=True)
        return {}
