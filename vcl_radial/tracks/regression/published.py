"""Results of the papers on the nine sets, from `published.csv`.

- farquhar2020: Farquhar, Osborne and Gal, "Radial Bayesian neural networks" (AISTATS 2020),
  Table 2. Its columns MFVI and Radial are runs by the authors; the other columns come from the
  papers that they name. PBP_MV on Boston is printed without its sign.
- oh2020: Oh, Adamczewski and Park, "Radial and directional posteriors for Bayesian neural networks"
  (2020), Table 1. Its column RDP is from runs by the authors.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

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

GAUSSIAN, RADIAL, RDP = "gaussian-vcl", "radial-vcl", "rdp-vcl"
RDP_NOISE_PRIOR = "rdp-vcl-noise-prior"
"""The suite's methods that are compared with columns of other names."""


@dataclass(frozen=True)
class Published:
    """A cell of a published table; log-likelihoods in nats per row, RMSE in the target's unit."""

    source: str
    set: str
    column: str
    metric: str
    mean: float
    standard_error: float


@lru_cache(maxsize=1)
def published() -> tuple[Published, ...]:
    """All cells."""
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(
        Published(
            row["source"],
            row["set"],
            row["column"],
            row["metric"],
            float(row["mean"]),
            float(row["standard_error"]),
        )
        for row in csv.DictReader(text.splitlines())
    )


def cell(source: str, name: str, column: str, metric: str) -> Published | None:
    """Return one cell; None if the table has none."""
    for entry in published():
        if (entry.source, entry.set, entry.column, entry.metric) == (source, name, column, metric):
            return entry
    return None


def best_log_likelihood(rmse: float) -> float:
    """The highest mean log-likelihood of any one Gaussian noise at this RMSE, in nats.

    It is -log RMSE - (1 + log 2 pi) / 2. A predictive distribution with one noise for all rows
    cannot be better, so the bound shows whether a published pair can come from one model.
    """
    return -math.log(rmse) - (1 + math.log(2 * math.pi)) / 2
