"""The queue of this page's runs: what is to be run, what is done, and what is left.

    python reports/central_question/run_queue.py status [FOLDER]
    python reports/central_question/run_queue.py run [FOLDER] --hours 1

`queue.toml` lists cells (block, benchmark, method, settings, seed; see `cells.py`). FOLDER, by
default this one, holds the results of each block as `BLOCK-TITLE.csv.gz`, a row for each number; a
cell with rows there is done. The others are run one after another on one core, and a file is
written anew, whole, after every cell. Ctrl-C and SIGTERM lose the cell at work and no other.

Numbers of a block come from one commit of the code. Results that are committed move it on: run the
code from a clone that stays where it is, and name the folder of the results.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import itertools
import json
import math
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cells import Block, Cell, Done, Name, Row, blocks_of, cells_of

from vcl_radial import atomic
from vcl_radial.cache import cache_root, one_at_a_time
from vcl_radial.errors import VclRadialError
from vcl_radial.runs import catalogue, environment, planning, runner
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.place import Place

HERE = Path(__file__).parent
NAMED = "block", "benchmark", "method", "settings", "evaluate_on", "seed"
COLUMNS = *NAMED, "after", "task", "metric", "value", "commit", "device"
OF_TASKS = "accuracy", "nll", "sampling"
OF_LAYERS = "moved", "noise", "units_at_rest"
TIMES = "seconds", "cpu_seconds"

Number = tuple[Any, Any, str, float]
"""After a task, of a task or a layer, metric and value."""


def read(folder: Path, blocks: Sequence[Block]) -> dict[Name, list[Row]]:
    """The rows of all cells that are done."""
    done: dict[Name, list[Row]] = defaultdict(list)
    for path in (folder / block.file for block in blocks):
        if path.exists():
            for row in csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode())):
                done[tuple(row[key] for key in NAMED)].append(row)
    return dict(done)


def write(folder: Path, block: Block, done: Done) -> None:
    """Write the file of a block anew, its rows sorted."""
    rows = [row for name, rows in done.items() if name[0] == block.name for row in rows]
    numbers = ("seed", "after", "task")
    rows.sort(key=lambda r: [r[k].zfill(6) if k in numbers else r[k] for k in COLUMNS])
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    atomic.write(folder / block.file, atomic.gzipped(text.getvalue()))


def perform(cells: Sequence[Cell], layers: bool) -> dict[Name, list[Row]]:
    """Run cells that differ in their seeds alone, as lanes where they can be, and give their rows.

    Raises:
        VclRadialError: one cannot be run. One that diverges has the row `diverged`.
    """
    track = catalogue.track_of(catalogue.load("benchmark", cells[0].benchmark))
    runs = [r for c in cells for r in planning.plan(c.benchmark, [c.method], [c.seed], c.keys)]
    track.check_runs(runs)
    runs = [track.on_data(run, None) for run in runs]
    with tempfile.TemporaryDirectory() as scratch:
        place = Place(Path(scratch))
        wall, cpu = time.monotonic(), time.process_time()
        ends = {end.run.seed: end for end in runner.perform(runs, place, 1, len(runs))}
        spent = [
            ("", "", "seconds", (time.monotonic() - wall) / len(runs)),
            ("", "", "cpu_seconds", (time.process_time() - cpu) / len(runs)),
        ]
        done = {}
        for cell, run in zip(cells, runs, strict=True):
            end = ends[cell.seed]
            if end.how not in ("finished", "diverged"):
                raise VclRadialError(f"{run.label}: {end.fault}")
            numbers: Iterable[Number] = [("", "", "diverged", 1.0)]
            if end.how == "finished":
                numbers = _numbers(RunFolder(place.out, run).path, layers)
            origin = {"commit": str(environment.loaded()), "device": place.device}
            done[cell.name] = [
                dict(zip(COLUMNS, (*cell.name, *map(str, at), f"{value:.6g}"), strict=False))
                | origin
                for *at, value in [*numbers, *spent]
            ]
    return done


def _numbers(path: Path, layers: bool) -> Iterator[Number]:
    """What is kept of a finished run."""
    for row in _table(path / "accuracy.csv"):
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
    for row in _table(path / "layers.csv") if layers else []:
        for key in OF_LAYERS:
            yield row["task_trained"], row["layer"], f"layer_{key}", float(row[key])


def _table(path: Path) -> list[Row]:
    return list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []


def estimates(done: Done) -> Callable[[Cell], float | None]:
    """A function from a cell to its seconds by those that are done; None of a kind without any."""
    known: dict[Name, list[float]] = defaultdict(list)
    for (block, benchmark, method, *_), rows in done.items():
        seconds = next(float(row["value"]) for row in rows if row["metric"] == "seconds")
        for kind in ((block, benchmark, method), (benchmark, method), (benchmark,)):
            known[kind].append(seconds)

    def of(cell: Cell) -> float | None:
        block, benchmark, method, *_ = cell.name
        kinds = ((block, benchmark, method), (benchmark, method), (benchmark,))
        return next((statistics.fmean(known[kind]) for kind in kinds if kind in known), None)

    return of


def status(queue: Path, folder: Path) -> None:
    """Print a line for each block: cells, hours measured and hours left."""
    blocks = blocks_of(queue)
    done = read(folder, blocks)
    seconds_of = estimates(done)
    print(f"{'block':24} {'done':>6} {'all':>6} {'hours':>7} {'left':>7}")
    for block in blocks:
        cells = cells_of(block, queue, done)
        spent = [
            float(row["value"])
            for cell in cells
            for row in done.get(cell.name, ())
            if row["metric"] == "seconds"
        ]
        left = [seconds_of(cell) for cell in cells if cell.name not in done]
        hours = sum(seconds or 0.0 for seconds in left) / 3600
        untimed = f"  and {left.count(None)} cells without a time" if None in left else ""
        waits = "  after the searches" if not cells else ""
        title = f"{block.name} {block.table['title']}"
        print(
            f"{title:24} {len(spent):6} {len(cells):6} {sum(spent) / 3600:7.2f} {hours:7.2f}"
            f"{untimed}{waits}"
        )


def run(queue: Path, folder: Path, hours: float, one_each: bool, new_commit: bool) -> None:
    """Carry out what is left, in order, until the next cells do not fit into the hours.

    Args:
        queue: the list.
        folder: of the results.
        hours: from now.
        one_each: one cell for each block, benchmark and method that has none, to know the times.
        new_commit: go on with a block that another commit has begun.

    Raises:
        VclRadialError: a cell cannot be run, or the code is not that of the block's other cells.
    """
    ends = time.monotonic() + 3600 * hours
    blocks = blocks_of(queue)
    done = read(folder, blocks)
    for block in blocks:
        cells = [cell for cell in cells_of(block, queue, done) if cell.name not in done]
        if not cells:
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
            if time.monotonic() + len(batch) * (estimates(done)(batch[0]) or 0.0) > ends:
                return
            done |= perform(batch[:1] if one_each else batch, block.table.get("layers", False))
            write(folder, block, done)


def _batches(cells: Iterable[Cell], lanes: int) -> Iterator[list[Cell]]:
    """Neighbours that differ in their seeds alone, at most so many."""
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
    parser.add_argument("folder", nargs="?", type=Path, default=HERE, help="of the results")
    parser.add_argument("--queue", type=Path, default=HERE / "queue.toml")
    parser.add_argument("--hours", type=float, default=math.inf, help="(default: no end)")
    parser.add_argument("--one-each", action="store_true", help="time one cell of each kind")
    parser.add_argument("--new-commit", action="store_true", help="go on with other code")
    options = parser.parse_intermixed_args(arguments)
    if options.what == "status":
        status(options.queue, options.folder)
        return 0
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with one_at_a_time(cache_root() / "central-question.lock", _wait):
            run(options.queue, options.folder, options.hours, options.one_each, options.new_commit)
    except VclRadialError as error:
        print(f"run_queue: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("run_queue: stopped; the same command goes on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
