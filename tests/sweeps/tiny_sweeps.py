"""Sweeps on split-digits whose runs take a fraction of a second."""

import copy
from pathlib import Path
from typing import Any

from vcl_radial.runs.context import RunContext
from vcl_radial.sweeps.command import perform_sweep
from vcl_radial.sweeps.plans import Plan, plans
from vcl_radial.sweeps.specification import parsed
from vcl_radial.sweeps.study import Study

DIGITS = "split-digits-multi-head"
TINY: dict[str, Any] = {
    "kind": "random",
    "benchmark": DIGITS,
    "method": "naive",
    "trials": 3,
    "fixed": {"hidden": [8], "eval_samples": 2, "epochs": 1, "stream": {"tasks": 2}},
    "search": {"learning_rate": {"low": 1e-4, "high": 1e-1, "log": True}},
}
FILE = Path("tiny.toml")


def table_of(**changes: Any) -> dict[str, Any]:
    """The tiny sweep's table with other keys; those of [search] and [fixed] by `search__key`."""
    table = copy.deepcopy(TINY)
    for key, value in changes.items():
        where, _, inner = key.partition("__")
        if inner:
            table[where][inner] = value
        else:
            table[key] = value
    return table


def plans_of(name: str = "tiny", **changes: Any) -> list[Plan]:
    return plans(name, parsed(table_of(**changes), FILE), FILE)


def swept(
    out: Path, lanes: int | None = None, storage: str | None = None, **changes: Any
) -> list[Study]:
    return perform_sweep(plans_of(**changes), RunContext(out), jobs=1, lanes=lanes, storage=storage)


def trials_bytes(out: Path, name: str = "tiny") -> bytes:
    return (out / name / "trials.csv").read_bytes()
