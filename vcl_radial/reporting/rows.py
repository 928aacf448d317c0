"""The rows of a CSV file, and statistics of them for pages: means, spreads, paired differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vcl_radial.errors import DataError
from vcl_radial.files.reading import open_text
from vcl_radial.metrics import verdicts
from vcl_radial.metrics.estimates import Estimate, estimate_over_splits
from vcl_radial.metrics.seeds import FEWEST_SEEDS, mean_and_standard_error, sign_flip_test
from vcl_radial.reporting.blocks import with_spread


def uncorrected(test: Hashable, p: float) -> float:
    """The p-value of a single test, without a correction."""
    return p


@dataclass(frozen=True)
class Rows:
    """Rows of a CSV file, one per run.

    Attributes:
        table: the rows.
        name: name of the file with the selection, for messages.
        correct: function that corrects p-values for the number of tests on a page.
        overlap: test rows over training rows, where a seed is a random split that shares rows with
            the others; 0 for seeds of the same split.
    """

    table: pd.DataFrame
    name: str
    correct: verdicts.Correction = uncorrected
    overlap: float = 0.0

    @classmethod
    def read(cls, path: Path) -> Rows:
        """Read the rows of a `.csv` or `.csv.gz` file.

        Raises:
            DataError: the file is missing or damaged.
        """
        try:
            with open_text(path) as file:
                table = pd.read_csv(file)
        except (OSError, EOFError, ValueError) as error:
            raise DataError(f"cannot be read ({' '.join(str(error).split())})", path) from None
        return cls(table, path.name)

    def where(self, **values: Hashable | Sequence[Hashable]) -> Rows:
        """The rows with these values; a list allows any of its values.

        Raises:
            DataError: there is no such column, or no such row.
        """
        selected = np.ones(len(self.table), dtype=bool)
        for column, value in values.items():
            allowed = value if isinstance(value, (list, tuple)) else [value]
            selected &= self._column(column).isin(allowed).to_numpy()
        table = self.table[selected]
        selection = ", ".join(f"{column} = {value}" for column, value in values.items())
        if table.empty:
            raise DataError(f"no row has {selection}", self.name)
        return replace(self, table=table, name=f"{self.name} ({selection})")

    def wide(
        self, names: str = "metric", values: str = "value", keys: Sequence[str] | None = None
    ) -> Rows:
        """Pivot rows of one value each into rows with a column per name.

        Args:
            names: the column of names.
            values: the column of values.
            keys: the columns that tell the new rows apart; by default all others.

        Raises:
            DataError: there is no such column, or a value is there twice.
        """
        self._column(names), self._column(values)
        if keys is None:
            keys = [str(column) for column in self.table if column not in (names, values)]
        # A pivot drops rows with an empty value in one of these columns.
        filled = self.table.astype(dict.fromkeys(keys, object)).fillna(dict.fromkeys(keys, ""))
        try:
            table = filled.pivot(index=keys, columns=names, values=values).reset_index()
        except ValueError:
            raise DataError(f"a {values} is there twice", self.name) from None
        return replace(self, table=table)

    def averaged(self, *keys: str) -> Rows:
        """One row for each value of the keys, with the means of all columns of numbers.

        Raises:
            DataError: there is no such column.
        """
        for key in keys:
            self._column(key)
        means = self.table.groupby(list(keys), sort=False).mean(numeric_only=True)
        return replace(self, table=means.reset_index())

    def values(self, column: str) -> list[float]:
        """The numbers of a column.

        Raises:
            DataError: there is no such column, or it holds no numbers.
        """
        try:
            return [float(value) for value in self._column(column)]
        except (TypeError, ValueError):
            raise DataError(f"{column} holds no numbers", self.name) from None

    def distinct(self, column: str) -> list[Hashable]:
        """The values of a column without duplicates, in the order of the file."""
        return list(dict.fromkeys(self._column(column)))

    def by_mean(self, score: str, column: str = "method", *, ascending: bool = False) -> list[str]:
        """The values of a column, ordered by the mean of a score, the highest first."""
        means = {
            str(value): mean_and_standard_error(self.where(**{column: value}).values(score))[0]
            for value in self.distinct(column)
        }
        return sorted(means, key=lambda value: means[value], reverse=not ascending)

    def number(self, column: str) -> float:
        """The mean of a column, as a number."""
        return mean_and_standard_error(self.values(column))[0]

    def mean(self, column: str, digits: int = 1) -> str:
        """Mean and standard error of a column: `95.2 ± 0.4`; a dash without values."""
        values = [value for value in self.values(column) if not math.isnan(value)]
        if not values:
            return "–"
        return with_spread(*mean_and_standard_error(values), digits)

    def count(self) -> int:
        """The number of rows."""
        return len(self.table)

    def difference(
        self,
        column: str,
        first: Hashable,
        second: Hashable,
        digits: int = 2,
        by: str = "method",
        pair: str | Sequence[str] = "seed",
    ) -> Difference:
        """The first value's scores minus the second's, in pairs of runs.

        Args:
            column: the column of the score.
            first: first value of the column `by`.
            second: second value of the column `by`.
            digits: number of digits after the point.
            by: the column of the two values.
            pair: the columns whose equal values make a pair.

        Raises:
            DataError: a column is missing, a pair has more than two runs, or there is no pair.
        """
        keys = [pair] if isinstance(pair, str) else list(pair)
        sides = [self.where(**{by: name}) for name in (first, second)]
        scores = []
        for side in sides:
            side.values(column)
            scores.append(side.table.set_index(keys)[column].dropna())
            if scores[-1].index.has_duplicates:
                raise DataError(f"{', '.join(keys)} is there twice", side.name)
        paired = pd.concat(scores, axis=1, join="inner")
        if paired.empty:
            raise DataError(
                f"{first} and {second} have no {', '.join(keys)} in common",
                self.name,
            )
        values = (paired.iloc[:, 0] - paired.iloc[:, 1]).tolist()
        return Difference(values, digits, self.overlap, self.correct)

    def sides(
        self, names: Mapping[str, str], undecided: str = "undecided", *, sizes: bool = False
    ) -> str:
        """The streams on which the first value is above or below: `above on A, B; below on C`.

        Args:
            names: printed names of the streams.
            undecided: the word for streams with p of 0.05 or more by Holm's correction.
            sizes: whether decided differences are printed after their streams.

        Raises:
            DataError: a column of `stream, difference, holm` is missing.
        """
        columns = [self._column(name) for name in ("stream", "difference", "holm")]
        streams: dict[str, list[str]] = {"above": [], "below": [], undecided: []}
        for stream, difference, p in zip(*columns, strict=True):
            side = verdicts.side(difference, p, undecided)
            size = f" ({difference:+.1f})" if sizes and side != undecided else ""
            streams[side].append(f"{names.get(stream, stream)}{size}")
        return "; ".join(f"{side} on {', '.join(on)}" for side, on in streams.items() if on)

    def _column(self, name: str) -> pd.Series[Any]:
        if name not in self.table:
            known = ", ".join(map(str, self.table.columns))
            raise DataError(f"has no column {name}; it has {known}", self.name)
        return self.table[name]


@dataclass(frozen=True)
class Difference:
    """Differences of pairs of runs, and the test of their mean.

    The test is the exact sign-flip test for seeds, and Nadeau and Bengio's corrected t-test for
    splits that share rows. There is no test for fewer than six pairs.

    Attributes:
        values: one difference per pair.
        digits: number of printed digits after the point.
        overlap: test rows over training rows of splits; 0 for seeds.
        correct: function that corrects p-values for the number of tests on a page.
    """

    values: list[float]
    digits: int = 2
    overlap: float = 0.0
    correct: verdicts.Correction = uncorrected

    @property
    def estimate(self) -> Estimate:
        """The mean difference with its standard error."""
        return estimate_over_splits(self.values, self.overlap)

    @property
    def mean(self) -> float:
        """The mean difference."""
        return self.estimate.mean

    @property
    def p(self) -> float:
        """The two-sided p-value, corrected for the tests of the page; nan below six pairs."""
        if self.pairs < FEWEST_SEEDS:
            return math.nan
        alone = self.estimate.p if self.overlap else sign_flip_test(self.values)
        return self.correct(self._test, alone)

    @property
    def verdict(self) -> verdicts.Verdict:
        """The verdict on a published claim that the first value is above the second."""
        return verdicts.verdict_of_sign(self.mean, self.p)

    def level(self, margin: float) -> bool:
        """Whether two one-sided tests show that the mean is within a margin of 0.

        Args:
            margin: the smallest difference that counts.
        """
        p = self.correct((*self._test, margin), self.estimate.p_beyond(margin))
        return p < verdicts.LEVEL

    @property
    def _test(self) -> tuple[float, ...]:
        """The key of the test, equal for both signs and any order: pages print either."""
        negated = sorted(-value for value in self.values)
        return (*max(sorted(self.values), negated), self.overlap)

    def __neg__(self) -> Difference:
        """Second minus first; the verdict is on the claim that the second value is higher."""
        return replace(self, values=[-value for value in self.values])

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return len(self.values)

    @property
    def above(self) -> int:
        """The number of pairs in which the first value is above."""
        return sum(value > 0 for value in self.values)

    @property
    def size(self) -> str:
        """The mean without its sign, and its standard error."""
        mean, error, _ = self.estimate
        return with_spread(abs(mean), error, self.digits)

    def __str__(self) -> str:
        mean, error, _ = self.estimate
        text = with_spread(mean, error, self.digits, sign=True)
        return f"{text} ({p_value(self.p)})" if self.pairs >= FEWEST_SEEDS else text


def p_value(p: float) -> str:
    """Format a p-value: `p = 0.03`, `p < 0.001`; `p unknown` for too few or too many pairs."""
    if math.isnan(p):
        return "p unknown"
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}" if p < 0.995 else "p = 1"
