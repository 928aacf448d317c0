"""Rows of features instead of a data set's images."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vcl_radial.data.named_files import check_feature_file
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.errors import DataError
from vcl_radial.files.reading import data_errors, open_file


def with_features(data: ImageData, path: Path) -> ImageData:
    """A data set with features instead of its images, and the same classes.

    Args:
        data: the images.
        path: path of an .npz file with the arrays `train` `[N, D]` and `test` `[M, D]`, a row for
            each image in the order of the data set's files.

    Raises:
        DataError: there is no such file, or its arrays do not match the images.
    """
    check_feature_file(path, (len(data.train_x), len(data.test_x)))
    parts: dict[str, Any] = {}
    for name in ("train", "test"):
        # Numbers too large for float32 become infinite, which the check below reports.
        with (
            data_errors(path, f"write {name} again"),
            open_file(path) as content,
            np.load(content, allow_pickle=False) as file,
            np.errstate(over="ignore"),
        ):
            rows = np.asarray(file[f"{name}.npy"], dtype=np.float32)
        if not np.isfinite(rows).all():
            raise DataError(f"{name} has numbers that are not finite; write it again", at=path)
        parts[f"{name}_x"] = torch.from_numpy(rows)
    return dataclasses.replace(data, name=f"{data.name} by {path.name}", **parts)
