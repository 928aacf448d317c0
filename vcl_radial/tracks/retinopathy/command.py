"""The whole of a command: prepare the photographs once, run what is not finished, show scores."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import pandas as pd
import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from vcl_radial.errors import Diverged, UserError
from vcl_radial.runs.folder import FAILED, TRACEBACK, RunFolder, write_atomically
from vcl_radial.runs.lock import AtWork, held
from vcl_radial.runs.supervisor import Report, carry_out
from vcl_radial.tracks.retinopathy.execute import execute
from vcl_radial.tracks.retinopathy.prepare import Prepared, prepare
from vcl_radial.tracks.retinopathy.processes import ALONE, Processes
from vcl_radial.tracks.retinopathy.settings import DataSettings, Run

SHOWN = (0.0, 0.1, 0.2, 0.3)
"""Shares that the paper's Table 1 has."""

_WIDTH = 92
"""Columns that the table needs; narrower terminals wrap its lines."""


@dataclass(frozen=True)
class Choices:
    """What the command line says.

    Attributes:
        runs: validated, of one benchmark.
        out: the folder of the results.
        data_dir: where the photographs lie; see `vcl_radial.data.fundus.load_photographs`.
        device: of the networks and the pixels.
        jobs: runs at a time, of one thread each where there are several.
        processes: that train together.
        command: in words, to stand with the results.
    """

    runs: Sequence[Run]
    out: Path
    data_dir: Path | None
    device: str
    jobs: int = 1
    processes: Processes = ALONE
    command: str | None = None


def refer(choices: Choices) -> int:
    """Carry a command out; a run that diverges is said to, and the others go on.

    Returns:
        How many runs have no result.

    Raises:
        UserError: something the user can mend; what was finished stays.
    """
    processes = choices.processes
    console = Console(highlight=False, soft_wrap=True, quiet=not processes.is_first)
    folders = [RunFolder(choices.out, run) for run in choices.runs]
    todo = [folder for folder in folders if not folder.finished()]
    kept = f", {len(folders) - len(todo)} kept from before" if len(todo) < len(folders) else ""
    console.print(f"{choices.runs[0].benchmark}: {len(todo)} runs to do{kept}", markup=False)
    if todo:
        sites = _prepared(choices, console)
        if min(choices.jobs, len(todo)) > 1:
            apart = partial(_run_apart, todo=todo, choices=choices)
            for ended in carry_out(apart, range(len(todo)), choices.jobs):
                _ = ended.result
        else:
            for k, folder in enumerate(todo):
                _run(folder, sites, choices, console, _place(k, todo))
    done = [folder for folder in folders if folder.finished()]
    if done and processes.is_first:
        show(done, console)
    return len(folders) - len(done)


def show(folders: Sequence[RunFolder[Run]], console: Console) -> None:
    """A table of AUC at the shares that are referred, means over seeds, for each test set.

    Photographs are ranked by mutual information; by entropy where a method has a single draw.
    """
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


def _prepared(choices: Choices, console: Console) -> list[Prepared]:
    # The first process fills the cache of pixels, and the others read it.
    if not choices.processes.is_first:
        choices.processes.wait()
    run = choices.runs[0]
    sites = prepare(run.needed, choices.data_dir)
    if choices.processes.is_first:
        choices.processes.wait()
    rest = "test on" if run.evaluate_on == "test" else "leave alone"
    for site in sites:
        split = site.split
        console.print(
            f"{site.name}: {len(split.train)} photographs to train on, {len(split.validation)} to "
            f"choose epochs on, {len(split.test)} to {rest}",
            markup=False,
        )
    return sites


def _place(k: int, todo: Sequence[RunFolder[Run]]) -> str:
    return f"[{k + 1} of {len(todo)}]"


@lru_cache(maxsize=1)  # a process carries out many runs, all of the same photographs
def _prepared_apart(needed: str, data_dir: Path | None) -> list[Prepared]:
    """Without a word of what is wrong with some of them: the first process has said that."""
    return prepare(DataSettings.model_validate_json(needed), data_dir, tell=lambda line: None)


def _run_apart(k: int, report: Report, todo: Sequence[RunFolder[Run]], choices: Choices) -> None:
    """One run in a process of its own; its lines come between those of the others."""
    console = Console(highlight=False, soft_wrap=True, force_terminal=False)
    sites = _prepared_apart(choices.runs[0].needed.model_dump_json(), choices.data_dir)
    _run(todo[k], sites, choices, console, _place(k, todo))


def _run(
    folder: RunFolder[Run],
    sites: Sequence[Prepared],
    choices: Choices,
    console: Console,
    place: str,
) -> None:
    """One run, unless another command is at it or has finished it meanwhile."""
    with ExitStack() as stack:

        def left_alone() -> bool:
            try:
                stack.enter_context(held([folder.path]))
            except AtWork as error:
                console.print(f"{folder.run.name}: {error}  {place}", markup=False)
                return True
            return folder.finished()

        if choices.processes.from_first(left_alone, torch.device(choices.device)):
            return
        for left in (FAILED, TRACEBACK):
            with suppress(OSError):  # of an earlier attempt
                (folder.path / left).unlink()
        _train(folder, sites, choices, console, place)


def _train(
    folder: RunFolder[Run],
    sites: Sequence[Prepared],
    choices: Choices,
    console: Console,
    place: str,
) -> None:
    run = folder.run
    steps = max(len(site.split.train) for site in sites) // run.recipe.batch_size
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    started = time.monotonic()
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(run.name, total=run.recipe.epochs * run.recipe.members * len(sites))
        within = bar.add_task("epoch", total=steps)

        def on_epoch(line: dict[str, float]) -> None:
            member, site, epoch = (int(line[key]) for key in ("member", "site", "epoch"))
            begun = member * len(sites) + site
            bar.update(task, completed=begun * run.recipe.epochs + epoch)
            bar.reset(within)
            where = f"  {sites[site].name}" if len(sites) > 1 else ""
            console.print(
                f"{run.method}  seed {run.seed}  member {member + 1}{where}  epoch {epoch}: "
                f"NLL {line['nll']:.4f} nats, validation AUC {line['validation_auc']:.2f} %",
                markup=False,
            )

        try:
            execute(
                folder,
                sites,
                choices.device,
                processes=choices.processes,
                on_epoch=on_epoch,
                on_batch=lambda: bar.advance(within),
                command=choices.command,
            )
        except Diverged as error:
            if choices.processes.is_first:
                write_atomically(folder.path / FAILED, f"{error}\n")
            console.print(f"{run.name} diverged: {error}  {place}", markup=False)
            return
        except UserError:
            raise
        except Exception as error:
            # The others of several processes would wait for this one.
            if choices.processes.world > 1:
                raise
            from vcl_radial.outside import in_words

            text, words = "".join(traceback.format_exception(error)), in_words(error)
            write_atomically(folder.path / TRACEBACK, text)
            write_atomically(folder.path / FAILED, f"{words}\n")
            words += f"; the traceback is in {folder.path / TRACEBACK}"
            console.print(f"{run.name}: {words}  {place}", markup=False)
            return
    minutes = (time.monotonic() - started) / 60
    console.print(f"{run.name} done in {minutes:.1f} min  {place}", markup=False)
