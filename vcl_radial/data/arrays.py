"""The arrays of an .npz file with inputs `x` and classes or targets `y`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vcl_radial.errors import DataError
from vcl_radial.files.reading import LARGE, data_errors, open_file

FIX = "write it with numpy.savez(FILE, x=..., y=...)"

NUMBERS = "fiub"
"""NumPy's kinds of real numbers."""


def read_arrays(
    path: Path, *, needed: Sequence[str], optional: Sequence[str], y: str
) -> dict[str, NDArray[Any]]:
    """Read arrays by name: those of inputs are `[N, ...]`, and those of `y` `[N]`.

    Args:
        path: the file; nothing is unpickled.
        needed: names that it must have.
        optional: names that it may have.
        y: NumPy's kinds of what is no input: `NUMBERS`, or of classes.

    Raises:
        DataError: the file is missing, damaged or too large, or an array is missing or of another
            kind.
    """
    with (
        data_errors(path, FIX),
        open_file(path) as content,
        np.load(content, allow_pickle=False) as file,
    ):
        if absent := [name for name in needed if name not in file]:
            raise DataError(f"has no array {absent[0]!r}; {FIX}", at=path)
        names = [name for name in (*needed, *optional) if name in file]
        if ("x_test" in names) != ("y_test" in names):
            raise DataError("has one of x_test and y_test; give both or neither", at=path)
        if sum(file.zip.getinfo(f"{name}.npy").file_size for name in names) > LARGE:
            raise DataError(f"holds more than {LARGE >> 20:,} MiB; give it in parts", at=path)
        arrays = {name: file[name] for name in names}
    for name, array in arrays.items():
        kinds, form = (y, "[N]") if name.startswith("y") else (NUMBERS, "[N, ...]")
        shaped = array.ndim == 1 if name.startswith("y") else array.ndim > 1
        if array.dtype.kind not in kinds or not shaped or not array.size:
            what = "real numbers" if kinds == NUMBERS else "whole numbers or texts"
            raise DataError(
                f"{name} must be {what} {form}, not {array.dtype} {[*array.shape]}", at=path
            )
        x = f"x{name[1:]}"
        if len(array) != len(arrays[x]):
            raise DataError(
                f"{x} has {len(arrays[x])} rows and {name} {len(array)}: give one number or class "
                "each",
                at=path,
            )
    return arrays
