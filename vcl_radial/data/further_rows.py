"""Further rows of a table that a kept model knows: an .npz file, or a CSV file of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vcl_radial.data.arrays import FIX, NUMBERS, read_arrays
from vcl_radial.data.tables import load_rows
from vcl_radial.errors import DataError


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
        raise DataError("is no .npz file, and the model knows no names of columns: " + FIX, at=path)
    return load_rows(path, card["columns"], card["target"])


def _arrays(path: Path, width: int) -> tuple[Tensor, Tensor | None]:
    arrays = read_arrays(path, needed=("x",), optional=("y",), y=NUMBERS)
    if (shape := arrays["x"].shape)[1:] != (width,):
        raise DataError(f"x has shape {[*shape]}, and the model takes [N, {width}]", at=path)
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise DataError(f"{name} has numbers that are not finite", at=path)
    tensors = {name: torch.from_numpy(a.astype(np.float64)) for name, a in arrays.items()}
    return tensors["x"], tensors.get("y")
