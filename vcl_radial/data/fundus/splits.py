"""Training, validation and test parts; both eyes of a patient are always in the same part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcl_radial.data.fundus.table import NOT_GRADED, Photographs
from vcl_radial.errors import DataError, UserError, bad_value

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Places of a table's rows, in the table's order; no patient is in two parts."""

    train: Rows
    validation: Rows
    test: Rows


def split_by_patient(
    photographs: Photographs,
    *,
    train: float | None = None,
    validation: float = 0.1,
    test: float = 0.2,
    seed: int = 0,
) -> Split:
    """Cut a table at random between patients, stratified by each patient's worst grade.

    The parts' shares are kept to within a patient over all, and to within two in each stratum. The
    cut depends on the patients' names, their worst grades and the seed, not on the rows' order.

    Args:
        photographs: the table.
        train: share of the patients; None for all that are in no other part.
        validation: share of the patients.
        test: share of the patients.
        seed: seed of the shuffle.

    Raises:
        UserError: the shares leave nothing to train on, or a part gets no patient.
    """
    rest = 1 - validation - test
    left_out = 0 if train is None else rest - train
    shares = np.array([rest - left_out, validation, test, left_out])
    if validation < 0 or test < 0 or shares[0] <= 0 or left_out < 0:
        raise bad_value(
            "validation",
            validation,
            f"and test = {test} must be shares from 0 up that leave some for training"
            f"{'' if train is None else f', here {train}'}",
        )
    patients, of_row = np.unique(photographs.patients, return_inverse=True)
    worst = np.full(len(patients), NOT_GRADED)
    np.maximum.at(worst, of_row, photographs.grades)
    rng = np.random.default_rng(seed)
    shuffled = [rng.permutation(np.flatnonzero(worst == grade)) for grade in np.unique(worst)]
    part = np.empty(len(patients), np.int64)
    given = np.zeros(4)
    for count, patient in enumerate(np.concatenate(shuffled), start=1):
        # The part that lacks most of its share gets the patient: exact for prefixes and strata.
        part[patient] = np.argmax(shares * count - given)
        given[part[patient]] += 1
    if (empty := np.flatnonzero((shares[:3] > 0) & (given[:3] == 0))).size:
        raise UserError(
            f"{len(patients)} patients are too few for a "
            f"{('train', 'validation', 'test')[empty[0]]} part of {shares[empty[0]]:.0%}; "
            "use more, or another share",
            at=photographs.name,
        )
    return Split(*(np.flatnonzero(part[of_row] == k) for k in range(3)))


def published_split(photographs: Photographs, *, validation: float = 0.1, seed: int = 0) -> Split:
    """The split that a data set was published with (IDRiD, a column `split`).

    Where it has no validation part, one is cut from the training part by `split_by_patient`.

    Args:
        photographs: the table.
        validation: share of the training part's patients, where there is no such part.
        seed: seed of that cut.

    Raises:
        DataError: the table has no such split, or a patient is in two parts of it.
    """
    parts = np.array([row.part for row in photographs.rows])
    train, valid, test = (np.flatnonzero(parts == p) for p in ("train", "validation", "test"))
    if len(train) + len(valid) + len(test) < len(photographs) or not len(train) or not len(test):
        raise DataError(
            "does not say for every photograph whether it is of the train or "
            "the test part; use a random split by patient",
            at=photographs.name,
        )
    parts_of: dict[str, str] = {}
    for row in photographs.rows:
        if parts_of.setdefault(row.patient, row.part) != row.part:
            raise DataError(
                f"patient {row.patient} is in the {parts_of[row.patient]} and "
                f"in the {row.part} part; use a random split by patient",
                at=photographs.name,
            )
    if not len(valid) and validation:
        cut = split_by_patient(
            photographs.select(train), validation=validation, test=0.0, seed=seed
        )
        train, valid = train[cut.train], train[cut.validation]
    return Split(train, valid, test)
