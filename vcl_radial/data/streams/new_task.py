"""The data of one more task for a kept model: an .npz file, or a folder of images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vcl_radial.data.arrays import read_arrays
from vcl_radial.data.data_files import TEST_SHARE
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.data.streams.image_folder import load_image_folder
from vcl_radial.errors import DataError


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
    arrays = read_arrays(path, needed=("x", "y"), optional=("x_test", "y_test"), y="iuU")
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
