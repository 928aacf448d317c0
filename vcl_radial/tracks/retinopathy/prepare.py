"""Read, decode, split and check the photographs of a run before training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vcl_radial.data.backbones import LITE0, PRETRAINING
from vcl_radial.data.decoding import ReportProgress, print_progress
from vcl_radial.data.fundus import (
    FundusData,
    Normalisation,
    Photographs,
    Split,
    SyntheticSettings,
    features,
    load_photographs,
    load_pixels,
    published_split,
    split_by_patient,
)
from vcl_radial.data.fundus.layouts import OTHER
from vcl_radial.errors import DataError, UserError
from vcl_radial.tracks.retinopathy.parts import parts_of
from vcl_radial.tracks.retinopathy.settings import VALIDATION, DataSettings

DRAWN = "synthetic"
"""Name of the data set whose photographs are drawn."""

Scored = tuple[str, FundusData, NDArray[np.int64]]
"""Name, photographs and rows of an evaluated part."""


Site = tuple[str, FundusData, Split]
"""Name, photographs and split of a training site."""


@dataclass(frozen=True)
class Prepared:
    """Photographs of one site that are ready for training.

    Attributes:
        name: name of the site: the name of a data set or of a part of a data set.
        data: photographs for training and testing.
        split: parts of the photographs.
        normalisation: normalisation by the training part of the first site.
        notices: texts to show with all results: licences, and which data are synthetic.
        shifted: further test sets by name.
    """

    name: str
    data: FundusData
    split: Split
    normalisation: Normalisation
    notices: Sequence[str] = ()
    shifted: Mapping[str, FundusData] = field(default_factory=dict)


def with_features(sites: Sequence[Prepared]) -> list[Prepared]:
    """The sites with features of EfficientNet-lite0 in place of pixels; see `fundus.features`.

    Raises:
        UserError: the package with its weights is not installed, or the cache cannot be written.
    """
    first = features.with_features(sites[0].data)
    normalisation = features.FeatureNormalisation.fit(first, sites[0].split.train)
    shifted = {name: features.with_features(data) for name, data in sites[0].shifted.items()}
    notices = [*sites[0].notices, f"features of the photographs: {PRETRAINING[LITE0]}"]
    return [
        replace(
            site,
            data=features.with_features(site.data) if number else first,
            normalisation=normalisation,
            shifted=shifted,
            notices=notices,
        )
        for number, site in enumerate(sites)
    ]


def all_test_sets(sites: Sequence[Prepared]) -> list[Scored]:
    """The test part of every site, then the complete shifted sets of the first site.

    A part has the site's name, or "test" if there is only one.
    """
    whole = [(name, data, np.arange(len(data))) for name, data in sites[0].shifted.items()]
    return [*_parts(sites, "test"), *whole]


def all_validation_sets(sites: Sequence[Prepared]) -> list[Scored]:
    """The validation part of every site, which may be empty.

    It is named "validation", or "<site> validation" if there are several sites.
    """
    return _parts(sites, "validation", f" {VALIDATION}")


def _parts(sites: Sequence[Prepared], part: str, suffix: str = "") -> list[Scored]:
    return [
        (part if len(sites) == 1 else site.name + suffix, site.data, getattr(site.split, part))
        for site in sites
    ]


def check_drawn(settings: DataSettings) -> None:
    """Check that synthetic photographs can be split, before any is drawn.

    Raises:
        UserError: a part would be empty or lack a class.
    """
    for name in (settings.dataset, *settings.then):
        if name == DRAWN:
            photographs = load_photographs(name, synthetic=synthetic_settings(settings))
            whole = [(name, photographs)]
            try:
                sites = parts_of(photographs, settings) if name == settings.dataset else whole
                for site, site_photographs in sites:
                    split_of(site, site_photographs, settings)
            except UserError as error:
                raise UserError(f"data.patients = {settings.patients}: {error}") from None


def load(
    settings: DataSettings, data_dir: Path | None = None, report: ReportProgress = print_progress
) -> dict[str, FundusData]:
    """Read and decode all data sets, by name; the split does not matter.

    Raises:
        UserError: a data folder is missing.
        DataError: files are damaged.
    """
    names = settings.names
    return {name: _load(name, settings, data_dir, report) for name in names}


def cut(settings: DataSettings, loaded: Mapping[str, FundusData]) -> list[Site]:
    """Split the photographs of each site, in the order of training.

    Raises:
        UserError: a part would be empty.
        DataError: a part lacks a class.
    """
    sites = parts_of(loaded[settings.dataset], settings)
    sites += [(name, loaded[name]) for name in settings.then]
    return [(name, data, split_of(name, data.photographs, settings)) for name, data in sites]


def counts(name: str, split: Split, rest: str) -> str:
    """A line on the photographs of a site; `rest` is what its test part is for."""
    return (
        f"{name}: {len(split.train)} photographs to train on, {len(split.validation)} to choose "
        f"epochs on, {len(split.test)} to {rest}"
    )


def prepare(
    settings: DataSettings,
    data_dir: Path | None = None,
    report: ReportProgress = print_progress,
    loaded: Mapping[str, FundusData] | None = None,
) -> list[Prepared]:
    """Prepare the photographs of each site for training.

    Args:
        settings: keys of the data; the default seed of the split is 0.
        data_dir: the data folder.
        report: function that shows a line to the user.
        loaded: result of `load`, if it was called before.

    Raises:
        UserError: a data folder is missing, or a part would be empty.
        DataError: files are damaged, or a part lacks a class.
    """
    loaded = loaded or load(settings, data_dir, report)
    sites = cut(settings, loaded)
    shifted = {name: _apart(name, loaded[name], sites, settings) for name in settings.shifted}
    # The first site alone gives the normalisation: later sites are unknown when it is trained on.
    _, first, split_of_first = sites[0]
    normalisation = Normalisation.fit(first, split_of_first.train)
    notices = [data.photographs.notice for data in loaded.values() if data.photographs.notice]
    notices += [line for name, data, _ in sites if (line := shared_patients(name, data, settings))]
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
    """A shifted set without patients of the training data, if both come from one data set."""
    whole = name.removesuffix(OTHER)
    trained = [
        site_data.photographs.patients[np.concatenate([split.train, split.validation])]
        for site, site_data, split in sites
        # A part of the dataset has another name than the dataset.
        if site == whole or (whole == settings.dataset and site not in settings.then)
    ]
    if name == whole or not trained:
        return data
    return data.select(~np.isin(data.photographs.patients, np.concatenate(trained)))


def split_of(name: str, photographs: Photographs, settings: DataSettings) -> Split:
    """The parts of a site's photographs.

    Raises:
        UserError: a part would be empty.
        DataError: a part lacks a class.
    """
    if settings.split == "published":
        split = published_split(
            photographs, validation=settings.validation, seed=settings.split_seed or 0
        )
    else:
        split = split_by_patient(
            photographs,
            train=settings.train,
            validation=settings.validation,
            test=settings.test,
            seed=settings.split_seed or 0,
        )
    for part in ("train", "validation", "test"):
        rows = getattr(split, part)
        needed = part != "validation" or settings.validation > 0
        if needed and len(np.unique(photographs.referable[rows])) < 2:
            raise DataError(
                f"{name}: the {part} part of {len(rows)} photographs does not hold "
                "both healthy and referable ones; use more photographs or another share"
            )
    return split


def synthetic_settings(settings: DataSettings) -> SyntheticSettings:
    """The settings of the drawn photographs."""
    return SyntheticSettings(patients=settings.patients, artefacts=settings.artefacts)


def shared_patients(name: str, data: FundusData, settings: DataSettings) -> str | None:
    """A notice that a patient may be in two parts, if patients are unknown."""
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
    name: str, settings: DataSettings, data_dir: Path | None, report: ReportProgress
) -> FundusData:
    photographs = load_photographs(
        name,
        data_dir,
        on_fault=settings.on_fault,
        report=report,
        synthetic=synthetic_settings(settings),
    )
    return load_pixels(
        photographs,
        settings.size,
        crop=settings.crop,
        normalise=settings.normalise,
        on_fault=settings.on_fault,
        report=report,
    )
