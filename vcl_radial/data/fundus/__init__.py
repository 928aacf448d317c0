"""Fundus photographs: tables, splits by patient, pixels in a cache, batches, drawn pictures."""

from typing import TYPE_CHECKING

from vcl_radial.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from vcl_radial.data.fundus.augment import Augmentation
    from vcl_radial.data.fundus.batches import (
        Normalisation,
        TrainingBatches,
        evaluation_batches,
    )
    from vcl_radial.data.fundus.data import FundusData, load_pixels
    from vcl_radial.data.fundus.datasets import load_folder, load_photographs
    from vcl_radial.data.fundus.layouts import FUNDUS_DATASETS
    from vcl_radial.data.fundus.splits import Split, published_split, split_by_patient
    from vcl_radial.data.fundus.synthetic import SyntheticSettings, synthetic_photographs
    from vcl_radial.data.fundus.table import REFERABLE_FROM, Photograph, Photographs

__all__ = [
    "FUNDUS_DATASETS",
    "REFERABLE_FROM",
    "Augmentation",
    "FundusData",
    "Normalisation",
    "Photograph",
    "Photographs",
    "Split",
    "SyntheticSettings",
    "TrainingBatches",
    "evaluation_batches",
    "load_folder",
    "load_photographs",
    "load_pixels",
    "published_split",
    "split_by_patient",
    "synthetic_photographs",
]

# Imported when first used: the names of data sets are read without PyTorch.
_MODULES = {
    "Augmentation": "augment",
    "Normalisation": "batches",
    "TrainingBatches": "batches",
    "evaluation_batches": "batches",
    "FundusData": "data",
    "load_pixels": "data",
    "load_folder": "datasets",
    "load_photographs": "datasets",
    "FUNDUS_DATASETS": "layouts",
    "Split": "splits",
    "published_split": "splits",
    "split_by_patient": "splits",
    "SyntheticSettings": "synthetic",
    "synthetic_photographs": "synthetic",
    "REFERABLE_FROM": "table",
    "Photograph": "table",
    "Photographs": "table",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
