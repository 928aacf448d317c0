"""Recognise the kind of a TOML file by its keys, to report a file of the wrong kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from vcl_radial.errors import UserError

Kind = Literal["benchmark", "method", "sweep"]

_USE: Mapping[Kind, str] = {
    "benchmark": "`vcl-radial run {}`",
    "method": "`vcl-radial run BENCHMARK --method {}`",
    "sweep": "`vcl-radial sweep {}`",
}
"""The command that takes a file of this kind."""


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
        use = _USE[actual].format(name)
        raise UserError(f"is a {actual}, not a {expected}: {use} takes it", at=name)
