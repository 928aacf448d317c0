"""Checks on the state of a checkpoint: no NaN, and the keys, dtypes and shapes that were stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def nan_in(state: Any) -> str | None:
    """Return the path of a tensor that holds NaN; infinity is allowed."""
    import torch

    for path, leaf in _leaves(state):
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.isnan().any():
            return path
    return None


def structure(state: Any) -> dict[str, str]:
    """Return dtype and shape of tensors, and the types of other values, by their dotted paths."""
    return {path: _kind(leaf) for path, leaf in _leaves(state)}


def difference(stored: Mapping[str, str], expected: Mapping[str, str]) -> str | None:
    """Describe where a structure differs from the expected one; None if nowhere."""
    for path in [*stored, *expected]:
        if path not in expected or path not in stored:
            return f"{path} is {'unknown' if path in stored else 'missing'}"
        if stored[path] != expected[path]:
            return f"{path} is {stored[path]}, not {expected[path]}"
    return None


def _leaves(state: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all values, but skip plain values in lists, which may be long."""
    if isinstance(state, Mapping):
        for key, value in state.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(state, list | tuple):
        for number, value in enumerate(state):
            if not isinstance(value, int | float | str | None):
                yield from _leaves(value, f"{path}.{number}")
    else:
        yield path, state


def _kind(leaf: Any) -> str:
    import torch

    if isinstance(leaf, torch.Tensor):
        return f"{str(leaf.dtype).removeprefix('torch.')} {list(leaf.shape)}"
    return type(leaf).__name__
