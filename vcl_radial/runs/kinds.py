"""What a TOML file is, by its keys: a command says so where another kind is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from vcl_radial.errors import UserError

Kind = Literal["benchmark", "method", "sweep"]

_MENDS: Mapping[tuple[Kind, Kind], str] = {
    ("benchmark", "method"): "is a recipe, not a benchmark: vcl-radial run BENCHMARK --method {}",
    ("benchmark", "sweep"): "is a sweep: vcl-radial sweep {}",
    ("method", "benchmark"): "is a benchmark, not a method: vcl-radial run {} --method NAME",
    ("method", "sweep"): "is a sweep, not a method: vcl-radial sweep {}",
    ("sweep", "benchmark"): "is a benchmark, not a sweep: vcl-radial run {}",
    ("sweep", "method"): "is a recipe, not a sweep: vcl-radial run BENCHMARK --method {}",
}
"""By what is wanted and what there is."""


def kind_of(table: Mapping[str, Any]) -> Kind | None:
    """What a file with these keys is; None where they do not say."""
    if "search" in table:
        return "sweep"
    if table.keys() & {"stream", "data", "track"}:
        return "benchmark"
    return "method" if table.keys() & {"strategy", "posterior", "options"} else None


def check_kind(name: str, wanted: Kind, there: Kind | None) -> None:
    """See that a name or a file is of the kind that is wanted, as far as is known.

    Raises:
        UserError: it is of another one; says where to give it.
    """
    if there is not None and there != wanted:
        raise UserError(f"{name} {_MENDS[wanted, there].format(name)}")
