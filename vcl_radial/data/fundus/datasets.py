"""The data sets of fundus photographs by name."""

from __future__ import annotations

from pathlib import Path

from vcl_radial.data.data_files import DATA_VARIABLE, user_root
from vcl_radial.data.decoding import ReportProgress, print_progress
from vcl_radial.data.fundus.faults import OnFault
from vcl_radial.data.fundus.layouts import FUNDUS_DATASETS, LAYOUTS, OTHER, located
from vcl_radial.data.fundus.readers import read_folder
from vcl_radial.data.fundus.synthetic import SyntheticSettings, synthetic_photographs
from vcl_radial.data.fundus.table import Photographs
from vcl_radial.errors import DataError, bad_value


def load_photographs(
    name: str,
    data_dir: Path | None = None,
    *,
    on_fault: OnFault = "stop",
    report: ReportProgress = print_progress,
    synthetic: SyntheticSettings | None = None,
) -> Photographs:
    """Load the table of a data set; no picture is decoded yet.

    | name           | files in the data folder                                                   |
    | -------------- | -------------------------------------------------------------------------- |
    | synthetic      | nothing: pictures are drawn                                                |
    | aptos          | `retinopathy/APTOS` with `labels.csv` and `images/`, or with `train.csv`   |
    |                | and `train_images/` as published                                           |
    | odir           | `retinopathy/ODIR` with `labels.csv` and `images/`: the graded photographs |
    | odir-other     | the same: those of level -1, which show other diseases                     |
    | idrid          | `retinopathy/IDRiD` with `labels.csv` and `images/`, or with               |
    |                | `B. Disease Grading` as published                                          |
    | eyepacs-subset | `retinopathy/EyePACS-subset` with `labels.csv` and `images/`               |
    | kaggle-eyepacs | `retinopathy/EyePACS` with `trainLabels.csv` and `train/`                  |
    | kaggle-        | the same and `retinopathy_solution.csv` with `test/`                       |
    | eyepacs-all    |                                                                            |
    | folder         | `labels.csv` and `images/`: see `read_folder`                              |
    | folder-other   | the same: those of level -1                                                |

    `retinopathy/` may be left out, and so may the folder in it where there is but one data set.

    Args:
        name: one of `FUNDUS_DATASETS`.
        data_dir: the data folder; by default that of the environment variable `VCL_RADIAL_DATA`.
        on_fault: "stop" at photographs that cannot be used, or "skip" them; either way they are
            counted and named in one line.
        report: takes a line for the user.
        synthetic: settings of the generator.

    Raises:
        UserError: the name is unknown, or no data folder was named.
        DataError: files are missing or malformed.
    """
    if name == "synthetic":
        return synthetic_photographs(synthetic)
    if name not in FUNDUS_DATASETS:
        raise bad_value("dataset", name, f"is not known: choose from {', '.join(FUNDUS_DATASETS)}")
    if on_fault not in ("stop", "skip"):
        raise bad_value("on_fault", on_fault, 'is not known: choose "stop" or "skip"')
    root = user_root(data_dir)
    if root is None:
        raise bad_value(
            "dataset",
            name,
            f'needs a data folder: name it, or set {DATA_VARIABLE}; "synthetic" needs none',
        )
    whole = name.removesuffix(OTHER)
    folder, layouts = located(whole, root)
    if data_dir is None and not (table := folder / layouts[0].table).exists():
        raise DataError(
            f"there is no such file, and {root} is the folder of {DATA_VARIABLE}; name "
            "that of your photographs with --data-dir",
            at=table,
        )
    photographs = read_folder(folder, on_fault, report, layouts, other_diseases=name != whole)
    if name == "folder" and not photographs.patients_known:
        report(
            f"{root}: nothing says who is on a photograph, so each counts as a patient of its own; "
            "add a column patient to labels.csv, or name all images <patient>_<left|right>"
        )
    return photographs


def load_folder(
    folder: Path, *, on_fault: OnFault = "stop", report: ReportProgress = print_progress
) -> Photographs:
    """Load the table of a folder of photographs: a user's own, or that of a data set.

    Args:
        folder: a folder with `labels.csv` and `images/`, see `read_folder`; or one that has the
            name and the files of a data set of `load_photographs`.
        on_fault: see `load_photographs`.
        report: takes a line for the user.

    Raises:
        DataError: files are missing or malformed.
    """
    for layouts in (layouts for possible in LAYOUTS.values() for layouts in possible):
        names = {Path(name).name for name in layouts[0].folders}
        if folder.resolve().name in names and (folder / layouts[0].table).exists():
            return read_folder(folder, on_fault, report, layouts)
    return read_folder(folder, on_fault, report)
