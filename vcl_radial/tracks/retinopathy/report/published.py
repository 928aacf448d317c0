"""The paper's Table 1 on EyePACS, from `published.csv`.

Farquhar, Osborne and Gal, "Radial Bayesian Neural Networks: Beyond Discrete Support In Large-Scale
Bayesian Deep Learning" (AISTATS 2020), Table 1: runs by the authors, at 512 x 512 pixels.
"""

from __future__ import annotations

from typing import Final

from vcl_radial.reporting.published import published_rows

CITATION: Final = (
    'Farquhar, Osborne and Gal, "Radial Bayesian Neural Networks: Beyond Discrete Support In '
    'Large-Scale Bayesian Deep Learning" (AISTATS 2020), Table 1'
)

WORDS: Final = {
    "naive": "deterministic",
    "gaussian-vcl": "MFVI",
    "gaussian-vcl-tweaked": "MFVI with tweaks",
    "gaussian-vcl-truncated": "truncated MFVI",
    "radial-vcl": "Radial",
}
"""The paper's names for methods that have different names in this suite."""

SHARES: Final = (0.0, 0.1, 0.2, 0.3)
"""Shares referred in the table."""


PUBLISHED: Final = {row["method"]: row for row in published_rows(__package__)}
"""The printed rows, by the names of the shipped recipes.

`network` is the architecture; the paper's asterisk marks fewer channels for as many parameters.
`epoch_minutes` are those of a training epoch, all members in turn. `auc_30` is the AUC in per cent
with 30 % referred, and `se_30` its standard error over resampled photographs.
"""


def auc(method: str, share: float) -> str:
    """The AUC of a method with a share referred, and its standard error: `94.3 (0.04)`."""
    row, referred = PUBLISHED[method], f"{100 * share:.0f}"
    return f"{row[f'auc_{referred}']} ({row[f'se_{referred}']})"
