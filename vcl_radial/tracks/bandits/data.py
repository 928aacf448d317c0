"""The tables of the bandits, from the files in `bandits/` of the data folder.

Prepared as Riquelme, Tucker and Snoek (2018, Appendix A) do; `published_files` reads those that
are kept in the format in which they were published:

- mushroom: 22 attributes, one-hot (117 columns); the label is whether it is poisonous.
- statlog: the 43,500 training rows, 9 columns standardised; the label is one of 7 classes.
- adult: rows without missing values (45,222); the label is one of 14 occupations, all other columns
  are the context, text one-hot (92 columns), standardised. Their table has 94 columns: in it the
  incomes of the test part end in a full stop, which turns two values into four.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from vcl_radial.data.frames import read_frame
from vcl_radial.data.tables import numbers
from vcl_radial.errors import DataError
from vcl_radial.tracks.bandits.files import path_of
from vcl_radial.tracks.bandits.published_files import census, covertype, financial, jester
from vcl_radial.tracks.bandits.table import Table, standardised

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


def load_table(name: str, data_dir: Path | None = None) -> Table:
    """Load a table of `PREPARATION`.

    Raises:
        UserError: no data folder is named, or it does not exist.
        DataError: the file is missing, damaged or not the expected table.
    """
    return PREPARATION[name](path_of(name, data_dir))


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


def _mushroom(path: Path) -> Table:
    table = read_frame(path)
    _columns(table, ["edibility", "odor"], path)
    labels = _labels(table["edibility"], ("e", "p"), path)
    contexts = _one_hot(table.drop(columns="edibility"))
    return Table("mushroom", contexts.float(), labels, len(MUSHROOM_ACTIONS), len(table))


def _shuttle(path: Path) -> Table:
    whole = read_frame(path)
    names = ["time", *(f"x{number}" for number in range(2, 10))]
    _columns(whole, [*names, "class", "split"], path)
    table = whole[whole["split"] == "train"]
    if table.empty:
        raise DataError(f"{path}: has no row with split = 'train'; copy it again")
    contexts = standardised(torch.from_numpy(numbers(table[names], path)))
    labels = _labels(table["class"], _SHUTTLE_CLASSES, path)
    return Table("statlog", contexts.float(), labels, len(_SHUTTLE_CLASSES), len(whole))


def _adult(path: Path) -> Table:
    whole = _columns(read_frame(path), [*_ADULT_NUMBERS, *_ADULT_WORDS, "occupation"], path)
    table = whole[~(whole == "?").any(axis=1)]
    occupations = sorted(set(table["occupation"]))
    if len(occupations) != 14:
        raise DataError(f"{path}: has {len(occupations)} occupations, not 14; copy it again")
    ages = torch.from_numpy(numbers(table[list(_ADULT_NUMBERS)], path))
    contexts = standardised(torch.cat([ages, _one_hot(table[list(_ADULT_WORDS)])], dim=1))
    labels = _labels(table["occupation"], occupations, path)
    return Table("adult", contexts.float(), labels, len(occupations), len(whole))


PREPARATION: dict[str, Callable[[Path], Table]] = {
    "mushroom": _mushroom,
    "statlog": _shuttle,
    "adult": _adult,
    "financial": financial,
    "jester": jester,
    "covertype": covertype,
    "census": census,
}
"""For each table, a function that makes it from the file."""
