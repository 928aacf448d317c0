"""Carrying runs out in their folders: go on from the checkpoint, store every step, finish."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from vcl_radial.errors import UserError
from vcl_radial.runs import environment
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import ANEW, DamagedCheckpoint, RunFolder, discard_damaged
from vcl_radial.runs.loggers import Log, logged
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.states import difference, structure
from vcl_radial.runs.track import AnyTrack, Step
from vcl_radial.runs.training import Training


def execute(
    track: AnyTrack,
    run: RunSpec,
    place: RunContext,
    report: Callable[[Step], None] = lambda step: None,
) -> None:
    """Carry a run out, going on from its checkpoint where there is one.

    Of several processes that train together the first one writes.

    Args:
        track: of the run.
        run: to carry out.
        place: where it computes, reads and writes.
        report: called with every step; what it raises leaves the run resumable.

    Raises:
        UserError: something the user can mend; what was finished stays.
        Diverged: the loss stopped being a finite number.
    """
    _prepare(place)
    folder, peers = RunFolder(place.out, run), place.peers
    logs: list[Log] = []

    def show(step: Step) -> None:
        for log in logs:
            log(step)
        report(step)

    training = track.open(run, place, show)
    # Nobody reads while the first process still writes what another run left to be done.
    peers.wait()
    state = _state(folder, place)
    folder.engines = environment.engines_with(folder.engines, place.device)
    if state is not None:
        _load(folder, training, state, place)
    peers.wait()
    if peers.is_first:
        folder.start()  # only now: a spec that does not fit its data leaves no folder behind
    with logged(place.log if peers.is_first else (), folder, training.position().at) as log:
        logs.append(log)
        report(training.position())
        for step in training.steps():
            # In this order: what is stored is in the log.
            log(step)
            if peers.is_first:
                folder.save_checkpoint(training.state_dict())
            report(step)
    if peers.is_first:
        _finish(folder, training, place)
    peers.wait()


def execute_together(
    track: AnyTrack,
    runs: Sequence[RunSpec],
    place: RunContext,
    report: Callable[[RunSpec, Step], None] = lambda run, step: None,
) -> list[str | None]:
    """Carry runs out as lanes of one program; each folder holds what it would hold alone.

    Returns:
        The fault of each run: that it diverged, or that its checkpoint is of no use.

    Raises:
        UserError: something the user can mend that concerns them all.
    """
    _prepare(place)
    together = track.open_together(runs, place, lambda lane, step: report(runs[lane], step))
    folders = [RunFolder(place.out, run) for run in runs]
    faults: list[str | None] = [None] * len(runs)
    for lane, (run, folder) in enumerate(zip(runs, folders, strict=True)):
        training = together.lanes[lane]
        folder.start()
        try:
            state = _state(folder, place)
            folder.engines = environment.engines_with(folder.engines, place.device)
            if state is not None:
                _load(folder, training, state, place)
        except UserError as error:  # a matter of this run; the others go on
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
            _finish(folder, together.lanes[lane], place)
    return faults


def _prepare(place: RunContext) -> None:
    from vcl_radial.system import processor

    environment.loaded()  # the commit, before anybody makes another
    processor.prepare(place.threads)
    # An ended run is a cycle of few objects that holds all its data: not collected by itself, the
    # runs of a long search add up to gigabytes.
    gc.collect()


def _state(folder: RunFolder[Any], place: RunContext) -> dict[str, Any] | None:
    """The checkpoint, or None where there is none, or a damaged one: the run starts anew."""
    try:
        return folder.load_checkpoint()
    except DamagedCheckpoint:
        if place.peers.is_first:
            discard_damaged(folder.checkpoint)
        return None


def _load(
    folder: RunFolder[Any], training: Training, state: dict[str, Any], place: RunContext
) -> None:
    """Go on from a checkpoint, and say where not all steps are made by one engine.

    Raises:
        UserError: it does not fit.
    """
    if place.peers.is_first:
        environment.tell_if_mixed(folder.checkpoint, folder.engines)
    cause: Exception | None = None
    try:
        training.load_state_dict(state)
        stored, loaded = structure(state), structure(training.state_dict())
        # A loader that casts or broadcasts has another tensor than was stored.
        fault = difference(stored, {path: loaded.get(path, kind) for path, kind in stored.items()})
    except UserError:
        raise
    except Exception as error:  # the code of a user's method may have changed in any way
        cause, fault = error, " ".join(str(error).split())
    if fault is not None:
        raise UserError(
            f"{folder.checkpoint}: does not fit the code as it is now ({fault}); {ANEW}"
        ) from cause


def _finish(folder: RunFolder[Any], training: Training, place: RunContext) -> None:
    """Write a finished run's result files."""
    for name, state in training.kept().items():
        folder.save(name, state)
    facts = {
        **environment.describe(place.device, place.threads, folder.commits),
        **environment.of_engines(folder.engines),
        **training.facts(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": place.command,
    }
    content = json.dumps(facts, indent=2) + "\n"
    folder.finish({**training.files(), "environment.json": content})
