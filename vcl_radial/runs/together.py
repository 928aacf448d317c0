"""Carry out runs under `torchrun`: one after another, every batch split among the processes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from vcl_radial.errors import Diverged
from vcl_radial.runs import tracks
from vcl_radial.runs.attempt import RunOutcome
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.folder import RunFolder, check_output
from vcl_radial.runs.lock import AlreadyRunning, held
from vcl_radial.runs.peers import joined
from vcl_radial.runs.runner import check
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.training import Step


def perform_together(runs: Sequence[RunSpec], context: RunContext) -> list[RunOutcome] | None:
    """Carry out the runs that are not finished; a run that diverges does not stop the others.

    A fault of one process ends all processes.

    Returns:
        Outcomes of the runs; None in all processes but the first.

    Raises:
        UserError: a fault that the user can fix; finished steps stay.
    """
    track = tracks.find(runs[0].TRACK)
    with joined(context.device) as (peers, device):
        context = replace(context, device=device, peers=peers)
        check_output(context.out)
        todo = [run for run in runs if not RunFolder(context.out, run).finished()]
        if todo:
            # The first process fills the caches, and the others read them.
            if peers.is_first:
                check(track, todo, context.data_dir)
            peers.wait()
        ends = [_attempt(run, context) for run in todo]
        return ends if peers.is_first else None


def _attempt(run: RunSpec, context: RunContext) -> RunOutcome:
    """Carry out one run, unless another command is running it or has finished it."""
    import torch

    folder, peers = RunFolder(context.out, run), context.peers

    def report(step: Step) -> None:
        if peers.is_first and step.news is not None:
            print(f"{run.label}  {step.news}", flush=True)

    with ExitStack() as stack:
        reason = None

        def is_skipped() -> bool:
            nonlocal reason
            try:
                stack.enter_context(held(folder.path))
            except AlreadyRunning as error:
                reason = str(error)
                return True
            return folder.finished()

        if peers.from_first(is_skipped, torch.device(context.device)):
            return RunOutcome(run, "finished" if reason is None else "elsewhere", reason)
        if peers.is_first:
            folder.forget_faults()
        try:
            execute(tracks.find(run.TRACK), run, context, report)
        except Diverged as error:
            if peers.is_first:
                folder.record_fault(str(error), diverged=True)
            return RunOutcome(run, "diverged", str(error))
    return RunOutcome(run, "finished")
