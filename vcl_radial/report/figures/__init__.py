"""Pictures and tables of results: pure functions of tidy accuracy tables."""

from vcl_radial.report.figures.curves import accuracy_curves
from vcl_radial.report.figures.differences import paired_differences
from vcl_radial.report.figures.final_bars import final_bars
from vcl_radial.report.figures.heatmap import heatmap, heatmap_sheet
from vcl_radial.report.figures.layer_movement import layer_movement
from vcl_radial.report.figures.over_seeds import (
    AccuracyOverSeeds,
    accuracy_over_seeds,
    method_names,
)
from vcl_radial.report.figures.report_files import report_files
from vcl_radial.report.figures.style import ENDINGS, MethodStyle, house_style, method_styles, save
from vcl_radial.report.figures.tables import summary_table, to_csv, to_markdown, to_text

__all__ = [
    "ENDINGS",
    "AccuracyOverSeeds",
    "MethodStyle",
    "accuracy_curves",
    "accuracy_over_seeds",
    "final_bars",
    "heatmap",
    "heatmap_sheet",
    "house_style",
    "layer_movement",
    "method_names",
    "method_styles",
    "paired_differences",
    "report_files",
    "save",
    "summary_table",
    "to_csv",
    "to_markdown",
    "to_text",
]
