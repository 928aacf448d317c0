"""The photographs of a run: read, decoded, split and checked before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vcl_radial.errors import DataError
from vcl_radial.fundus import (
    FundusData,
    Normalisation,
    Split,
    SyntheticSettings,
    load_photographs,
    load_pixels,
    published_split,
    split_by_patient,
)
from vcl_radial.fundus.faults import Tell, tell_user
from vcl_radial.referral.settings import DataSettings


@dataclass(frozen=True)
class Prepared:
    """Photographs that are ready for training.

    Attributes:
        data: those that are trained on and tested on.
        split: their parts.
        normalisation: by the training part.
        shifted: further test sets by name.
    """

    data: FundusData
    split: Split
    normalisation: Normalisation
    shifted: Mapping[str, FundusData]

    def test_sets(self) -> list[tuple[str, FundusData, NDArray[np.int64]]]:
        """Name, photographs and rows of everything that is scored on; the test part first."""
        whole = [(name, data, np.arange(len(data))) for name, data in self.shifted.items()]
        return [("test", self.data, self.split.test), *whole]

    @property
    def notices(self) -> list[str]:
        """What has to be said wherever results are shown: licences, and what is synthetic."""
        tables = [self.data.photographs, *(data.photographs for data in self.shifted.values())]
        return [table.notice for table in tables if table.notice]


def prepare(
    settings: DataSettings, data_dir: Path | None = None, tell: Tell = tell_user
) -> Prepared:
    """Read, decode and split the photographs.

    Raises:
        UserError: a data folder is missing, or a part would be empty.
        DataError: files are not what they should be, or a part lacks a class.
    """
    data = _load(settings.dataset, settings, data_dir, tell)
    if settings.split == "published":
        split = published_split(
            data.photographs, validation=settings.validation, seed=settings.split_seed
        )
    else:
        split = split_by_patient(
            data.photographs,
            validation=settings.validation,
            test=settings.test,
            seed=settings.split_seed,
        )
    for name in ("train", "validation", "test"):
        rows = getattr(split, name)
        wanted = name != "validation" or settings.validation > 0
        if wanted and len(np.unique(data.photographs.referable[rows])) < 2:
            raise DataError(
                f"{settings.dataset}: the {name} part of {len(rows)} photographs does not hold "
                "both healthy and referable ones; use more photographs or another share"
            )
    return Prepared(
        data=data,
        split=split,
        normalisation=Normalisation.of(data, split.train),
        shifted={name: _load(name, settings, data_dir, tell) for name in settings.shifted},
    )


def _load(name: str, settings: DataSettings, data_dir: Path | None, tell: Tell) -> FundusData:
    photographs = load_photographs(
        name,
        data_dir,
        on_fault=settings.on_fault,
        tell=tell,
        synthetic=SyntheticSettings(patients=settings.patients, artefacts=settings.artefacts),
    )
    return load_pixels(
        photographs, settings.size, crop=settings.crop, on_fault=settings.on_fault, tell=tell
    )
