"""Runs under `torchrun`, and the scores of a command's runs as a table on the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress

import pandas as pd
import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from vcl_radial.errors import Diverged
from vcl_radial.runs.attempt import Ended
from vcl_radial.runs.folder import FAILED, TRACEBACK, RunFolder, write_atomically
from vcl_radial.runs.lock import AtWork, held
from vcl_radial.runs.place import Place
from vcl_radial.runs.track import AnyTrack
from vcl_radial.tracks.retinopathy.prepare import Prepared, prepare
from vcl_radial.tracks.retinopathy.processes import Processes, joined
from vcl_radial.tracks.retinopathy.settings import Run

SHOWN = (0.0, 0.1, 0.2, 0.3)
"""Shares that the paper's Table 1 has."""

_WIDTH = 92
"""Columns that the table needs; narrower terminals wrap its lines."""


def show(folders: Sequence[RunFolder[Run]]) -> None:
    """A table of AUC at the shares that are referred, means over seeds, for each test set.

    Photographs are ranked by mutual information; by entropy where a method has a single draw.
    """
    console = Console(highlight=False, soft_wrap=True)
    tables = []
    for folder in folders:
        table = pd.read_csv(folder.path / "scores.csv", dtype={"after": str, "set": str})
        first = table["uncertainty"].dropna().iloc[0]
        table = table[(table["metric"] == "auc") & (table["uncertainty"] == first)]
        tables.append(table.assign(method=folder.run.method, seed=folder.run.seed))
    scores = pd.concat(tables)
    in_sequence = scores["after"].nunique() > 1
    for (after, name), of_set in scores.groupby(["after", "set"], sort=False):
        when = f" after {after}" if in_sequence else ""
        shown = Table(
            title=f"{name}{when}: AUC in % of what is kept, by the share referred",
            title_justify="left",
            box=SIMPLE_HEAD,
            padding=(0, 1),
        )
        shown.add_column("method", no_wrap=True)
        shown.add_column("by", no_wrap=True)
        for column in (*(f"{share:.0%}" for share in SHOWN), "seeds"):
            shown.add_column(column, justify="right", no_wrap=True)
        for method, rows in of_set.groupby("method", sort=False):
            cells = [_cell(rows[rows["referred"] == share]) for share in SHOWN]
            by = "MI" if rows["uncertainty"].iloc[0] == "mutual_information" else "entropy"
            shown.add_row(str(method), by, *cells, str(rows["seed"].nunique()))
        wide = Console(file=console.file, width=max(console.width, _WIDTH), highlight=False)
        wide.print(shown)
    console.print("MI is mutual information; ± is the bootstrapped standard error over patients,")
    console.print("averaged over seeds")
    for notice in dict.fromkeys(notice for folder in folders for notice in _notices(folder)):
        console.print(notice, markup=False)


def _notices(folder: RunFolder[Run]) -> list[str]:
    facts = json.loads((folder.path / "environment.json").read_text(encoding="utf-8"))
    return list(facts["notices"])


def _cell(rows: pd.DataFrame) -> str:
    return f"{rows['value'].mean():.1f} ± {rows['standard_error'].mean():.1f}"


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
