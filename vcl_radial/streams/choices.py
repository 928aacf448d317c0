"""Settings checked, with the nearest valid value named when one is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from vcl_radial.errors import UserError


def check_choice(key: str, value: object, choices: Iterable[str]) -> None:
    """Raise a `UserError` that names `key` and the nearest valid value unless `value` is one."""
    valid = list(choices)
    if value in valid:
        return
    near = difflib.get_close_matches(str(value), valid, n=1, cutoff=0.4)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    raise UserError(f'{key} = "{value}" is unknown: {hint}valid: {", ".join(valid)}')


def check_count(key: str, value: object) -> None:
    """Raise a `UserError` that names `key` unless `value` is a whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UserError(f"{key} = {value!r} must be a whole number, at least 1")


def check_seed(key: str, value: object) -> None:
    """Raise a `UserError` that names `key` unless `value` is a whole number of at least 0."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise UserError(f"{key} = {value!r} must be a whole number, at least 0")


def check_fraction(key: str, value: object) -> None:
    """Raise a `UserError` that names `key` unless `value` is a number in [0, 1)."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
        raise UserError(f"{key} = {value!r} must be a number from 0 to below 1")
