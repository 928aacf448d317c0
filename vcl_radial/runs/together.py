"""Runs under `torchrun`: one after another, every batch shared among its processes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from vcl_radial.errors import Diverged
from vcl_radial.runs import tracks
from vcl_radial.runs.attempt import RunOutcome
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.lock import AlreadyRunning, held
from vcl_radial.runs.peers import joined
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import Step


def perform_together(runs: Sequence[RunSpec], place: RunContext) -> list[RunOutcome] | None:
    """Carry out what is not finished yet; a run that diverges is recorded, and the others go on.

    A fault of one process ends them all.

    Returns:
        How the runs ended; None in all processes but the first.

    Raises:
        UserError: something the user can mend; what was finished stays.
    """
    track = tracks.find(runs[0].TRACK)
    with joined(place.device) as (peers, device):
        place = replace(place, device=device, peers=peers)
        todo = [run for run in runs if not RunFolder(place.out, run).finished()]
        if todo:
            # The first process fills the caches, and the others read them.
            if peers.is_first:
                track.check_data(todo, place.data_dir)
            peers.wait()
        ends = [_attempt(run, place) for run in todo]
        return ends if peers.is_first else None


def _attempt(run: RunSpec, place: RunContext) -> RunOutcome:
    """One run, unless another command is at work on it or has finished it meanwhile."""
    import torch

    folder, peers = RunFolder(place.out, run), place.peers

    def report(step: Step) -> None:
        if peers.is_first and step.news is not None:
            print(f"{run.label}  {step.news}", flush=True)

    with ExitStack() as stack:
        reason = None

        def is_left_alone() -> bool:
            nonlocal reason
            try:
                stack.enter_context(held([folder.path]))
            except AlreadyRunning as error:
                reason = str(error)
                return True
            return folder.finished()

        if peers.from_first(is_left_alone, torch.device(place.device)):
            return RunOutcome(run, "finished" if reason is None else "elsewhere", reason)
        if peers.is_first:
            folder.forget_faults()
        try:
            execute(tracks.find(run.TRACK), run, place, report)
        except Diverged as error:
            if peers.is_first:
                folder.record_fault(str(error), diverged=True)
            return RunOutcome(run, "diverged", str(error))
    return RunOutcome(run, "finished")
