"""Carry out runs in their folders: resume from the checkpoint, store every step, finish."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from vcl_radial.errors import UserError
from vcl_radial.runs import environment
from vcl_radial.runs.context import Log, RunContext
from vcl_radial.runs.folder import RESTART, DamagedCheckpoint, RunFolder
from vcl_radial.runs.kept import keep
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.states import difference, structure
from vcl_radial.runs.track import AnyTrack
from vcl_radial.runs.training import Step, Training


def execute(
    track: AnyTrack,
    run: RunSpec,
    context: RunContext,
    report: Callable[[Step], None] = lambda step: None,
) -> None:
    """Carry out a run; it resumes from its checkpoint where there is one.

    If several processes train together, the first one writes.

    Args:
        track: the track of the run.
        run: the run to carry out.
        context: device and folders of the run.
        report: called with every step; if it raises, the run stays resumable.

    Raises:
        UserError: a fault that the user can fix; finished steps stay.
        Diverged: the loss stopped being a finite number.
    """
    _prepare(context)
    folder, peers = RunFolder(context.out, run), context.peers
    logs: list[Log] = []

    def show(step: Step) -> None:
        for log in logs:
            log(step)
        report(step)

    training = track.open(run, context, show)
    # The other processes must not read files before the first one has written them in `open`.
    peers.wait()
    _resume(folder, training, context)
    peers.wait()
    if peers.is_first:
        folder.start()  # only now: a spec that does not fit its data leaves no folder behind
    with ExitStack() as stack:
        if peers.is_first:
            at = training.position().at
            logs += [stack.enter_context(start(folder, at)) for start in context.log.values()]
        report(training.position())
        for step in training.steps():
            # In this order, so that the log holds every stored step.
            for log in logs:
                log(step)
            if peers.is_first:
                folder.save_checkpoint(training.state_dict())
            report(step)
    if peers.is_first:
        _finish(track, folder, training, context)
    peers.wait()


def execute_together(
    track: AnyTrack,
    runs: Sequence[RunSpec],
    context: RunContext,
    report: Callable[[RunSpec, Step], None] = lambda run, step: None,
) -> list[str | None]:
    """Carry out runs as lanes of one program; each folder holds the files of one run.

    Returns:
        The fault of each run (it diverged, or its checkpoint cannot be used), or None.

    Raises:
        UserError: a fault of all runs that the user can fix.
    """
    _prepare(context)
    together = track.open_together(runs, context, lambda lane, step: report(runs[lane], step))
    folders = [RunFolder(context.out, run) for run in runs]
    faults: list[str | None] = [None] * len(runs)
    for lane, (run, folder) in enumerate(zip(runs, folders, strict=True)):
        training = together.lanes[lane]
        folder.start()
        try:
            _resume(folder, training, context)
        except UserError as error:  # only this run has the fault; the others continue
            faults[lane] = str(error)
            together.leave_out(lane)
            continue
        report(run, training.position())
    for steps in together.steps():
        for lane, step in steps.items():
            folders[lane].save_checkpoint(together.lanes[lane].state_dict())
            report(runs[lane], step)
    for lane, folder in enumerate(folders):
        fault = together.fault(lane)
        if fault is not None and faults[lane] is None:
            faults[lane] = str(fault)
        if faults[lane] is None:
            _finish(track, folder, together.lanes[lane], context)
    return faults


def _prepare(context: RunContext) -> None:
    from vcl_radial.system import processor

    environment.loaded()  # read the commit now, as the checkout may change during the run
    processor.prepare(context.threads)
    # The objects of an ended run form a reference cycle that holds all its data. Python collects
    # such cycles late, and the runs of a long search add up to gigabytes.
    gc.collect()


def _resume(folder: RunFolder[Any], training: Training, context: RunContext) -> None:
    """Resume from the checkpoint, if there is one, and warn if several engines have computed it.

    A damaged checkpoint is deleted, and the run starts again.

    Raises:
        UserError: the checkpoint does not fit the code.
    """
    state = None
    try:
        state = folder.load_checkpoint()
    except DamagedCheckpoint:
        if context.peers.is_first:
            print(f"{folder.checkpoint}: damaged; this run starts again", flush=True)
            folder.checkpoint.unlink(missing_ok=True)
    folder.engines = environment.engines_with(folder.engines, context.device)
    if state is None:
        return
    if context.peers.is_first:
        environment.warn_if_mixed(folder.checkpoint, folder.engines)
    cause: Exception | None = None
    try:
        training.load_state_dict(state)
        stored, loaded = structure(state), structure(training.state_dict())
        # A loader that casts or broadcasts changes a stored tensor.
        fault = difference(stored, {path: loaded.get(path, kind) for path, kind in stored.items()})
    except UserError:
        raise
    except Exception as error:  # the code of a user's method may have changed in any way
        cause, fault = error, " ".join(str(error).split())
    if fault is not None:
        raise UserError(
            f"does not fit the code as it is now ({fault}); {RESTART}", at=folder.checkpoint
        ) from cause


def _finish(
    track: AnyTrack, folder: RunFolder[Any], training: Training, context: RunContext
) -> None:
    """Write the model and the result files of a finished run."""
    if context.keep_model:
        keep(track, folder, training, points=context.keep_points)
    for name, state in training.kept().items():
        folder.save(name, state)
    facts = {
        **environment.describe(context.device, context.threads, folder.commits),
        **environment.describe_engines(folder.engines),
        **training.facts(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": context.command,
    }
    content = json.dumps(facts, indent=2) + "\n"
    folder.finish({**training.files(), "environment.json": content})
