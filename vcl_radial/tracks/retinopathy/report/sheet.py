"""A sheet of the photographs that a method is most and least certain about.

The sheet has only photographs that may be published: drawn ones and IDRiD's (CC BY 4.0), never
EyePACS's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd
from matplotlib.figure import Figure

from vcl_radial.data.decoding import Unreadable
from vcl_radial.data.fundus import Photograph, Photographs, SyntheticSettings, load_photographs
from vcl_radial.data.fundus.prepare import squared
from vcl_radial.errors import UserError
from vcl_radial.reporting.figures.panels import finish, panel_title, panels
from vcl_radial.reporting.figures.style import QUIET_INK, SMALL_SIZE, house_style
from vcl_radial.reporting.scores import UNCERTAINTY_NAMES
from vcl_radial.tracks.retinopathy.scoring import uncertainties
from vcl_radial.tracks.retinopathy.settings import DataSettings

SHOWABLE: Final = ("synthetic", "idrid")

_ROW: Final = 6
_PIXELS: Final = 160
_EDGE: Final = 1.0


def showable(
    table: Mapping[str, Any], data_dir: Path | None
) -> tuple[list[Photographs], list[str]]:
    """The photographs of a run's data that may be shown, and notes on missing ones."""
    data = DataSettings.model_validate(table)
    data_sets, missing = [], []
    for name in data.names:
        if name not in SHOWABLE:
            continue
        settings = SyntheticSettings(patients=data.patients, artefacts=data.artefacts)
        try:
            data_sets.append(
                load_photographs(
                    name, data_dir, on_fault="skip", report=lambda _: None, synthetic=settings
                )
            )
        except UserError as error:
            missing.append(f"no sheet of {name}: {error}")
    return data_sets, missing


def has_all(predictions: pd.DataFrame, photographs: Photographs) -> bool:
    """Whether the table holds all photographs of a test set, and enough for a sheet."""
    names = {photograph.name for photograph in photographs.rows}
    enough = len(predictions) >= 2 * _ROW and bool(uncertainties(predictions))
    return enough and set(predictions["image"]) <= names


def sheet(predictions: pd.DataFrame, photographs: Photographs, title: str) -> Figure:
    """The photographs that one run is least certain about, above those it is most certain about.

    Args:
        predictions: predictions of one run for one test set that meets `has_all`.
        photographs: the photographs of the test set.
        title: title of the figure.
    """
    by_name = {photograph.name: photograph for photograph in photographs.rows}
    by = uncertainties(predictions)[0]
    ordered = predictions.sort_values([by, "image"], ascending=[False, True])
    chosen = pd.concat([ordered.head(_ROW), ordered.tail(_ROW).iloc[::-1]])
    with house_style():
        figure, grid = panels(2 * _ROW, _ROW)
        for index, (axes, row) in enumerate(zip(grid, chosen.to_dict("records"), strict=True)):
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            if index % _ROW == 0:
                panel_title(axes, "most certain" if index else "least certain", 3 * _EDGE)
            picture = _picture(photographs, by_name[row["image"]])
            if picture is not None:
                axes.imshow(picture, interpolation="lanczos")
            axes.set_xlabel(
                _caption(row, by), fontsize=SMALL_SIZE, color=QUIET_INK, loc="left", linespacing=1.2
            )
        notes = [
            f"by {UNCERTAINTY_NAMES[by]}, in millinats",
            "p: said to be referable; levels from 2 on are",
            photographs.notice,
        ]
        finish(figure, (_EDGE, _EDGE), title, notes)
    return figure


def _picture(photographs: Photographs, photograph: Photograph) -> Any:
    try:
        return squared(photographs.reader.read(photograph, _PIXELS), _PIXELS, normalise="none")
    except Unreadable:
        return None


def _short(value: float) -> str:
    """Write a number with three digits at most, never as a power of ten."""
    if 0 < value < 0.001:
        return "<0.001"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _caption(row: Mapping[Any, Any], by: str) -> str:
    lines = [
        f"level {row['level']}, p {100 * row['probability']:.0f} %",
        f"{UNCERTAINTY_NAMES[by]} {_short(1000 * row[by])}",
    ]
    if row["artefact"]:
        lines.append(f"artefact: {row['artefact']}")
    return "\n".join(lines)
