"""The data sets of a benchmark that has a run for each of several."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from vcl_radial.errors import UserError


def taken_sets(
    data: dict[str, Any], name: str, example: list[str], instead: Collection[str]
) -> list[str] | None:
    """Take `sets` out of a benchmark's data: names, each of them once, or one without a list.

    Args:
        data: the table, which is changed.
        name: of the benchmark.
        example: of sets, for what is said of a mistake.
        instead: the keys that name one set, which must not stand beside `sets`.

    Returns:
        The names; None where the benchmark has no `sets`.

    Raises:
        UserError: they are no names, or one set is named as well.
    """
    if "sets" not in data:
        return None
    sets, where = data.pop("sets"), f"{name}: data.sets"
    names = [sets] if isinstance(sets, str) else sets
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise UserError(f"{where} = {sets!r}: name sets, for example {json.dumps(example)}")
    if any("[" in one for one in names):  # the shell has taken the quotes away
        shown = json.dumps(example[:1])
        raise UserError(
            f"{where} = {sets}: write quotes around all of it, --set 'data.sets={shown}'"
        )
    if others := sorted(set(instead) & data.keys()):
        raise UserError(
            f"{name}: data.{others[0]}: the benchmark names data.sets; choose among those, "
            f"for example data.sets={json.dumps(names[:1])}"
        )
    return list(dict.fromkeys(names))
