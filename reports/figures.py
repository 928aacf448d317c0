"""Figures whose layout is data: curves from arrays, and sheets from the TOML of a module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.papers.texts import read
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.reporting.figures.drawing import Curve, sheet


def curve(panel: str, name: str, x: npt.ArrayLike, y: npt.ArrayLike) -> Curve:
    """A curve without a band, from arrays or sequences of numbers."""
    return Curve(panel, name, np.asarray(x).tolist(), np.asarray(y).tolist())


def curve_with_errors(
    panel: str, name: str, x: npt.ArrayLike, values: Sequence[tuple[float, float]]
) -> Curve:
    """A curve of pairs of a value and its standard error, with a band of two standard errors.

    The band ends at a tenth of a value, as a logarithmic axis cannot show one that reaches 0.
    """
    y, errors = np.transpose(values)
    low, high = np.maximum(y - 2 * errors, y / 10).tolist(), (y + 2 * errors).tolist()
    return Curve(panel, name, np.asarray(x).tolist(), y.tolist(), low, high)


def histogram(
    panel: str, name: str, values: npt.ArrayLike, edges: npt.NDArray[np.float64]
) -> Curve:
    """The density of values in bars with these edges, at their middles."""
    counts, _ = np.histogram(values, edges)
    density = counts / (np.size(values) * np.diff(edges))
    return curve(panel, name, (edges[1:] + edges[:-1]) / 2, density)


def curve_of_means(
    panel: str, name: str, x: Sequence[float], values: Iterable[Iterable[float]]
) -> Curve:
    """A curve of means over seeds, with a band of one standard error where there are several seeds.

    Args:
        panel: name of the panel.
        name: name of the curve.
        x: the positions.
        values: the values of all seeds at each position.
    """
    means, errors = np.transpose([mean_and_standard_error(of_seeds) for of_seeds in values])
    if np.isnan(errors).any():
        return curve(panel, name, x, means)
    low, high = (means - errors).tolist(), (means + errors).tolist()
    return Curve(panel, name, list(x), means.tolist(), low, high)


def sheet_of(module: str, **others: Any) -> AbstractContextManager[tuple[Figure, list[Axes]]]:
    """The sheet of a module: `[figure]` in the TOML file beside it holds arguments of `sheet`.

    Args:
        module: the file of the module.
        others: further arguments of `sheet`.
    """
    return sheet(**read(module)["figure"], **others)
