"""A data set cut into parts that are trained on one after another."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vcl_radial.data.fundus import FundusData
from vcl_radial.errors import DataError
from vcl_radial.tracks.retinopathy.settings import DataSettings

_CHUNK: Final = 256


def parts_of(data: FundusData, settings: DataSettings) -> list[tuple[str, FundusData]]:
    """The dataset under its name, or its parts by theirs.

    Raises:
        DataError: there is but one site, or a patient is at two of them.
    """
    photographs = data.photographs
    if settings.parts == "whole":
        return [(settings.dataset, data)]
    if settings.parts == "sharpness":
        sharp = sharper_half(data)
        return [("sharper", data.select(sharp)), ("duller", data.select(~sharp))]
    names = np.array([row.site for row in photographs.rows])
    found = sorted(set(names.tolist()))
    if len(found) < 2:
        raise DataError(
            f'{settings.dataset}: all photographs are of one site; parts = "site" needs several'
        )
    patients = len(np.unique(photographs.patients))
    if sum(len(np.unique(photographs.patients[names == name])) for name in found) > patients:
        raise DataError(f"{settings.dataset}: a patient is at two sites, so it cannot be cut there")
    return [(name, data.select(names == name)) for name in found]


def sharper_half(data: FundusData) -> NDArray[np.bool_]:
    """Which photographs are of the patients whose photographs are the sharper ones, `[N]`.

    A patient's sharpness is the mean over the photographs; half of the patients are the sharper
    ones, so that nobody is in both halves.
    """
    chunks = [
        np.arange(start, min(start + _CHUNK, len(data))) for start in range(0, len(data), _CHUNK)
    ]
    of_image = np.concatenate([sharpness(data.images(rows)).cpu().numpy() for rows in chunks])
    patients, of_row = np.unique(data.photographs.patients, return_inverse=True)
    mean = np.bincount(of_row, of_image) / np.bincount(of_row)
    # By rank, lest equal values make one half empty.
    rank = np.argsort(np.argsort(-mean, kind="stable"), kind="stable")
    half: NDArray[np.bool_] = (rank < (len(patients) + 1) // 2)[of_row]
    return half


def sharpness(images: Tensor) -> Tensor:
    """Mean absolute Laplacian of the grey values of images `[B, 3, H, W]`, double precision."""
    grey = images.double().mean(1)
    around = grey[:, :-2, 1:-1] + grey[:, 2:, 1:-1] + grey[:, 1:-1, :-2] + grey[:, 1:-1, 2:]
    return (around - 4 * grey[:, 1:-1, 1:-1]).abs().mean((1, 2))
