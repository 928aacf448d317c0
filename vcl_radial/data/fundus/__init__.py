"""Fundus photographs: tables, splits by patient, pixels in a cache, batches, drawn pictures."""

from typing import TYPE_CHECKING

from vcl_radial.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from vcl_radial.data.fundus.augment import Augmentation, Changes, changed
    from vcl_radial.data.fundus.batches import (
        Batch,
        Normalisation,
        TrainingBatches,
        evaluation_batches,
    )
    from vcl_radial.data.fundus.data import FundusData, load_pixels
    from vcl_radial.data.fundus.datasets import load_photographs
    from vcl_radial.data.fundus.faults import Fault, OnFault
    from vcl_radial.data.fundus.layouts import FUNDUS_DATASETS, LAYOUTS, Layout
    from vcl_radial.data.fundus.readers import read_folder
    from vcl_radial.data.fundus.splits import Split, published_split, split_by_patient
    from vcl_radial.data.fundus.synthetic import SyntheticSettings, synthetic_photographs
    from vcl_radial.data.fundus.table import REFERABLE_FROM, Photograph, Photographs

__all__ = [
    "FUNDUS_DATASETS",
    "LAYOUTS",
    "REFERABLE_FROM",
    "Augmentation",
    "Batch",
    "Changes",
    "Fault",
    "FundusData",
    "Layout",
    "Normalisation",
    "OnFault",
    "Photograph",
    "Photographs",
    "Split",
    "SyntheticSettings",
    "TrainingBatches",
    "changed",
    "evaluation_batches",
    "load_photographs",
    "load_pixels",
    "published_split",
    "read_folder",
    "split_by_patient",
    "synthetic_photographs",
]

# Imported when first used: the names of data sets are read without PyTorch.
_MODULES = {
    "Augmentation": "augment",
    "Changes": "augment",
    "changed": "augment",
    "Batch": "batches",
    "Normalisation": "batches",
    "TrainingBatches": "batches",
    "evaluation_batches": "batches",
    "FundusData": "data",
    "load_pixels": "data",
    "load_photographs": "datasets",
    "Fault": "faults",
    "OnFault": "faults",
    "FUNDUS_DATASETS": "layouts",
    "LAYOUTS": "layouts",
    "Layout": "layouts",
    "read_folder": "readers",
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
