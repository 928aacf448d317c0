"""The tables of the bandits: mushroom, Statlog shuttle and adult, as `bandits/NAME.csv.gz`.

Prepared as Riquelme, Tucker and Snoek (2018, Appendix A) do:

- mushroom: 22 attributes, one-hot (117 columns); the label is whether it is poisonous.
- statlog: the 43,500 training rows, 9 columns standardised; the label is one of 7 classes.
- adult: rows without missing values (45,222); the label is one of 14 occupations, all other columns
  are the context, text one-hot (92 columns), standardised. Their table has 94 columns: in it the
  incomes of the test part end in a full stop, which turns two values into four.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from vcl_radial.data.frames import read_frame
from vcl_radial.data.tables import numbers
from vcl_radial.errors import DataError
from vcl_radial.tracks.bandits.files import path_of

MUSHROOM_ACTIONS = ("leave it", "eat it")
_SHUTTLE_CLASSES = tuple(str(number) for number in range(1, 8))
_ADULT_NUMBERS = (
    "age",
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
)
_ADULT_WORDS = (
    "workclass",
    "education",
    "marital-status",
    "relationship",
    "race",
    "sex",
    "native-country",
    "income",
)


@dataclass(frozen=True, eq=False)
class Table:
    """Contexts and the labels that decide their rewards.

    Attributes:
        name: name of the data set.
        contexts: float32 `[n, d]`.
        labels: int64 `[n]`: the best action; for a mushroom, 1 if it is poisonous.
        actions: number of actions, K.
        rows: number of rows in the file, including rows that are left out.
    """

    name: str
    contexts: Tensor
    labels: Tensor
    actions: int
    rows: int = 0


def load_table(name: str, data_dir: Path | None = None) -> Table:
    """Load a table of `PREPARATION`.

    Raises:
        UserError: no data folder is named, or it does not exist.
        DataError: the file is missing, damaged or not the expected table.
    """
    path = path_of(name, data_dir)
    frame = read_frame(path)
    return replace(PREPARATION[name](frame, path), rows=len(frame))


def _columns(table: pd.DataFrame, names: Sequence[str], path: Path) -> pd.DataFrame:
    if missing := [name for name in names if name not in table]:
        raise DataError(f"{path}: has no column {missing[0]!r}; copy it again")
    return table[list(names)]


def _labels(column: pd.Series[str], classes: Sequence[str], path: Path) -> Tensor:
    known = {name: number for number, name in enumerate(classes)}
    if unknown := sorted(set(column) - set(known)):
        raise DataError(f"{path}: {column.name} = {unknown[0]!r} is no class of it; copy it again")
    return torch.tensor([known[value] for value in column])


def _one_hot(table: pd.DataFrame) -> Tensor:
    return torch.from_numpy(pd.get_dummies(table).to_numpy(dtype="float64"))


def _standardised(columns: Tensor) -> Tensor:
    scale, mean = torch.std_mean(columns, dim=0, correction=0)
    return (columns - mean) / torch.where(scale > 0, scale, 1.0)


def _mushroom(table: pd.DataFrame, path: Path) -> Table:
    _columns(table, ["edibility", "odor"], path)
    labels = _labels(table["edibility"], ("e", "p"), path)
    contexts = _one_hot(table.drop(columns="edibility"))
    return Table("mushroom", contexts.float(), labels, len(MUSHROOM_ACTIONS))


def _shuttle(table: pd.DataFrame, path: Path) -> Table:
    names = ["time", *(f"x{number}" for number in range(2, 10))]
    _columns(table, [*names, "class", "split"], path)
    table = table[table["split"] == "train"]
    if table.empty:
        raise DataError(f"{path}: has no row with split = 'train'; copy it again")
    contexts = _standardised(torch.from_numpy(numbers(table[names], path)))
    labels = _labels(table["class"], _SHUTTLE_CLASSES, path)
    return Table("statlog", contexts.float(), labels, len(_SHUTTLE_CLASSES))


def _adult(table: pd.DataFrame, path: Path) -> Table:
    table = _columns(table, [*_ADULT_NUMBERS, *_ADULT_WORDS, "occupation"], path)
    table = table[~(table == "?").any(axis=1)]
    occupations = sorted(set(table["occupation"]))
    if len(occupations) != 14:
        raise DataError(f"{path}: has {len(occupations)} occupations, not 14; copy it again")
    ages = torch.from_numpy(numbers(table[list(_ADULT_NUMBERS)], path))
    contexts = _standardised(torch.cat([ages, _one_hot(table[list(_ADULT_WORDS)])], dim=1))
    return Table("adult", contexts.float(), _labels(table["occupation"], occupations, path), 14)


PREPARATION: dict[str, Callable[[pd.DataFrame, Path], Table]] = {
    "mushroom": _mushroom,
    "statlog": _shuttle,
    "adult": _adult,
}
"""For each table, a function that makes it from the file."""
