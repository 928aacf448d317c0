"""A data set cut into parts for training one after another."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from vcl_radial.data.fundus import FundusData, Photographs
from vcl_radial.errors import DataError
from vcl_radial.tracks.retinopathy.settings import DataSettings

Table = TypeVar("Table", FundusData, Photographs)


def parts_of(data: Table, settings: DataSettings) -> list[tuple[str, Table]]:
    """The dataset with its name, or its parts with their names; with pixels or without.

    Raises:
        DataError: there is only one site, or a patient is at two sites.
    """
    photographs = data if isinstance(data, Photographs) else data.photographs
    if settings.parts == "whole":
        return [(settings.dataset, data)]
    names = np.array([row.site for row in photographs.rows])
    sites = sorted(set(names.tolist()))
    if len(sites) < 2:
        raise DataError(
            f'{settings.dataset}: all photographs are of one site; parts = "site" needs several'
        )
    patients = len(np.unique(photographs.patients))
    if sum(len(np.unique(photographs.patients[names == name])) for name in sites) > patients:
        raise DataError(f"{settings.dataset}: a patient is at two sites, so it cannot be cut there")
    return [(name, data.select(names == name)) for name in sites]
