"""Further rows of a table that a kept model knows: an .npz file, or a CSV file of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vcl_radial.data.tables import load_rows
from vcl_radial.errors import DataError
from vcl_radial.files.reading import data_errors, open_file

_FIX = "write it with numpy.savez(FILE, x=..., y=...)"


def load_further_rows(path: Path, card: Mapping[str, Any]) -> tuple[Tensor, Tensor | None]:
    """Read raw inputs `[N, d]` and, if they are there, targets `[N]`, float64.

    Args:
        path: an .npz file with `x` and perhaps `y`; or a CSV file, if the model was trained on one.
        card: the card of the model.

    Raises:
        DataError: the file is missing, damaged or of another kind, or does not fit the model.
    """
    if path.suffix == ".npz":
        return _arrays(path, card["input"]["shape"][0])
    if not card["columns"]:
        raise DataError(
            "is no .npz file, and the model knows no names of columns: " + _FIX, at=path
        )
    return load_rows(path, card["columns"], card["target"])


def _arrays(path: Path, width: int) -> tuple[Tensor, Tensor | None]:
    with (
        data_errors(path, _FIX),
        open_file(path) as content,
        np.load(content, allow_pickle=False) as file,
    ):
        if "x" not in file:
            raise DataError(f"has no array 'x'; {_FIX}", at=path)
        arrays = {name: file[name] for name in ("x", "y") if name in file}
    rows = arrays["x"].shape[0] if arrays["x"].ndim else 0
    for name, shape in (("x", [rows, width]), ("y", [rows])):
        array = arrays.get(name)
        if array is None:
            continue
        if array.dtype.kind not in "fiub" or [*array.shape] != shape or not array.size:
            shown = f"[{rows or 'N'}, {width}]" if name == "x" else f"[{rows}]"
            raise DataError(
                f"{name} must be real numbers {shown}, not {array.dtype} {[*array.shape]}", at=path
            )
        if not np.isfinite(array).all():
            raise DataError(f"{name} has numbers that are not finite", at=path)
    tensors = {name: torch.from_numpy(a.astype(np.float64)) for name, a in arrays.items()}
    return tensors["x"], tensors.get("y")
