"""What a report is made of: texts, tables, figures and claims in sections, without a format."""

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
"""What stands behind numbers: a name, and the lines that are to be said of it."""

_NUMBER = re.compile(r"[+\-−~]?[\d.,]+")


@dataclass(frozen=True)
class Text:
    """A paragraph, and the points of a list below it.

    Attributes:
        words: plain text; what a format would take for its own is escaped.
        points: of the list.
        style: a `notice` is what a reader has to know first; `code` keeps its line breaks.
    """

    words: str = ""
    points: Sequence[str] = ()
    style: Literal["plain", "notice", "code"] = "plain"


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: as it is printed.
        sort: the number to sort by; nan stays last. By default the one that the text begins with.
        best: whether it is marked as best.
        published: whether it is from a paper, beside ours.
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
        heading: of it.
        words: whether it is of words, not of numbers.
        meaning: what it holds, for whoever points at it.
        better: which numbers are the better ones, to come first when it is sorted.
        aside: whether a terminal leaves it out, where there is less room than on a page.
    """

    heading: str
    words: bool = False
    meaning: str = ""
    better: Literal["higher", "lower"] | None = None
    aside: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells.

    Attributes:
        columns: a heading, or a `Column`; of a heading alone its cells say whether they are words.
        rows: as many cells as there are columns, as text or as `Cell`.
        title: what the table shows, in a few words.
        notes: lines to stand below it.
        sorted_by: heading of the column by which an HTML page sorts, the better ones first; other
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
        body = self.body  # once: a column for each of many tasks has as many rows
        return [
            column
            if isinstance(column, Column)
            else Column(column, words=not all(_is_number(row[place]) for row in body))
            for place, column in enumerate(self.columns)
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
        name: of its files, without an ending.
        draw: draws it; None where its files are there already.
        alt: what it shows, in words.
        on_page: whether pages show it; its files are there anyway.
    """

    name: str
    draw: Callable[[], matplotlib.figure.Figure] | None
    alt: str
    on_page: bool = True


@dataclass(frozen=True)
class Claim:
    """What is published beside what came out here.

    Attributes:
        published: what the paper says or shows, with the place.
        ours: the same in our numbers.
        verdict: of the published claim, decided by our numbers.
        because: where they do not bear it out, what is known of why.
    """

    published: str
    ours: str
    verdict: Verdict
    because: str = ""

    @property
    def conclusion(self) -> str:
        """The verdict, and what is known of why if the claim is not reproduced."""
        if self.because and self.verdict is not Verdict.REPRODUCED:
            return f"{self.verdict}: {self.because}"
        return str(self.verdict)


Block: TypeAlias = Text | Table | Figure


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        title: of it; empty for the part that begins a report.
        blocks: what it shows, in order.
        files: tables in full precision, as the text of a CSV file, by the names of the files.
        folded: whether it is for a closer look: folded on the HTML page, and in `details.md`.
    """

    title: str
    blocks: Sequence[Block]
    files: Mapping[str, str] = field(default_factory=dict)
    folded: bool = False


@dataclass(frozen=True)
class Report:
    """All that is shown of runs of one benchmark, or of one experiment of a paper.

    Attributes:
        title: of it.
        sections: in order.
        facts: what stands behind the numbers, as `provenance.behind` gives it.
        notices: lines that a reader has to know first.
        files: more of what is written beside the page, by name.
    """

    title: str
    sections: Sequence[Section]
    facts: Facts = ()
    notices: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def claims_table(claims: Sequence[Claim]) -> Table:
    """Published beside ours, with the verdict."""
    columns = [Column(heading, words=True) for heading in ("published", "ours", "verdict")]
    return Table(columns, [(c.published, c.ours, c.conclusion) for c in claims])


def number(value: float, decimals: int = 1) -> str:
    """A value as figures and tables print it, without a negative zero."""
    if math.isnan(value):
        return "–"
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0.0 else text


def size(count: float) -> str:
    """A number of bytes in three digits: `808 B`, `431 kB`, `32.2 MB`, with 1 kB = 1,000 B."""
    if math.isnan(count):
        return "–"
    if round(count) < 1000:
        return f"{count:.0f} B"
    rounded = float(f"{count:.3g}")
    power = min(3, int(math.log10(rounded)) // 3)
    return f"{rounded / 1000**power:#.3g}".rstrip(".") + f" {'kMG'[power - 1]}B"


def signed(value: float, decimals: int) -> str:
    """A number with its sign, which tells a difference from a value; 0 has none."""
    text = number(value, decimals)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def with_spread(mean: float, error: float, decimals: int, sign: bool = False) -> str:
    """A mean and its standard error as text: `98.73 ± 0.12`; nan is a dash, or no spread."""
    text = signed(mean, decimals) if sign else number(mean, decimals)
    return text if math.isnan(error) or math.isnan(mean) else f"{text} ± {number(error, decimals)}"


def mean_cell(mean: float, error: float = math.nan, decimals: int = 2, **marks: bool) -> Cell:
    """A mean and its standard error as a cell; `marks` are `best` and `published`."""
    return Cell(with_spread(mean, error, decimals), mean, **marks)


def _is_number(cell: Cell | str) -> bool:
    text = cell.text if isinstance(cell, Cell) else cell
    return text in ("", "–", "inf") or _NUMBER.match(text) is not None
