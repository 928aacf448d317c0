"""The cells of a queue: which runs a file of blocks lists.

A block of `queue.toml` is a table with a `title`, `evaluate_on` and a list `cells` of tables with

- `benchmarks`, `methods` (names, or files beside the queue) and `seeds`,
- `fixed`, settings of all runs, and `grid`, lists of values, of which all combinations are run,
- or `search`, the space of `searches` searches of `trials` points each: scrambled Sobol sequences
  whose seeds are 0, 1, ..., the same points for every benchmark and method,
- or, in place of all but `seeds`, `best_of`, a block of searches: the whole stream at the settings
  with the best mean score over the seeds of each search, once all of that block is done. `score`
  names another metric than the average accuracy, and `fixed` changes settings.

The benchmark `papers` has figures of `vcl-radial papers` as its methods; they have no settings.

Keys of settings that are not a recipe's: `sigma` sets `initial_rho` to log(exp(sigma) - 1);
`resplit` holds other validation images out for every seed; `search` is the number of a search.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from scipy.stats import qmc

PAPERS = "papers"
NAMED = "block", "benchmark", "method", "settings", "evaluate_on", "seed"
"""The columns that name a cell."""

Row = dict[str, str]
Name = tuple[str, ...]
Settings = dict[str, Any]
Done = Mapping[Name, Sequence[Row]]
"""The rows of all finished cells, by their names."""


@dataclass(frozen=True)
class Cell:
    """A run. `benchmark` and `method` are names or paths."""

    block: str
    benchmark: str
    method: str
    evaluate_on: str
    seed: int
    settings: Settings = field(hash=False)

    @property
    def name(self) -> Name:
        """The name of the cell: the first columns of its rows."""
        texts = (f"{key}={json.dumps(value)}" for key, value in sorted(self.settings.items()))
        kind = (self.block, Path(self.benchmark).stem, Path(self.method).stem)
        return *kind, " ".join(texts), self.evaluate_on, str(self.seed)

    @property
    def keys(self) -> Settings:
        """The settings, in the form of `vcl-radial run --set`."""
        keys = {key: v for key, v in self.settings.items() if key not in ("search", "resplit")}
        if "sigma" in keys:  # initial_noise of a benchmark would take its place
            rho = math.log(math.expm1(keys.pop("sigma")))
            keys |= {"initial_rho": rho, "initial_noise": None}
        if self.settings.get("resplit"):
            keys["stream.split_seed"] = self.seed
        return keys | {"evaluate_on": self.evaluate_on}


class Block(NamedTuple):
    """A table of `queue.toml`."""

    name: str
    table: Mapping[str, Any]

    @property
    def file(self) -> str:
        """The name of the file of results."""
        return f"{self.name}-{self.table['title'].replace(' ', '-')}.csv.gz"


def blocks_of(path: Path) -> list[Block]:
    """The blocks of a queue in their order."""
    return [Block(*entry) for entry in tomllib.loads(path.read_text()).items()]


def settings_of(cells: Mapping[str, Any]) -> Iterator[Settings]:
    """All combinations of a grid, or the points of searches, with the fixed settings."""
    fixed, grid = cells.get("fixed", {}), cells.get("grid", {})
    if "search" not in cells:
        for values in itertools.product(*grid.values()):
            yield fixed | dict(zip(grid, values, strict=True))
        return
    for number in range(cells["searches"]):
        for point in sobol(cells["search"], cells["trials"], number):
            yield fixed | {"search": number} | point


def sobol(space: Mapping[str, Any], trials: int, seed: int) -> list[Settings]:
    """The first points of a scrambled Sobol sequence over lists of values and log ranges."""
    sequence = qmc.Sobol(len(space), seed=seed).random_base2(math.ceil(math.log2(trials)))
    return [
        {key: _value(space[key], u) for key, u in zip(space, point, strict=True)}
        for point in sequence[:trials]
    ]


def _value(choices: Any, u: float) -> Any:
    if isinstance(choices, list):
        return choices[int(u * len(choices))]
    return float(f"{choices['low'] * (choices['high'] / choices['low']) ** u:.3g}")


def cells_of(block: Block, path: Path, done: Done, *, to_count: bool = False) -> list[Cell]:
    """The cells of a block; if it takes the best settings of searches, after these are finished.

    Args:
        block: a block of the queue.
        path: path of the queue, in the folder of the benchmarks' and methods' files.
        done: the rows of all cells.
        to_count: for a search that is not finished, take any point in place of the best point.
    """

    def located(name: str) -> str:
        return str(path.parent / name) if name.endswith(".toml") else name

    cells = []
    for table in block.table["cells"]:
        parts = table.get("evaluate_on", block.table["evaluate_on"])
        if "best_of" in table:
            kinds = _best(table, path, done, to_count)
        else:
            benchmarks, methods = (map(located, table[key]) for key in ("benchmarks", "methods"))
            kinds = list(itertools.product(benchmarks, methods, settings_of(table)))
        cells += [
            Cell(block.name, benchmark, method, part, seed, settings)
            for part in ([parts] if isinstance(parts, str) else parts)
            for benchmark, method, settings in kinds
            for seed in table["seeds"]
        ]
    return list({cell.name: cell for cell in cells}.values())


def _best(
    table: Mapping[str, Any], path: Path, done: Done, to_count: bool
) -> list[tuple[str, str, Settings]]:
    """Benchmark, method and settings with the best mean score over the seeds of each search."""
    (searched,) = (block for block in blocks_of(path) if block.name == table["best_of"])
    metric = table.get("score", "average_accuracy")
    scores: dict[Any, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    settings: dict[str, Settings] = {}
    for cell in cells_of(searched, path, done):
        if cell.name not in done and not to_count:
            return []
        text = cell.name[3]
        values = [r["value"] for r in done.get(cell.name, ()) if r["metric"] == metric]
        key = cell.benchmark, cell.method, cell.settings.get("search")
        scores[key][text].append(float(values[0]) if values else -math.inf)
        left_out = ("resplit", "stream.first_tasks")
        kept = {k: v for k, v in cell.settings.items() if k not in left_out}
        settings[text] = kept | table.get("fixed", {})
    best = []
    for (benchmark, method, _), of in scores.items():
        means = {text: statistics.fmean(values) for text, values in of.items()}
        best.append((benchmark, method, settings[max(means, key=means.__getitem__)]))
    return best


def read(folder: Path, blocks: Sequence[Block]) -> dict[Name, list[Row]]:
    """The rows of all finished cells."""
    done: dict[Name, list[Row]] = defaultdict(list)
    for block in blocks:
        for row in rows_of(folder / block.file):
            done[tuple(row[key] for key in NAMED)].append(row)
    return dict(done)


def rows_of(path: Path) -> list[Row]:
    """The rows of a CSV file; none without the file."""
    if not path.exists():
        return []
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return [{str(name): text for name, text in row.items()} for row in table.to_dict("records")]


def estimates(done: Done, queue: Path) -> Callable[[Cell], float | None]:
    """A function from a cell to its seconds, by finished cells or by `cost.csv`.

    If no cell has the same block, benchmark and method, cells with the same benchmark and method
    count, then cells with the same benchmark; without any the function returns None.
    """
    times = [(name[:3], time_of(rows)) for name, rows in done.items()]
    measured = {kind for kind, _ in times}
    for row in rows_of(queue.with_name("cost.csv")):
        of_row = row["block"], row["benchmark"], row["method"]
        if of_row not in measured:
            times.append((of_row, float(row["seconds"])))
    seconds_of: dict[Name, list[float]] = defaultdict(list)
    for kind, seconds in times:
        for part in (kind, kind[1:], kind[1:2]):
            seconds_of[part].append(seconds)

    def estimate(cell: Cell) -> float | None:
        kind = cell.name[:3]
        parts = (part for part in (kind, kind[1:], kind[1:2]) if part in seconds_of)
        return next((statistics.fmean(seconds_of[part]) for part in parts), None)

    return estimate


def time_of(rows: Sequence[Row]) -> float:
    """The seconds of a finished cell."""
    return next(float(row["value"]) for row in rows if row["metric"] == "seconds")
