"""Draw pictures and make tables of results, as pure functions of tidy accuracy tables."""

from vcl_radial.reporting.figures.curves import accuracy_curves
from vcl_radial.reporting.figures.differences import paired_differences
from vcl_radial.reporting.figures.final_bars import final_bars
from vcl_radial.reporting.figures.heatmap import heatmap_sheet
from vcl_radial.reporting.figures.layer_movement import layer_movement
from vcl_radial.reporting.figures.over_seeds import all_over_seeds, method_names
from vcl_radial.reporting.figures.style import ENDINGS, empty, save
from vcl_radial.reporting.figures.tables import board, seed_table, summary_table, to_csv

__all__ = [
    "ENDINGS",
    "accuracy_curves",
    "all_over_seeds",
    "board",
    "empty",
    "final_bars",
    "heatmap_sheet",
    "layer_movement",
    "method_names",
    "paired_differences",
    "save",
    "seed_table",
    "summary_table",
    "to_csv",
]
