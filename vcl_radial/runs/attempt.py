"""Carry out the runs of one job in their folders, unless another command runs them already."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from vcl_radial.config.outside import format_error
from vcl_radial.errors import Diverged, UserError, VclRadialError, is_out_of_memory, visible_lines
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute, execute_together
from vcl_radial.runs.folder import RESTART, TRACEBACK, RunFolder, write_atomically
from vcl_radial.runs.lock import AlreadyRunning, held
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import AnyTrack
from vcl_radial.runs.training import Step
from vcl_radial.system.quiet import quiet

Report: TypeAlias = Callable[[Any, Step], None]
"""Called with a run and its progress."""

Status = Literal["finished", "pruned", "diverged", "failed", "lost", "blocked", "elsewhere"]
"""How a run ended. `failed`: a fault of its settings or of its method. `lost`: its process died.
`blocked`: the machine stops this run and all others (a full disk). `elsewhere`: another command
is running it."""


@dataclass(frozen=True)
class PruningThreshold:
    """The lowest score, in per cent, with which a run continues after a step."""

    step: int
    score: float
    reason: str


@dataclass(frozen=True)
class Job:
    """Runs that one worker carries out together; a job with thresholds has one run.

    Attributes:
        runs: runs in the order in which they are reported.
        thresholds: pruning thresholds in the order of their steps.
        discard_unusable: whether a checkpoint that cannot be used is deleted and its run restarts.
    """

    runs: tuple[RunSpec, ...]
    thresholds: tuple[PruningThreshold, ...] = ()
    discard_unusable: bool = False


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended, and why in one line (None for a finished one)."""

    run: Any
    status: Status
    fault: str | None = None


class Pruned(VclRadialError):
    """A run fell below its threshold."""


def fallen_below(
    thresholds: Sequence[PruningThreshold], scores: Mapping[int, float], step: str
) -> str | None:
    """Describe where the scores first fell below a threshold; None where they did not.

    Args:
        thresholds: pruning thresholds in the order of their steps.
        scores: scores by step, in per cent.
        step: the track's word for a step.
    """
    for threshold in thresholds:
        if threshold.step in scores and scores[threshold.step] < threshold.score:
            return (
                f"after {step} {threshold.step}: {scores[threshold.step]:.2f} %, {threshold.reason}"
            )
    return None


def attempt(job: Job, report: Report, track: AnyTrack, context: RunContext) -> list[RunOutcome]:
    """Carry out the runs of a job from their checkpoints; a run's fault is returned, not raised.

    `report` is called with a run and its progress. Runs that another command has finished
    meanwhile stay as they are. A damaged checkpoint is reported and deleted, and its run restarts.
    A run that failed leaves its reason in its folder.
    """
    ends, undone = [], []
    with ExitStack() as hold:
        for run in job.runs:
            folder = RunFolder(context.out, run)
            try:
                hold.enter_context(held(folder.path))
                done = folder.fault() is None
            except AlreadyRunning as error:
                ends.append(RunOutcome(run, "elsewhere", str(error)))
            except UserError as error:
                ends.append(RunOutcome(run, "blocked", str(error)))
            else:
                if done:
                    ends.append(RunOutcome(run, "finished"))
                else:
                    undone.append(run)
        if undone:
            ends += _attempt(replace(job, runs=tuple(undone)), report, track, context)
    return ends


def _attempt(job: Job, report: Report, track: AnyTrack, context: RunContext) -> list[RunOutcome]:
    folders = [RunFolder(context.out, run) for run in job.runs]
    if job.discard_unusable:
        for folder in folders:
            _discard_unusable(folder, track)
    for folder in folders:
        folder.forget_faults()
    resumed = {folder.path for folder in folders if folder.checkpoint.exists()}
    try:
        with quiet():
            if len(job.runs) > 1:
                ends = _together(job.runs, report, track, context)
            else:
                ends = [_alone(job.runs[0], job.thresholds, report, track, context)]
    except BrokenPipeError:  # the parent is gone
        raise
    except (UserError, OSError) as error:
        # The context is the cause of a message about a file that could not be written.
        blocked = isinstance(error, OSError) or isinstance(error.__context__, OSError)
        ends = [RunOutcome(run, "blocked" if blocked else "failed", str(error)) for run in job.runs]
    except (Exception, SystemExit) as error:  # a user's method may fail in any way
        ends = [
            RunOutcome(f.run, "failed", _unexpected(error, f, resumed=f.path in resumed))
            for f in folders
        ]
    for end in ends:
        folder = RunFolder(context.out, end.run)
        with suppress(UserError, OSError):  # a full disk has been reported, or will be
            # A run with an empty folder has not started.
            if end.status not in ("finished", "pruned") and any(folder.path.iterdir()):
                folder.record_fault(end.fault, diverged=end.status == "diverged")
    return ends


def _discard_unusable(folder: RunFolder[Any], track: AnyTrack) -> None:
    """Delete a checkpoint that is damaged or of another run, and report it."""
    try:
        track.scores_so_far(folder)
    except (UserError, LookupError, ValueError, TypeError) as error:
        print(f"{error}: this run starts again", flush=True)
        folder.checkpoint.unlink(missing_ok=True)


def _alone(
    run: RunSpec,
    thresholds: Sequence[PruningThreshold],
    report: Report,
    track: AnyTrack,
    context: RunContext,
) -> RunOutcome:
    def check(scores: Mapping[int, float]) -> None:
        message = fallen_below(thresholds, scores, track.step)
        if message is not None:
            raise Pruned(message)

    def on_step(step: Step) -> None:
        report(run, step)
        if step.score is not None:
            check({step.done: step.score})

    try:
        if thresholds:
            check(track.scores_so_far(RunFolder(context.out, run)))
        execute(track, run, context, on_step)
    except Pruned as error:
        return RunOutcome(run, "pruned", str(error))
    except Diverged as error:
        return RunOutcome(run, "diverged", str(error))
    return RunOutcome(run, "finished")


def _together(
    runs: Sequence[RunSpec], report: Report, track: AnyTrack, context: RunContext
) -> list[RunOutcome]:
    # A lane ends early where its loss is not finite or its checkpoint is of another run.
    faults = execute_together(track, runs, context, report)
    ends = zip(runs, faults, strict=True)
    return [RunOutcome(run, "diverged" if fault else "finished", fault) for run, fault in ends]


def _unexpected(error: BaseException, folder: RunFolder[Any], *, resumed: bool) -> str:
    """Describe a fault of the code or a checkpoint in one line; the folder gets the traceback."""
    with suppress(UserError):  # a full disk has been reported, or will be
        text = "".join(traceback.format_exception(error))
        write_atomically(folder.path / TRACEBACK, visible_lines(text))
    user_code: list[Callable[..., Any]] = []
    with suppress(UserError):
        user_code = folder.run.from_outside()
    fault = format_error(error, *user_code)
    if is_out_of_memory(error):
        fault = (
            "needs more memory than there is: choose a smaller network or batch, or fewer samples "
            f"of weights ({fault[:150]})"
        )
    fault += f"; the traceback is in {TRACEBACK} of the run's folder"
    if resumed:
        fault += f"; it resumed from {folder.checkpoint}: {RESTART}"
    return f"{fault}, and `vcl-radial check` looks closer at the method" if user_code else fault
