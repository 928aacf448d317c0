"""Runs of former versions: what their folders are told by, and the command that makes them again.

Nothing in them is touched.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vcl_radial.runs.folder import SPEC, read_spec


@dataclass
class _Former:
    where: Path
    methods: set[str] = field(default_factory=set)
    seeds: set[int] = field(default_factory=set)

    def line(self, benchmark: str) -> str:
        words = ["vcl-radial", "run", benchmark, "--method", *sorted(self.methods)]
        command = shlex.join([*words, "--seeds", str(max(self.seeds) + 1)])
        return f"{self.where}: holds runs of a former version; `{command}` makes them again"


def former_runs(folder: Path) -> tuple[set[Path], list[str]]:
    """The run folders and result files of former versions below a folder, and a line for each kind.

    These are run folders of photographs that name no track, and result files (`*.json`) of tables
    and bandits.
    """
    paths: set[Path] = set()
    kinds: dict[str, _Former] = {}
    names = ("seed-*", "test-*.json", "sequence-of-*.json")
    for path in sorted(path for name in names for path in folder.glob(f"**/{name}")):
        try:
            named = _run_folder(path) if path.is_dir() else _result_file(path)
            if named is None:
                continue
            benchmark, run = named
            # The folder of the benchmark, or the one that was given to --out.
            kind = kinds.setdefault(benchmark, _Former(path.parent.parent))
            kind.methods.add(str(run["method"]))
            kind.seeds |= {int(seed) for seed in run.get("splits") or [run["seed"]]}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue  # damaged, or somebody else's
        paths.add(path)
    return paths, [kind.line(benchmark) for benchmark, kind in kinds.items()]


def _run_folder(path: Path) -> tuple[str, Mapping[str, Any]] | None:
    if not (path / SPEC).exists():
        return None
    run = read_spec(path)
    if "track" in run or "stream" in run or "data" not in run:
        return None
    return f"retinopathy-{run['benchmark']}", run


def _result_file(path: Path) -> tuple[str, Mapping[str, Any]] | None:
    if path.suffix != ".json":
        return None
    unit = json.loads(path.read_text(encoding="utf-8"))["unit"]
    if "set" in unit:
        base = "diabetes" if unit["set"] == "diabetes" else "uci"
        return f"{base}-sequence" if unit["slices"] else base, unit
    return (f"bandit-{unit['dataset']}", unit) if "pulls" in unit else None
