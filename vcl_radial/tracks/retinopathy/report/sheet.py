"""A sheet of the photographs that a method is most and least certain about.

Only pictures that may be shown: drawn ones, and those of IDRiD (CC BY 4.0). Never EyePACS's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd
from matplotlib.figure import Figure

from vcl_radial.data.fundus import Photograph, Photographs, SyntheticSettings, load_photographs
from vcl_radial.data.fundus.prepare import squared
from vcl_radial.data.fundus.table import Unreadable
from vcl_radial.errors import UserError
from vcl_radial.report.figures.layout import Grid, fill, header_height, text_height
from vcl_radial.report.figures.style import QUIET_INK, SMALL_SIZE, TEXT_SIZE, house_style
from vcl_radial.tracks.retinopathy.report.tables import UNCERTAINTY_NAMES
from vcl_radial.tracks.retinopathy.scoring import uncertainties
from vcl_radial.tracks.retinopathy.settings import DataSettings

SHOWABLE: Final = ("synthetic", "idrid")

_ROW: Final = 6
_PIXELS: Final = 160
_EDGE: Final = 1.0


def showable(data: DataSettings, data_dir: Path | None) -> tuple[list[Photographs], list[str]]:
    """The tables whose pictures may be shown, and in words why one is missing."""
    found, missing = [], []
    for name in (data.dataset, *data.then, *data.shifted):
        if name not in SHOWABLE:
            continue
        settings = SyntheticSettings(patients=data.patients, artefacts=data.artefacts)
        try:
            found.append(
                load_photographs(
                    name, data_dir, on_fault="skip", tell=lambda _: None, synthetic=settings
                )
            )
        except UserError as error:
            missing.append(f"no sheet of {name}: {error}")
    return found, missing


def sheet(predictions: pd.DataFrame, photographs: Photographs, title: str) -> Figure | None:
    """The photographs that one run is least certain about, above those it is most certain about.

    Args:
        predictions: of one run and one test set.
        photographs: where its pictures are.
        title: of the figure.

    Returns:
        The figure; None unless the set's photographs are all in the table, and more than a row.
    """
    by_name = {photograph.name: photograph for photograph in photographs.rows}
    names = uncertainties(predictions)
    if not names or len(predictions) < 2 * _ROW or not set(predictions["image"]) <= set(by_name):
        return None
    by = names[0]
    ordered = predictions.sort_values([by, "image"], ascending=[False, True])
    rows = [
        ("least certain", ordered.head(_ROW)),
        ("most certain", ordered.tail(_ROW).iloc[::-1]),
    ]
    below = text_height(3, SMALL_SIZE) + 0.04
    left = 0.08
    width = _ROW * (left + _EDGE) - left
    parts = [
        f"by {UNCERTAINTY_NAMES[by]}, in millinats",
        "p: said to be referable; grades from 2 on are",
        photographs.notice,
    ]
    notes = fill(parts, width, TEXT_SIZE)
    grid = Grid(
        panels=2 * _ROW,
        per_line=_ROW,
        width=_EDGE,
        height=_EDGE,
        left=left,
        above=text_height(1, TEXT_SIZE) + 0.06,
        below=below,
        right=left,
        header=header_height(len(notes)) + 0.04,
    )
    with house_style():
        figure = grid.figure()
        grid.write_header(figure, title, notes)
        for line, (words, chosen) in enumerate(rows):
            for column, row in enumerate(chosen.to_dict("records")):
                axes = grid.axes(figure, line * _ROW + column)
                axes.set_axis_off()
                if column == 0:
                    axes.set_title(words, fontsize=TEXT_SIZE, fontweight="bold", loc="left", pad=3)
                picture = _picture(photographs, by_name[row["image"]])
                if picture is not None:
                    axes.imshow(picture, interpolation="lanczos")
                axes.text(
                    0.0,
                    -0.03,
                    _caption(row, by),
                    transform=axes.transAxes,
                    va="top",
                    fontsize=SMALL_SIZE,
                    color=QUIET_INK,
                    linespacing=1.2,
                )
    return figure


def _picture(photographs: Photographs, photograph: Photograph) -> Any:
    try:
        return squared(photographs.reader.read(photograph, _PIXELS), _PIXELS)
    except Unreadable:
        return None


def _caption(row: Mapping[Any, Any], by: str) -> str:
    lines = [
        f"grade {row['grade']}, p {100 * row['probability']:.0f} %",
        f"{UNCERTAINTY_NAMES[by]} {1000 * row[by]:.3g}",
    ]
    if row["artefact"]:
        lines.append(f"artefact: {row['artefact']}")
    return "\n".join(lines)
