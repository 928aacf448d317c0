"""The table of a comparison, from tidy results, and as it is printed."""

from vcl_radial.reporting import markdown
from vcl_radial.reporting.figures.tables import board, seed_table, summary_table


def summary_of(results):
    return summary_table(seed_table(results))


def to_markdown(table):
    return markdown.table(board(table))


def to_text(table):
    return markdown.aligned(board(table))
