"""Recognise the kind of a TOML file by its keys, to report a file of the wrong kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from vcl_radial.errors import UserError

Kind = Literal["benchmark", "method", "sweep"]

_FIXES: Mapping[tuple[Kind, Kind], str] = {
    ("benchmark", "method"): "is a recipe, not a benchmark: vcl-radial run BENCHMARK --method {}",
    ("benchmark", "sweep"): "is a sweep: vcl-radial sweep {}",
    ("method", "benchmark"): "is a benchmark, not a method: vcl-radial run {} --method NAME",
    ("method", "sweep"): "is a sweep, not a method: vcl-radial sweep {}",
    ("sweep", "benchmark"): "is a benchmark, not a sweep: vcl-radial run {}",
    ("sweep", "method"): "is a recipe, not a sweep: vcl-radial run BENCHMARK --method {}",
}
"""Fault and fix, by the expected kind and the actual one."""


def kind_of(table: Mapping[str, Any]) -> Kind | None:
    """The kind of a file with these keys; None where they do not decide it."""
    if "search" in table:
        return "sweep"
    if table.keys() & {"stream", "data", "track"}:
        return "benchmark"
    return "method" if table.keys() & {"strategy", "posterior", "options"} else None


def check_kind(name: str, expected: Kind, actual: Kind | None) -> None:
    """Raise if a name or a file is known to be of another kind.

    Raises:
        UserError: the kinds differ; the message names the command that takes it.
    """
    if actual is not None and actual != expected:
        raise UserError(f"{name} {_FIXES[expected, actual].format(name)}")
