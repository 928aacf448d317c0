"""The data sets of a benchmark with a run for each of them."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from vcl_radial.errors import UserError


def taken_sets(
    data: dict[str, Any], name: str, example: list[str], instead: Collection[str]
) -> list[str] | None:
    """Remove `sets` from a benchmark's data: a name or a list of names, without duplicates.

    Args:
        data: the table, which is changed.
        name: name of the benchmark.
        example: examples of sets, for error messages.
        instead: the keys that name one set, which must not stand beside `sets`.

    Returns:
        The names; None if the benchmark has no `sets`.

    Raises:
        UserError: the sets are no names, or another key names a set.
    """
    if "sets" not in data:
        return None
    sets, where = data.pop("sets"), f"{name}: data.sets"
    names = [sets] if isinstance(sets, str) else sets
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise UserError(f"{where} = {sets!r}: name sets, for example {json.dumps(example)}")
    if any("[" in entry for entry in names):  # the shell has removed the quotes
        quoted = json.dumps(example[:1])
        raise UserError(
            f"{where} = {sets}: write quotes around all of it, --set 'data.sets={quoted}'"
        )
    if conflicting := sorted(set(instead) & data.keys()):
        raise UserError(
            f"{name}: data.{conflicting[0]}: the benchmark names data.sets; choose among those, "
            f"for example data.sets={json.dumps(names[:1])}"
        )
    return list(dict.fromkeys(names))
