"""The photographs of a run: read, decoded, split and checked before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vcl_radial.data.fundus import (
    FundusData,
    Normalisation,
    Photographs,
    Split,
    SyntheticSettings,
    load_photographs,
    load_pixels,
    published_split,
    split_by_patient,
)
from vcl_radial.data.fundus.faults import ReportProgress, tell_user
from vcl_radial.data.fundus.layouts import OTHER
from vcl_radial.errors import DataError, UserError
from vcl_radial.tracks.retinopathy.parts import parts_of
from vcl_radial.tracks.retinopathy.settings import VALIDATION, DataSettings

DRAWN = "synthetic"
"""The data set whose photographs are drawn."""

Scored = tuple[str, FundusData, NDArray[np.int64]]
"""Name, photographs and rows of something that is scored on."""


Site = tuple[str, FundusData, Split]
"""Name, photographs and split of something that is trained on."""


@dataclass(frozen=True)
class Prepared:
    """Photographs of one site that are ready for training.

    Attributes:
        name: of the site: the data set's, or that of a part of it.
        data: those that are trained on and tested on.
        split: their parts.
        normalisation: by the training part, of the first site where there are several.
        notices: what has to be said wherever results are shown: licences, and what is synthetic.
        shifted: further test sets by name.
    """

    name: str
    data: FundusData
    split: Split
    normalisation: Normalisation
    notices: Sequence[str] = ()
    shifted: Mapping[str, FundusData] = field(default_factory=dict)


def all_test_sets(sites: Sequence[Prepared]) -> list[Scored]:
    """The test part of every site, then the first site's shifted sets, whole.

    A part has the site's name, or "test" where there is but one.
    """
    whole = [(name, data, np.arange(len(data))) for name, data in sites[0].shifted.items()]
    return [*_parts(sites, "test"), *whole]


def all_validation_sets(sites: Sequence[Prepared]) -> list[Scored]:
    """The validation part of every site, which may be empty.

    It is named "validation", and "<site> validation" where there are several sites.
    """
    return _parts(sites, "validation", f" {VALIDATION}")


def _parts(sites: Sequence[Prepared], part: str, behind: str = "") -> list[Scored]:
    return [
        (part if len(sites) == 1 else site.name + behind, site.data, getattr(site.split, part))
        for site in sites
    ]


def check_drawn(settings: DataSettings) -> None:
    """See that photographs that are drawn can be split, before any of them is.

    Raises:
        UserError: a part would be empty or lack a class.
    """
    for name in (settings.dataset, *settings.then):
        if name == DRAWN:
            photographs = load_photographs(name, synthetic=_synthetic(settings))
            whole = [(name, photographs)]
            try:
                sites = parts_of(photographs, settings) if name == settings.dataset else whole
                for site, of_site in sites:
                    _split(site, of_site, settings)
            except UserError as error:
                raise UserError(f"data.patients = {settings.patients}: {error}") from None


def load(
    settings: DataSettings, data_dir: Path | None = None, tell: ReportProgress = tell_user
) -> dict[str, FundusData]:
    """Read and decode all data sets by name, whatever the split.

    Raises:
        UserError: a data folder is missing.
        DataError: files are not what they should be.
    """
    names = settings.names
    return {name: _load(name, settings, data_dir, tell) for name in names}


def cut(settings: DataSettings, loaded: Mapping[str, FundusData]) -> list[Site]:
    """Split the photographs of each site, in the order of training.

    Raises:
        UserError: a part would be empty.
        DataError: a part lacks a class.
    """
    sites = parts_of(loaded[settings.dataset], settings)
    sites += [(name, loaded[name]) for name in settings.then]
    return [(name, data, _split(name, data.photographs, settings)) for name, data in sites]


def prepare(
    settings: DataSettings,
    data_dir: Path | None = None,
    tell: ReportProgress = tell_user,
    loaded: Mapping[str, FundusData] | None = None,
) -> list[Prepared]:
    """The photographs of each site, ready for training.

    Args:
        settings: of the data; without a seed of the split it is 0.
        data_dir: the data folder.
        tell: takes a line for the user.
        loaded: what `load` gave, if it was called before.

    Raises:
        UserError: a data folder is missing, or a part would be empty.
        DataError: files are not what they should be, or a part lacks a class.
    """
    loaded = loaded or load(settings, data_dir, tell)
    sites = cut(settings, loaded)
    shifted = {name: _apart(name, loaded[name], sites, settings) for name in settings.shifted}
    # Nothing is known of later sites when the first is trained on.
    _, first, split_of_first = sites[0]
    normalisation = Normalisation.of(first, split_of_first.train)
    notices = [data.photographs.notice for data in loaded.values() if data.photographs.notice]
    notices += [line for name, data, _ in sites if (line := _shared_patients(name, data, settings))]
    return [
        Prepared(
            name=name,
            data=data,
            split=split,
            normalisation=normalisation,
            notices=notices,
            shifted=shifted,
        )
        for name, data, split in sites
    ]


def _apart(
    name: str, data: FundusData, sites: Sequence[Site], settings: DataSettings
) -> FundusData:
    """A shifted set, without patients who are trained on where it is a part of the same data."""
    whole = name.removesuffix(OTHER)
    trained = [
        of_site.photographs.patients[np.concatenate([split.train, split.validation])]
        for site, of_site, split in sites
        # A part of the dataset has a name of its own.
        if site == whole or (whole == settings.dataset and site not in settings.then)
    ]
    if name == whole or not trained:
        return data
    return data.select(~np.isin(data.photographs.patients, np.concatenate(trained)))


def _split(name: str, photographs: Photographs, settings: DataSettings) -> Split:
    if settings.split == "published":
        split = published_split(
            photographs, validation=settings.validation, seed=settings.split_seed or 0
        )
    else:
        split = split_by_patient(
            photographs,
            validation=settings.validation,
            test=settings.test,
            seed=settings.split_seed or 0,
        )
    for part in ("train", "validation", "test"):
        rows = getattr(split, part)
        wanted = part != "validation" or settings.validation > 0
        if wanted and len(np.unique(photographs.referable[rows])) < 2:
            raise DataError(
                f"{name}: the {part} part of {len(rows)} photographs does not hold "
                "both healthy and referable ones; use more photographs or another share"
            )
    return split


def _synthetic(settings: DataSettings) -> SyntheticSettings:
    return SyntheticSettings(patients=settings.patients, artefacts=settings.artefacts)


def _shared_patients(name: str, data: FundusData, settings: DataSettings) -> str | None:
    """What is to be said where a patient may be in two parts and nobody can know."""
    photographs = data.photographs
    if photographs.patients_known:
        return None
    unknown = f"{name}: nothing says who is on a photograph"
    if settings.split == "random":
        return f"{unknown}; it is split between photographs, so that a patient may be in two parts"
    if settings.validation and all(row.part != "validation" for row in photographs.rows):
        return (
            f"{unknown}; photographs to choose epochs on are cut from those to train on, so that a "
            "patient may be in both"
        )
    return None


def _load(
    name: str, settings: DataSettings, data_dir: Path | None, tell: ReportProgress
) -> FundusData:
    photographs = load_photographs(
        name,
        data_dir,
        on_fault=settings.on_fault,
        tell=tell,
        synthetic=_synthetic(settings),
    )
    return load_pixels(
        photographs,
        settings.size,
        crop=settings.crop,
        normalise=settings.normalise,
        on_fault=settings.on_fault,
        tell=tell,
    )
