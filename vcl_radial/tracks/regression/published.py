"""Results of the papers on the nine sets, from `published.csv`, beside ours.

- farquhar2020: Farquhar, Osborne and Gal, "Radial Bayesian neural networks" (AISTATS 2020),
  Table 2. Its columns MFVI and Radial are runs by the authors; the other columns come from the
  papers that they name. PBP_MV on Boston is printed without its sign.
- oh2020: Oh, Adamczewski and Park, "Radial and directional posteriors for Bayesian neural networks"
  (2020), Table 1. Its column RDP is from runs by the authors.

Log-likelihoods are in nats per row, RMSE is in the target's unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from vcl_radial.metrics import METRICS
from vcl_radial.reporting.blocks import Table
from vcl_radial.reporting.mean_table import Values, mean_table
from vcl_radial.reporting.published import not_below, published_values
from vcl_radial.tracks.regression.tables import names, ours

SOURCES = {
    "farquhar2020": "Farquhar, Osborne and Gal 2020, Table 2",
    "oh2020": "Oh, Adamczewski and Park 2020, Table 1",
}

COLUMNS = {
    "mfvi": "MFVI",
    "radial": "Radial",
    "dropout": "Dropout",
    "vmg": "VMG",
    "fbnn": "FBNN",
    "pbp-mv": "PBP_MV",
    "dvi": "DVI",
    "vi": "VI",
    "pbp": "PBP",
    "rdp": "RDP",
}
"""Names of the columns in the papers."""

PUBLISHED = published_values(__package__)
"""The cells by source, its table, set, column and metric."""

COMPARED = (
    ("farquhar2020", "mfvi", "gaussian-vcl"),
    ("farquhar2020", "radial", "radial-vcl"),
    ("farquhar2020", "dropout", "mc-dropout"),
    ("oh2020", "vi", "gaussian-vcl"),
    ("oh2020", "dropout", "mc-dropout"),
    ("oh2020", "rdp", "rdp-vcl"),
    ("oh2020", "rdp", "rdp-vcl-noise-prior"),
)
"""Sources and columns, and our methods beside them."""

_ROUNDING = 0.005
"""Half a unit of the last published decimal."""


def theirs(source: str, column: str, metric: str) -> Values:
    """A column of a published table, by set."""
    key = source, column, metric
    cells = {name: value for (s, _, name, c, m), value in PUBLISHED.items() if (s, c, m) == key}
    return Values("theirs", cells, published=True)


def compared(means: pd.DataFrame, metric: str) -> Iterator[tuple[str, str, Values, Values]]:
    """Source, column, our values and theirs, for methods with a set that both have.

    Args:
        means: means over splits.
        metric: the metric to compare.
    """
    for source, column, method in COMPARED:
        published = theirs(source, column, metric)
        values = ours(means, method, metric, f"{method} ({COLUMNS[column]}): ours")
        if values.by_row.keys() & published.by_row.keys():
            yield source, column, values, published


def beside(means: pd.DataFrame, source: str, metric: str) -> Table | None:
    """Our methods beside columns of a published table; None if nothing can be compared."""
    pairs = [pair for of, _, *pair in compared(means, metric) if of == source]
    if not pairs:
        return None
    sets = [name for name in names(means) if any(name in theirs.by_row for _, theirs in pairs)]
    title = f"{SOURCES[source]}: {METRICS[metric].heading}"
    columns = [values for pair in pairs for values in pair]
    return mean_table(["set"], {name: [name] for name in sets}, columns, title)


def verdicts(means: pd.DataFrame) -> list[str]:
    """Results of the comparison of log-likelihoods, in sentences."""
    sentences = []
    for source, _, values, published in compared(means, "log_likelihood"):
        high = not_below(values, published)
        worse = ", ".join(name for name, is_high in high.items() if not is_high)
        sentences.append(
            f"{values.heading.removesuffix(': ours')}, {SOURCES[source]}: at least as high on "
            f"{sum(high.values())} of {len(high)} sets{f': worse on {worse}' if worse else ''}"
        )
    return sentences


def impossible_pairs(means: pd.DataFrame) -> list[str]:
    """Published pairs that no Gaussian noise of one size can give, in sentences.

    Only sets that were run and columns beside a method are considered.
    """
    sentences = []
    columns = dict.fromkeys(pair[:2] for pair in compared(means, "log_likelihood"))
    for source, column in columns:
        errors = theirs(source, column, "rmse").by_row
        for name, (mean, error) in theirs(source, column, "log_likelihood").by_row.items():
            rmse = errors[name].mean if name in errors and name in names(means) else 0.0
            if rmse <= _ROUNDING:
                continue
            bound = best_log_likelihood(rmse - _ROUNDING)  # it may have been rounded up
            if mean > bound + 3 * error + _ROUNDING:
                sentences.append(
                    f"{name}, {COLUMNS[column]} of {SOURCES[source]}: a log-likelihood of "
                    f"{mean:.2f} beside an RMSE of {rmse:.2f}, with which one Gaussian noise "
                    f"reaches {bound:.2f} at most"
                )
    return sentences


def best_log_likelihood(rmse: float) -> float:
    """The highest mean log-likelihood of any one Gaussian noise at this RMSE, in nats.

    It is -log RMSE - (1 + log 2 pi) / 2. A predictive distribution with one noise for all rows
    cannot be better, so the bound shows whether a published pair can come from one model.
    """
    return -math.log(rmse) - (1 + math.log(2 * math.pi)) / 2
