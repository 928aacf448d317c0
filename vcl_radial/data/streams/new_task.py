"""The data of one more task for a kept model: an .npz file, or a folder of images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vcl_radial.data.data_files import TEST_SHARE
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.data.streams.image_folder import load_image_folder
from vcl_radial.errors import DataError
from vcl_radial.files.reading import LARGE, data_errors, open_file

_FIX = "write it with numpy.savez(FILE, x=..., y=...)"


def load_new_task(path: Path, image_size: int | None = None) -> ImageData:
    """Read the raw inputs and the classes of a task.

    A folder is read as by `load_image_folder`. An .npz file has the arrays `x` `[N, ...]` and `y`
    `[N]`, whole numbers or texts that name the classes, and may have the test part `x_test` and
    `y_test`. Without one, a share of each class is the test part, as in a folder of images.

    Args:
        path: the file or the folder.
        image_size: see `load_image_folder`.

    Raises:
        UserError: the cache of images cannot be written.
        DataError: the data are missing, damaged or of another kind.
    """
    if path.is_dir():
        return load_image_folder(path, image_size=image_size)
    if path.suffix != ".npz":
        raise DataError("is neither a folder of images nor an .npz file", at=path)
    arrays = _arrays(path)
    x, y = arrays["x"], arrays["y"]
    if "x_test" in arrays:
        test_x, test_y = arrays["x_test"], arrays["y_test"]
    else:
        test = _test_rows(y, path)
        x, y, test_x, test_y = x[~test], y[~test], x[test], y[test]
    names, labels = np.unique(y, return_inverse=True)
    if unknown := sorted({*test_y.tolist()} - {*names.tolist()}):
        raise DataError(f"y_test has the class {unknown[0]!r}, which y lacks", at=path)
    parts = _pixels(x), labels, _pixels(test_x), np.searchsorted(names, test_y)
    a, b, c, d = map(torch.from_numpy, parts)
    try:
        return ImageData(path.stem, a, b, c, d, class_names=tuple(map(str, names)))
    except DataError as error:
        raise DataError(str(error).removeprefix(f"{path.stem}: "), at=path) from None


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of the file by name; nothing is unpickled."""
    with (
        data_errors(path, _FIX),
        open_file(path) as content,
        np.load(content, allow_pickle=False) as file,
    ):
        for name in ("x", "y"):
            if name not in file:
                raise DataError(f"has no array {name!r}; {_FIX}", at=path)
        if ("x_test" in file) != ("y_test" in file):
            raise DataError("has one of x_test and y_test; give both or neither", at=path)
        names = [name for name in ("x", "y", "x_test", "y_test") if name in file]
        if sum(file.zip.getinfo(f"{name}.npy").file_size for name in names) > LARGE:
            raise DataError(f"holds more than {LARGE >> 20:,} MiB; give it in parts", at=path)
        arrays = {name: file[name] for name in names}
    for name, array in arrays.items():
        kinds, form = ("iuU", "[N]") if name.startswith("y") else ("fiub", "[N, ...]")
        shaped = array.ndim == 1 if name.startswith("y") else array.ndim > 1
        if array.dtype.kind not in kinds or not shaped or not len(array):
            what = "whole numbers or texts" if name.startswith("y") else "real numbers"
            raise DataError(
                f"{name} must be {what} {form}, not {array.dtype} {[*array.shape]}", at=path
            )
    for part in ("", "_test"):
        if f"x{part}" in arrays and len(arrays[f"x{part}"]) != len(arrays[f"y{part}"]):
            counts = len(arrays[f"x{part}"]), len(arrays[f"y{part}"])
            raise DataError(
                f"x{part} has {counts[0]} rows and y{part} {counts[1]}: give one class each",
                at=path,
            )
    return arrays


def _pixels(x: NDArray[Any]) -> NDArray[Any]:
    """The inputs as bytes or float32; a number that is too large becomes infinite."""
    with np.errstate(over="ignore"):
        return x if x.dtype == np.uint8 else x.astype(np.float32)


def _test_rows(y: NDArray[Any], path: Path) -> NDArray[np.bool_]:
    """A mask `[N]` of the test part's share of each class, at least one row of it."""
    test, generator = np.zeros(len(y), bool), np.random.RandomState(0)
    for name in np.unique(y):
        rows = np.flatnonzero(y == name)
        if len(rows) < 2:
            raise DataError(
                f"class {str(name)!r} has one row: a class needs two at least, or give x_test and "
                "y_test",
                at=path,
            )
        count = min(max(1, round(TEST_SHARE * len(rows))), len(rows) - 1)
        test[generator.permutation(rows)[:count]] = True
    return test
