"""Figures whose layout is data: curves from arrays, and sheets from the TOML of a module."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.papers.texts import read
from vcl_radial.reporting.figures.drawing import Curve, sheet


def curve(panel: str, name: str, x: npt.ArrayLike, y: npt.ArrayLike) -> Curve:
    """A curve without a band, from arrays or sequences of numbers."""
    return Curve(panel, name, np.asarray(x).tolist(), np.asarray(y).tolist())


def sheet_of(module: str, **others: Any) -> AbstractContextManager[tuple[Figure, list[Axes]]]:
    """The sheet of a module: `[figure]` in the TOML file beside it holds arguments of `sheet`.

    Args:
        module: the file of the module.
        others: further arguments of `sheet`.
    """
    return sheet(**read(module)["figure"], **others)
