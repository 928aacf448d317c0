"""Rows of features in the place of a data set's images."""

from __future__ import annotations

import dataclasses
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.data_files import check_feature_file
from vcl_radial.errors import DataError


def with_features(data: ImageData, path: Path) -> ImageData:
    """A data set with features of its images in their place; classes stay.

    Args:
        data: the images.
        path: of an .npz file with the arrays `train` `[N, D]` and `test` `[M, D]`, a row for each
            image in the order of the data set's files.

    Raises:
        DataError: there is no such file, or its arrays do not fit the images.
    """
    check_feature_file(path)
    parts: dict[str, Any] = {}
    for name, images in (("train", data.train_x), ("test", data.test_x)):
        try:
            with np.load(path, allow_pickle=False) as file:
                rows = np.asarray(file[name], dtype=np.float32)
        except (OSError, ValueError, TypeError, zipfile.BadZipFile) as error:
            raise DataError(f"{path}: {name} cannot be read ({error}); write it again") from None
        if rows.ndim != 2 or len(rows) != len(images):
            raise DataError(
                f"{path}: {name} must be [{len(images)}, D], a row for each image of {data.name}, "
                f"and is {[*rows.shape]}"
            )
        if not np.isfinite(rows).all():
            raise DataError(f"{path}: {name} has numbers that are not finite; write it again")
        parts[f"{name}_x"] = torch.from_numpy(rows)
    return dataclasses.replace(data, name=f"{data.name} by {path.name}", **parts)
