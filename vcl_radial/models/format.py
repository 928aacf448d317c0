"""The files of a kept model: tensors as safetensors, and everything else as one JSON card."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcl_radial.errors import DataError, UserError, VclRadialError
from vcl_radial.files import reading

if TYPE_CHECKING:
    from torch import Tensor

CARD, TENSORS = "model.json", "model.safetensors"
"""The two files of a kept model in the folder of its run."""

VERSION = 2
"""The version of the format. Older versions are read; a newer one is refused. 2: symmetric matrices
are stored as triangles."""

POINTS = ("buffer", "coreset")
"""Keys of a state that hold training points."""

_PLAIN = (bool, int, float, str, type(None))


def training_points(state: Any) -> int:
    """The number of training points in the state of a method, or of several in a nest."""
    if isinstance(state, Mapping):
        held = sum(len(state[key][0]) for key in POINTS if state.get(key))
        return held + sum(training_points(v) for key, v in state.items() if key not in POINTS)
    return sum(map(training_points, state)) if isinstance(state, list | tuple) else 0


def without_points(state: Any) -> Any:
    """A copy of a state in which `POINTS` are empty."""
    if isinstance(state, Mapping):
        return {
            key: tuple(column[:0] for column in value)
            if key in POINTS and value
            else without_points(value)
            for key, value in state.items()
        }
    return [*map(without_points, state)] if isinstance(state, list) else state


def size_of(state: Mapping[str, Any]) -> int | None:
    """Bytes of the files of a state; None if it cannot be stored."""
    try:
        return sum(map(len, encode(state, {}).values()))
    except TypeError:
        return None


def encode(state: Mapping[str, Any], card: Mapping[str, Any]) -> dict[str, bytes]:
    """The contents of the two files by name, the card last.

    Equal tensors are stored once, such as the anchor of a penalty and the weights. Of a symmetric
    matrix `[D, D]` the lower triangle is stored, D (D + 1) / 2 numbers, without a change of a bit.

    Args:
        state: a nest of dictionaries, lists and tuples of tensors and plain values.
        card: what else is known of the model, as JSON has it.

    Raises:
        TypeError: the state holds something else.
    """
    from safetensors.torch import save

    tensors: dict[str, Tensor] = {}
    tree = _flattened(state, "", tensors, {})
    data = save(tensors)
    whole = {
        "format": VERSION,
        **card,
        "state": tree,
        "checksum": hashlib.sha256(data).hexdigest(),
    }
    whole["card_checksum"] = _checksum_of(whole)
    return {TENSORS: data, CARD: (json.dumps(whole, indent=1) + "\n").encode()}


def decode(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The card and the state of a folder's model; nothing is unpickled or imported.

    Raises:
        UserError: the folder has no model.
        DataError: a file is damaged, foreign, or of a newer version.
    """
    card = read_card(folder)
    path = folder / TENSORS
    with reading.data_errors(path):
        data = reading.read_bytes(path, reading.LARGE)
    if hashlib.sha256(data).hexdigest() != card.get("checksum"):
        raise DataError("is not the file that its card describes; copy both again", at=path)
    from safetensors.torch import load

    try:
        state = _restored(card.pop("state"), load(data))
    except Exception:  # safetensors has its own error class, and a forged tree fails anywhere
        raise DataError("is no model of this suite; copy it again", at=path) from None
    return card, state


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a folder's model.

    Raises:
        UserError, DataError: see `decode`.
    """
    path = folder / CARD
    if not path.exists():
        raise UserError(
            "holds no model: name the folder of a finished run (seed-...) or of a method, or run "
            "it again without --no-model",
            at=folder,
        )
    with reading.data_errors(path):
        return _checked(reading.read_json(path), path)


@contextmanager
def reading_card(folder: Path) -> Iterator[None]:
    """Turn the errors of what reads a card into one line: a card can be made by hand.

    Raises:
        DataError: the card does not fit the code.
    """
    try:
        yield
    except VclRadialError:
        raise
    except Exception as error:  # any key may be missing, or hold anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:150]
        raise DataError(f"does not fit the code as it is now ({reason})", at=folder) from error


def _checked(card: Any, path: Path) -> dict[str, Any]:
    if not isinstance(card, dict) or not isinstance(version := card.get("format"), int):
        raise DataError("is no card of a model", at=path)
    if version > VERSION:
        raise DataError(
            f"has the format {version}, and this version of vcl-radial reads up to {VERSION}: "
            "upgrade it",
            at=path,
        )
    expected = card.pop("card_checksum", None)
    if expected != _checksum_of(card):
        raise DataError("was altered after it was written; copy it again", at=path)
    return card


def _checksum_of(card: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(card, sort_keys=True).encode()).hexdigest()


def _flattened(value: Any, path: str, tensors: dict[str, Tensor], names: dict[bytes, str]) -> Any:
    """The value with a name in place of each tensor; the tensors go into `tensors`."""
    import torch

    from vcl_radial.methods.carried import tensor_digest

    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, torch.Tensor):
        name, plain = names.setdefault(tensor_digest(value), path), value.detach().cpu()
        is_symmetric = _is_symmetric(plain)
        if name == path:
            tensors[path] = _triangle(plain) if is_symmetric else plain.contiguous().clone()
        return {"symmetric" if is_symmetric else "tensor": name}
    if isinstance(value, Mapping):
        return {
            "dict": [
                [key, _flattened(item, f"{path}.{key}" if path else str(key), tensors, names)]
                for key, item in value.items()
            ]
        }
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        items = enumerate(value)
        return {kind: [_flattened(item, f"{path}.{i}", tensors, names) for i, item in items]}
    raise TypeError(f"{path} is {type(value).__name__}")


def _restored(node: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(node, dict):
        return node
    ((kind, value),) = node.items()
    if kind == "tensor":
        return tensors[value].clone()  # training in place must not reach an equal one
    if kind == "symmetric":
        return _square(tensors[value])
    if kind == "dict":
        return {key: _restored(item, tensors) for key, item in value}
    items = [_restored(item, tensors) for item in value]
    return tuple(items) if kind == "tuple" else items


def _is_symmetric(matrix: Tensor) -> bool:
    """Whether a tensor is a square matrix that its lower triangle determines to the bit."""
    from vcl_radial.methods.carried import tensor_digest

    if matrix.dim() != 2 or len({*matrix.shape}) > 1 or len(matrix) < 2:
        return False
    # Not by `==`, for which 0 and -0 are equal.
    return tensor_digest(matrix) == tensor_digest(matrix.T)


def _triangle(matrix: Tensor) -> Tensor:
    """The lower triangle of `[D, D]`, row by row, `[D (D + 1) / 2]`."""
    import torch

    return torch.cat([row[: number + 1] for number, row in enumerate(matrix)])


def _square(triangle: Tensor) -> Tensor:
    """The symmetric matrix `[D, D]` of a lower triangle.

    Raises:
        RuntimeError: no triangle has so many numbers.
    """
    import torch

    size = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
    rows = torch.split(triangle, [*range(1, size + 1)])
    matrix = triangle.new_empty(size, size)
    for number, row in enumerate(rows):
        matrix[number, : number + 1] = row
        matrix[: number + 1, number] = row
    return matrix
