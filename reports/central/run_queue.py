"""The queue of this page's runs: carry them out, and show how many are finished and left.

    python reports/central/run_queue.py status [FOLDER]
    python reports/central/run_queue.py run [FOLDER] --hours 1

`queue.toml` lists cells (block, benchmark, method, settings, seed; see `cells.py`). FOLDER, by
default this one, holds the results of each block as `BLOCK-TITLE.csv.gz`, one row per number; a
cell with rows there is finished. The other cells run one after another on one core. After every
cell its file is written completely. Ctrl-C and SIGTERM lose only the running cell.

Numbers of a block come from one commit of the code. Committing results makes a new commit: run the
code from a separate clone that stays at its commit, and name the folder of the results.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd

from reports.central.cells import (
    NAMED,
    PAPERS,
    Block,
    Cell,
    Done,
    Name,
    Row,
    blocks_of,
    cells_of,
    estimates,
    read,
    rows_of,
    time_of,
)
from reports.papers.analysis import Setting
from reports.papers.compute import compute
from vcl_radial.data.data_files import DATA_VARIABLE, user_root
from vcl_radial.errors import VclRadialError
from vcl_radial.files import atomic
from vcl_radial.files.cache import cache_root, one_at_a_time
from vcl_radial.runs import catalogue, environment, planning, runner
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.track import AnyTrack
from vcl_radial.system import processor

HERE = Path(__file__).parent
COLUMNS = *NAMED, "after", "task", "metric", "value", "commit", "device"
OF_TASKS = "accuracy", "nll", "sampling"
OF_LAYERS = "moved", "noise", "units_at_rest"
OF_PHOTOGRAPHS = "auc", "accuracy", "auprc", "nll", "ece", "calibration_error", "sampling"

Number = tuple[Any, Any, str, float | None]
"""After a task, of a task or a layer, metric and value."""


def write(folder: Path, block: Block, done: Done) -> None:
    """Write the file of a block, with sorted rows."""
    rows = [row for name, rows in done.items() if name[0] == block.name for row in rows]
    numbers = ("seed", "after", "task")
    table = pd.DataFrame(rows, columns=COLUMNS).sort_values(
        list(COLUMNS), key=lambda column: column.str.zfill(6) if column.name in numbers else column
    )
    atomic.write(folder / block.file, atomic.gzipped(table.to_csv(index=False)))


def perform(cells: Sequence[Cell], layers: bool) -> dict[Name, list[Row]]:
    """Run cells that differ only in their seeds, as lanes if possible, and return their rows.

    Raises:
        VclRadialError: a cell cannot be run. A cell that diverges has the row `diverged`.
    """
    wall, cpu = time.monotonic(), time.process_time()
    if cells[0].benchmark == PAPERS:
        results = [list(_figure(cell)) for cell in cells]
    else:
        results = _runs(cells, layers)
    spent = [
        ("", "", "seconds", (time.monotonic() - wall) / len(cells)),
        ("", "", "cpu_seconds", (time.process_time() - cpu) / len(cells)),
    ]
    origin = {"commit": str(environment.loaded()), "device": "cpu"}
    return {
        cell.name: [
            dict(zip(COLUMNS, (*cell.name, *map(str, at), f"{value:.6g}"), strict=False)) | origin
            for *at, value in [*numbers, *spent]
        ]
        for cell, numbers in zip(cells, results, strict=True)
    }


def _figure(cell: Cell) -> Iterator[Number]:
    """The curves of a figure: x in the column `after`, the curve's name in the task's column.

    Raises:
        VclRadialError: no data folder is named; the figure would show drawn pictures.
    """
    if user_root(None) is None:
        raise VclRadialError(f"{cell.method}: name the folder of the data by {DATA_VARIABLE}")
    processor.prepare(threads=1)
    for curve in compute(cell.method, Setting(seed=cell.seed)).curves:
        for end in ("y", "low", "high"):
            name = curve.panel if end == "y" else f"{curve.panel} {end}"
            for x, value in zip(curve.x, getattr(curve, end) or (), strict=False):
                yield x, curve.name, name, value


def _runs(cells: Sequence[Cell], layers: bool) -> list[list[Number]]:
    track = catalogue.track_of(catalogue.load("benchmark", cells[0].benchmark))
    runs = [r for c in cells for r in planning.plan(c.benchmark, [c.method], [c.seed], c.keys)]
    track.check_runs(runs)
    runs = [run.on_data(None) for run in runs]
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        context = RunContext(Path(scratch))
        ends = {end.run.seed: end for end in runner.perform(runs, context, 1, len(runs))}
        for run in runs:
            end = ends[run.seed]
            if end.status not in ("finished", "diverged"):
                raise VclRadialError(f"{run.label}: {end.fault}")
            numbers: list[Number] = [("", "", "diverged", 1.0)]
            if end.status == "finished":
                folder = RunFolder(context.out, run)
                photographs = track.name == "retinopathy"
                kept = _photographs(track, folder) if photographs else _tasks(folder.path, layers)
                numbers = list(kept)
            results.append(numbers)
    return results


def _photographs(track: AnyTrack, folder: RunFolder[Any]) -> Iterator[Number]:
    """The stored numbers of a finished run on photographs; `epoch_*` has the epoch in `after`."""
    sites = json.loads((folder.path / "environment.json").read_text())["sites"]
    for row in rows_of(folder.path / "scores.csv"):
        # There is no AUC if only one class is left.
        if (
            row["metric"] in OF_PHOTOGRAPHS
            and row["referred"] in ("", "0.0", "0.3")
            and row["value"]
        ):
            referred = f"_30_by_{row['uncertainty']}" if row["referred"] == "0.3" else ""
            at = sites.index(row["after"]) + 1, row["part"]
            yield *at, row["metric"] + referred, float(row["value"])
    for objective in track.objectives:
        yield len(sites), "", objective, track.score(folder, objective)
    for epoch, row in enumerate(rows_of(folder.path / "history.csv"), start=1):
        for key in ("nll", "kl", "validation_auc"):
            yield epoch, "", f"epoch_{key}", float(row[key])


def _tasks(path: Path, layers: bool) -> Iterator[Number]:
    """The stored numbers of a finished run on a sequence of tasks."""
    for row in rows_of(path / "accuracy.csv"):
        after, task = int(row["task_trained"]), int(row["task_evaluated"])
        if row["metric"] in OF_TASKS and task <= after:
            yield after, task, row["metric"], float(row["value"])
    facts = json.loads((path / "environment.json").read_text())
    for metric, score in json.loads((path / "metrics.json").read_text()).items():
        if score is not None:
            yield len(facts["tasks"]), "", metric, score
    for start in facts.get("starts", []):
        for key in ("scale", "group_size", "noise"):
            yield 0, start["layer"], f"start_{key}", start[key]
    for row in rows_of(path / "layers.csv") if layers else []:
        for key in OF_LAYERS:
            yield row["task_trained"], row["layer"], f"layer_{key}", float(row[key])


def status(queue: Path, folder: Path) -> None:
    """Print a line for each block: cells, seconds of a cell, hours measured and hours left."""
    blocks = blocks_of(queue)
    done = read(folder, blocks)
    seconds_of = estimates(done, queue)
    print(f"{'block':24} {'done':>6} {'all':>6} {'s/cell':>7} {'hours':>7} {'left':>7}")
    for block in blocks:
        cells = cells_of(block, queue, done, to_count=True)
        spent = [time_of(done[cell.name]) for cell in cells if cell.name in done]
        left = [seconds_of(cell) for cell in cells if cell.name not in done]
        to_come = sum(seconds or 0.0 for seconds in left)
        untimed = f"  and {left.count(None)} cells without a time" if None in left else ""
        title = f"{block.name} {block.table['title']}"
        print(
            f"{title:24} {len(spent):6} {len(cells):6} {(sum(spent) + to_come) / len(cells):7.1f} "
            f"{sum(spent) / 3600:7.2f} {to_come / 3600:7.2f}{untimed}"
        )


def run(
    queue: Path, folder: Path, names: Sequence[str], hours: float, one_each: bool, new_commit: bool
) -> None:
    """Run the remaining cells in order, until the next cells do not fit into the hours.

    Args:
        queue: path of `queue.toml`.
        folder: folder of the results.
        names: names of the blocks.
        hours: hours from now.
        one_each: run one cell for each block, benchmark and method without a finished cell, to
            measure the times.
        new_commit: continue a block that another commit has begun.

    Raises:
        VclRadialError: a cell cannot be run, or the block's other cells come from another commit.
    """
    ends = time.monotonic() + 3600 * hours
    blocks = blocks_of(queue)
    done = read(folder, blocks)
    for block in blocks:
        cells = [cell for cell in cells_of(block, queue, done) if cell.name not in done]
        if not cells or block.name not in names:
            continue
        commits = {row["commit"] for n, rows in done.items() if n[0] == block.name for row in rows}
        code = str(environment.loaded())
        if (commits - {code} or code.endswith("-dirty")) and not new_commit:
            raise VclRadialError(
                f"{block.file} is of commit {', '.join(sorted(commits)) or 'none'}, and the code "
                f"of {code}: check one commit out, or add --new-commit"
            )
        for batch in _batches(cells, block.table.get("lanes", 1)):
            kind = batch[0].name[:3]
            if one_each and any(name[:3] == kind for name in done):
                continue
            if time.monotonic() + len(batch) * (estimates(done, queue)(batch[0]) or 0.0) > ends:
                return
            done |= perform(batch[:1] if one_each else batch, block.table.get("layers", False))
            write(folder, block, done)


def _batches(cells: Iterable[Cell], lanes: int) -> Iterator[list[Cell]]:
    """Batches of at most `lanes` neighbours that differ only in their seeds."""
    for _, alike in itertools.groupby(cells, key=lambda cell: cell.name[:-1]):
        group = list(alike)
        yield from (group[at : at + lanes] for at in range(0, len(group), lanes))


def _wait() -> None:
    print("run_queue: waits until another queue ends", file=sys.stderr)


def _interrupt(*_: Any) -> NoReturn:
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["status", "run"])
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=HERE,
        help="folder of the results (default: this page's folder)",
    )
    parser.add_argument("--queue", type=Path, default=HERE / "queue.toml")
    parser.add_argument(
        "--block",
        dest="blocks",
        metavar="NAME",
        action="append",
        help="only this block; may be repeated",
    )
    parser.add_argument(
        "--hours", type=float, default=math.inf, help="hours from now (default: no limit)"
    )
    parser.add_argument("--one-each", action="store_true", help="time one cell of each kind")
    parser.add_argument("--new-commit", action="store_true", help="continue with other code")
    options = parser.parse_intermixed_args(arguments)
    queue, folder = options.queue, options.folder
    if options.what == "status":
        status(queue, folder)
        return 0
    all_names = [block.name for block in blocks_of(queue)]
    names = options.blocks or all_names
    if unknown := set(names) - set(all_names):
        parser.error(f"--block {unknown.pop()}: choose from {', '.join(all_names)}")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with one_at_a_time(cache_root() / "central-question.lock", _wait):
            run(queue, folder, names, options.hours, options.one_each, options.new_commit)
    except VclRadialError as error:
        print(f"run_queue: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("run_queue: stopped; the same command resumes", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
