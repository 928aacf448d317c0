"""Format tables as LaTeX, with the lines of the package booktabs."""

from __future__ import annotations

from itertools import compress

from vcl_radial.reporting.blocks import Cell, Table

_SPECIAL = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "–": "--",
    "−": "$-$",
}


def latex(table: Table) -> str:
    r"""A table as a `tabular`: the best values are bold, published values in italics.

    Columns that a terminal omits are omitted here too.

    Returns:
        Text that ends with a line break. The document needs `\usepackage{booktabs}`.
    """
    kept = [not head.aside for head in table.heads]
    heads = list(compress(table.heads, kept))
    rows = [" & ".join(map(_cell, compress(row, kept))) for row in table.body]
    lines = [
        f"\\begin{{tabular}}{{{''.join('l' if head.is_text else 'r' for head in heads)}}}",
        r"\toprule",
        f"{' & '.join(_escaped(head.heading) for head in heads)} \\\\",
        r"\midrule",
        *(f"{row} \\\\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _cell(cell: Cell) -> str:
    text = _escaped(cell.text)
    mark = r"\textbf" if cell.best else r"\textit" if cell.published and text else ""
    return f"{mark}{{{text}}}" if mark else text


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text)
