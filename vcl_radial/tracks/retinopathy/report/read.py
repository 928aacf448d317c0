"""Finished referral runs below a folder, gathered by benchmark and method."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from vcl_radial.errors import DataError, UserError
from vcl_radial.runs.folder import finished_fault, unfinished
from vcl_radial.tracks.retinopathy.settings import Run

_ORDER: Final = (
    "texture",
    "deterministic",
    "mc-dropout",
    "mfvi",
    "mfvi-tweaked",
    "mfvi-truncated",
    "radial",
    "deep-ensemble",
    "radial-ensemble",
)
"""The reference, the paper's order, the ensembles last."""

_TEXTS: Final = dict.fromkeys(
    ("after", "set", "image", "patient", "eye", "site", "artefact", "metric", "uncertainty"), str
)
"""Columns whose empty cells are empty texts, and whose digits are no numbers."""


@dataclass(frozen=True)
class Finished:
    """A finished run.

    Attributes:
        run: its keys.
        path: its folder.
        facts: its `environment.json`.
    """

    run: Run
    path: Path
    facts: dict[str, Any]

    def table(self, name: str) -> pd.DataFrame:
        """One of `vcl_radial.tracks.retinopathy.folder.TABLES`.

        Raises:
            DataError: it cannot be read.
        """
        path = self.path / f"{name}.csv"
        try:
            text = path.read_text(encoding="utf-8")
            table = pd.read_csv(
                io.StringIO(text), dtype=_TEXTS, keep_default_na=False, na_values=""
            )
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: cannot be read: {error}; run it again") from None
        return table.fillna({name: "" for name in _TEXTS if name in table})


@dataclass(frozen=True)
class Method:
    """All seeds of one method with the same keys.

    Attributes:
        label: its name, and the hash of its keys where a benchmark has it with several.
        seeds: its runs, by seed.
    """

    label: str
    seeds: Sequence[Finished]

    @property
    def run(self) -> Run:
        """The first seed's."""
        return self.seeds[0].run

    def table(self, name: str) -> pd.DataFrame:
        """A table of all seeds, with `method` and `seed` in front."""
        tables = []
        for one in self.seeds:
            table = one.table(name)
            table.insert(0, "method", self.label)
            table.insert(1, "seed", one.run.seed)
            tables.append(table)
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True)
class Benchmark:
    """What ran on the same photographs with the same split.

    Attributes:
        name: of the benchmark, and a hash of the data's keys where there are several.
        methods: in the paper's order, then by name.
    """

    name: str
    methods: Sequence[Method]

    @property
    def runs(self) -> list[Finished]:
        """Those of all methods."""
        return [one for method in self.methods for one in method.seeds]

    @property
    def notices(self) -> list[str]:
        """Licences, and what is synthetic."""
        return list(dict.fromkeys(notice for one in self.runs for notice in one.facts["notices"]))

    def table(self, name: str) -> pd.DataFrame:
        """A table of all runs."""
        return pd.concat([method.table(name) for method in self.methods], ignore_index=True)


def read_benchmarks(folder: Path) -> list[Benchmark]:
    """All finished runs below a folder; others are passed over and named.

    Raises:
        UserError: there is none.
    """
    found: dict[tuple[str, str], list[Finished]] = {}
    for path in sorted(path for path in folder.rglob("seed-*") if path.is_dir()):
        try:
            one = _read(path)
        except UserError as error:
            print(f"passed over: {error}", file=sys.stderr)
            continue
        if one is not None:
            found.setdefault((one.run.benchmark, _data_digest(one.run)), []).append(one)
    if not found:
        raise UserError(
            f"{folder}: holds no finished run on photographs; name the folder given to --out"
        )
    names = [name for name, _ in found]
    return [
        Benchmark(name if names.count(name) == 1 else f"{name}-{digest}", _methods(runs))
        for (name, digest), runs in found.items()
    ]


def _read(path: Path) -> Finished | None:
    """The run of a folder; None where it is of another track, or of a search.

    Raises:
        UserError: it is not finished, or damaged.
    """
    try:
        run = read_spec(path)
    except UserError:
        if not (path / "predictions.csv").is_file():
            return None
        raise
    if run.evaluate_on != "test":
        return None
    if (fault := finished_fault(path, run.result_files)) is not None:
        raise UserError(unfinished(path, fault))
    return Finished(run, path, _facts(path))


def read_spec(path: Path) -> Run:
    """The run of a folder.

    Raises:
        UserError: its spec is missing or damaged.
    """
    try:
        tables = tomllib.loads((path / "spec.toml").read_text(encoding="utf-8"))
        tables.pop("track", None)
        return Run.model_validate(tables)
    except (OSError, ValueError):
        raise UserError(f"{path / 'spec.toml'}: missing or damaged; run it again") from None


def _methods(runs: Sequence[Finished]) -> list[Method]:
    grouped: dict[tuple[str, str], dict[int, Finished]] = {}
    for one in runs:
        # A run that was copied about is one run.
        grouped.setdefault((one.run.method, one.run.digest()), {}).setdefault(one.run.seed, one)
    names = [name for name, _ in grouped]
    methods = [
        Method(
            name if names.count(name) == 1 else f"{name} {digest}",
            [seeds[seed] for seed in sorted(seeds)],
        )
        for (name, digest), seeds in grouped.items()
    ]
    return sorted(methods, key=lambda method: (_place(method.run.method), method.label))


def _place(method: str) -> int:
    return _ORDER.index(method) if method in _ORDER else len(_ORDER)


def _data_digest(run: Run) -> str:
    text = json.dumps(run.data.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads((path / "environment.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise DataError(f"{path / 'environment.json'}: cannot be read; run it again") from None
    return dict(facts)
