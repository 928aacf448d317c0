"""Runs under `torchrun`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress

import torch

from vcl_radial.errors import Diverged
from vcl_radial.runs.attempt import Ended
from vcl_radial.runs.folder import FAILED, TRACEBACK, RunFolder, write_atomically
from vcl_radial.runs.lock import AtWork, held
from vcl_radial.runs.place import Place
from vcl_radial.runs.track import AnyTrack
from vcl_radial.tracks.retinopathy.prepare import Prepared, prepare
from vcl_radial.tracks.retinopathy.processes import Processes, joined
from vcl_radial.tracks.retinopathy.settings import Run


def perform_together(track: AnyTrack, runs: Sequence[Run], place: Place) -> list[Ended] | None:
    """Carry runs out one after another, every batch shared among the processes of `torchrun`.

    A run that diverges is recorded, and the others go on. A fault of one process ends them all.

    Returns:
        How the runs ended, those that were not finished before; None in all processes but one.

    Raises:
        UserError: something the user can mend; what was finished stays.
    """
    with joined(place.device) as (processes, device):
        folders = [RunFolder(place.out, run) for run in runs]
        todo = [folder for folder in folders if not folder.finished()]
        if not todo:
            return [] if processes.is_first else None
        sites = _prepared(track, todo[0].run, place, processes)
        ends = [_run(folder, sites, place, device, processes) for folder in todo]
        return ends if processes.is_first else None


def _prepared(track: AnyTrack, run: Run, place: Place, processes: Processes) -> Sequence[Prepared]:
    # The first process fills the cache of pixels, and the others read it.
    if processes.is_first:
        track.check_data([run], place.data_dir)
    processes.wait()
    return prepare(run.needed, place.data_dir, tell=lambda line: None)


def _run(
    folder: RunFolder[Run],
    sites: Sequence[Prepared],
    place: Place,
    device: str,
    processes: Processes,
) -> Ended:
    """One run, unless another command is at work on it or has finished it meanwhile."""
    from vcl_radial.tracks.retinopathy.execute import execute
    from vcl_radial.tracks.retinopathy.track import step

    with ExitStack() as stack:
        reason = None

        def is_left_alone() -> bool:
            nonlocal reason
            try:
                stack.enter_context(held([folder.path]))
            except AtWork as error:
                reason = str(error)
                return True
            return folder.finished()

        if processes.from_first(is_left_alone, torch.device(device)):
            return Ended(folder.run, "finished" if reason is None else "elsewhere", reason)
        for name in (FAILED, TRACEBACK):
            with suppress(OSError):  # of an earlier attempt
                (folder.path / name).unlink()
        names = [site.name for site in sites]

        def on_epoch(history: Sequence[Mapping[str, float]]) -> None:
            if processes.is_first:
                print(f"{folder.run.label}  {step(folder.run, names, history).news}", flush=True)

        try:
            execute(
                folder,
                sites,
                device,
                processes=processes,
                on_epoch=on_epoch,
                command=place.command,
            )
        except Diverged as error:
            if processes.is_first:
                write_atomically(folder.path / FAILED, f"{error}\n")
            return Ended(folder.run, "diverged", str(error))
    return Ended(folder.run, "finished")
