"""The parts of a report: texts, tables, figures and claims in sections, without a format."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from vcl_radial.metrics.verdicts import Verdict

if TYPE_CHECKING:
    import matplotlib.figure

Facts: TypeAlias = Sequence[tuple[str, Sequence[str]]]
"""Facts about the origin of numbers: a name, and lines about it."""

_NUMBER = re.compile(r"[+\-−~]?[\d.,]+")


@dataclass(frozen=True)
class Text:
    """A paragraph, and the points of a list below it.

    Attributes:
        text: plain text; markup of a format is escaped.
        points: points of the list.
        style: `notice` for text that a reader must know first; `code` keeps its line breaks.
    """

    text: str = ""
    points: Sequence[str] = ()
    style: Literal["plain", "notice", "code"] = "plain"


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: the printed text.
        sort: the number to sort by; nan stays last. The default is the number that starts the text.
        best: whether the cell is marked as best.
        published: whether the value comes from a paper.
    """

    text: str
    sort: float | None = None
    best: bool = False
    published: bool = False

    @property
    def key(self) -> float:
        """The number to sort by; nan where there is none."""
        if self.sort is not None:
            return self.sort
        number = _NUMBER.match(self.text)
        try:
            return float(number[0].replace("−", "-").strip("~,").replace(",", ""))  # type: ignore[index]
        except (TypeError, ValueError):
            return math.nan


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        heading: the text of the heading.
        is_text: whether the cells are text, not numbers.
        meaning: explanation that appears when the pointer is over the heading.
        better: which numbers are better, so that they come first when sorted.
        aside: whether a terminal omits the column, as it has less room than a page.
    """

    heading: str
    is_text: bool = False
    meaning: str = ""
    better: Literal["higher", "lower"] | None = None
    aside: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells.

    Attributes:
        columns: headings or `Column`s; the cells decide whether a column of a heading is text.
        rows: one cell per column, as text or as `Cell`.
        title: a short title.
        notes: lines below the table.
        sorted_by: heading of the column by which an HTML page sorts, better values first; other
            formats keep the order of the rows.
    """

    columns: Sequence[Column | str]
    rows: Sequence[Sequence[Cell | str]]
    title: str = ""
    notes: Sequence[str] = ()
    sorted_by: str | None = None

    @property
    def heads(self) -> list[Column]:
        """All columns as `Column`."""
        body = self.body  # computed once, as it may have hundreds of rows and columns
        return [
            column
            if isinstance(column, Column)
            else Column(column, is_text=not all(_is_number(row[number]) for row in body))
            for number, column in enumerate(self.columns)
        ]

    @property
    def body(self) -> list[list[Cell]]:
        """All cells as `Cell`."""
        return [
            [cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows
        ]


@dataclass(frozen=True)
class Figure:
    """A picture.

    Attributes:
        name: name of its files, without an extension.
        draw: function that draws the figure; None where its files exist already.
        alt: description of the figure in words.
        on_page: whether pages show the figure; its files are written in any case.
    """

    name: str
    draw: Callable[[], matplotlib.figure.Figure] | None
    alt: str
    on_page: bool = True


@dataclass(frozen=True)
class Claim:
    """A published claim beside our result.

    Attributes:
        published: the claim of the paper, with its section or figure.
        ours: our numbers for the same claim.
        verdict: whether our numbers reproduce the claim.
        because: known reason why they do not reproduce it.
    """

    published: str
    ours: str
    verdict: Verdict
    because: str = ""

    @property
    def conclusion(self) -> str:
        """The verdict, with the reason if the claim is not reproduced."""
        if self.because and self.verdict is not Verdict.REPRODUCED:
            return f"{self.verdict}: {self.because}"
        return str(self.verdict)


Block: TypeAlias = Text | Table | Figure


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        title: the title; empty for the first part of a report.
        blocks: texts, tables and figures in order.
        files: tables in full precision: the text of CSV files by file name.
        folded: whether the section holds details: folded on the HTML page, and in `details.md`.
    """

    title: str
    blocks: Sequence[Block]
    files: Mapping[str, str] = field(default_factory=dict)
    folded: bool = False


@dataclass(frozen=True)
class Report:
    """A report of the runs of one benchmark, or of one experiment of a paper.

    Attributes:
        title: the title.
        sections: the sections in order.
        facts: facts about the origin of the numbers, as `provenance.behind` returns them.
        notices: lines that a reader must know first.
        files: contents of further files beside the page, by file name.
    """

    title: str
    sections: Sequence[Section]
    facts: Facts = ()
    notices: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def claims_table(claims: Sequence[Claim]) -> Table:
    """A table of published claims beside our results, with the verdicts."""
    columns = [Column(heading, is_text=True) for heading in ("published", "ours", "verdict")]
    return Table(columns, [(c.published, c.ours, c.conclusion) for c in claims])


def number(value: float, decimals: int = 1) -> str:
    """Format a value for figures and tables, without a negative zero."""
    if math.isnan(value):
        return "–"
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0.0 else text


def size(count: float) -> str:
    """Format a number of bytes in three digits: `808 B`, `431 kB`, `32.2 MB` (1 kB = 1,000 B)."""
    if math.isnan(count):
        return "–"
    if round(count) < 1000:
        return f"{count:.0f} B"
    rounded = float(f"{count:.3g}")
    power = min(3, int(math.log10(rounded)) // 3)
    return f"{rounded / 1000**power:#.3g}".rstrip(".") + f" {'kMG'[power - 1]}B"


def signed(value: float, decimals: int) -> str:
    """Format a difference with its sign; 0 has none."""
    text = number(value, decimals)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def with_spread(mean: float, error: float, decimals: int, sign: bool = False) -> str:
    """Format a mean and its standard error: `98.73 ± 0.12`; nan is a dash, or no spread."""
    text = signed(mean, decimals) if sign else number(mean, decimals)
    return text if math.isnan(error) or math.isnan(mean) else f"{text} ± {number(error, decimals)}"


def mean_cell(mean: float, error: float = math.nan, decimals: int = 2, **marks: bool) -> Cell:
    """A cell of a mean and its standard error; `marks` are `best` and `published`."""
    return Cell(with_spread(mean, error, decimals), mean, **marks)


def _is_number(cell: Cell | str) -> bool:
    text = cell.text if isinstance(cell, Cell) else cell
    return text in ("", "–", "inf") or _NUMBER.match(text) is not None
