"""Regression tables with their train/test splits, from the files of `files`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcl_radial.data.tables import RegressionData, Split, load_table, random_splits
from vcl_radial.errors import DataError
from vcl_radial.files.reading import open_text
from vcl_radial.tracks.regression.files import DIABETES, PUBLISHED_SPLITS, set_folder
from vcl_radial.tracks.regression.settings import DataSettings

__all__ = ["RegressionData", "Split", "Standardiser", "load_data"]


def load_data(data: DataSettings, data_dir: Path | None = None) -> RegressionData:
    """Load the table of a run.

    Raises:
        UserError: no data folder is named.
        DataError: a file is missing, damaged or does not fit the other files.
    """
    if data.table is not None:
        return load_table(Path(data.table), data.target or "", data.splits or 1)
    assert data.set is not None
    if data.set == DIABETES:
        return _load_diabetes()
    return _load_folder(data.set, set_folder(data.set, data_dir))


def _load_folder(name: str, folder: Path) -> RegressionData:
    table = _numbers(folder / "data.txt")
    if table.ndim != 2 or not np.isfinite(table).all():
        raise DataError(f"{folder / 'data.txt'}: must be a table of finite numbers; copy it again")
    features = _indices(folder / "index_features.txt", table.shape[1], "columns")
    target = _indices(folder / "index_target.txt", table.shape[1], "columns")
    if len(target) != 1 or target[0] in features:
        raise DataError(f"{folder / 'index_target.txt'}: must name one column that is no feature")
    splits: list[Split] = []
    while (path := folder / f"index_train_{len(splits)}.txt").exists():
        train = _indices(path, len(table), "rows")
        test = _indices(folder / f"index_test_{len(splits)}.txt", len(table), "rows")
        if common := set(train) & set(test):
            raise DataError(
                f"{path}: row {min(common)} is a test row of this split too; copy the files again"
            )
        splits.append(Split(torch.from_numpy(train), torch.from_numpy(test)))
    if not splits:
        raise DataError(f"{folder / 'index_train_0.txt'}: there is no such file; copy the splits")
    x, y = torch.from_numpy(table[:, features]), torch.from_numpy(table[:, target[0]])
    hidden = 50
    if (path := folder / "n_hidden.txt").exists():
        units = _numbers(path)
        if units.size != 1 or not 1 <= units.item() <= 1e6:
            raise DataError(f"{path}: must be the number of hidden units; copy it again")
        hidden = round(units.item())
    return RegressionData(name, x, y, tuple(splits), hidden)


def _numbers(path: Path) -> NDArray[np.float64]:
    try:
        with warnings.catch_warnings(), open_text(path) as file:
            warnings.simplefilter("ignore")  # an empty file raises below
            numbers = np.loadtxt(file)
    except OSError as error:
        reason = error.strerror or "there is no such file"
        raise DataError(f"{path}: {reason[0].lower()}{reason[1:]}; copy the set again") from None
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not a table of numbers ({reason}); copy it again") from None
    if not numbers.size:
        raise DataError(f"{path}: is empty; copy it again")
    return numbers


def _indices(path: Path, end: int, kind: str) -> NDArray[np.int64]:
    """Whole numbers, which the published files write as floating-point text."""
    numbers = np.atleast_1d(_numbers(path))
    with np.errstate(invalid="ignore"):  # other numbers raise below
        whole = numbers.astype(np.int64)
    valid = numbers.ndim == 1 and (whole == numbers).all() and len(set(whole)) == len(whole)
    if not valid or whole.min() < 0 or whole.max() >= end:
        raise DataError(
            f"{path}: must list {kind} from 0 to {end - 1}, each at most once; copy it again"
        )
    return whole


def _load_diabetes() -> RegressionData:
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True, scaled=False)
    splits = random_splits(len(y), PUBLISHED_SPLITS[DIABETES])
    return RegressionData(DIABETES, torch.from_numpy(x), torch.from_numpy(y), splits)


@dataclass(frozen=True)
class Standardiser:
    """Mean 0 and standard deviation 1 on the training rows; constant columns keep their scale.

    Attributes:
        x_mean: mean of each input, `[d]`.
        x_scale: standard deviation of each input, `[d]`.
        y_mean: mean of the targets, a scalar.
        y_scale: standard deviation of the targets, a scalar.
    """

    x_mean: Tensor
    x_scale: Tensor
    y_mean: Tensor
    y_scale: Tensor

    @classmethod
    def of(cls, x: Tensor, y: Tensor) -> Standardiser:
        """Fit it to training inputs `[N, d]` and targets `[N]`."""
        return cls(*_mean_and_scale(x), *_mean_and_scale(y))

    def inputs(self, x: Tensor) -> Tensor:
        """Return (x - mean) / scale, column by column."""
        return (x - self.x_mean) / self.x_scale

    def targets(self, y: Tensor) -> Tensor:
        """Return (y - mean) / scale."""
        return (y - self.y_mean) / self.y_scale

    def original_targets(self, y: Tensor) -> Tensor:
        """Standardised targets in the original units."""
        return y * self.y_scale + self.y_mean


def _mean_and_scale(values: Tensor) -> tuple[Tensor, Tensor]:
    scale, mean = torch.std_mean(values, dim=0, correction=0)
    # Dividing a column that is constant up to rounding would magnify the rounding.
    constant = scale <= 1e-12 * mean.abs().clamp(min=torch.finfo(values.dtype).tiny)
    return mean, torch.where(constant, 1.0, scale)
