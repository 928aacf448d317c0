"""Write the files of a report: CSV tables, pictures, Markdown and the HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size

from vcl_radial.errors import visible_lines
from vcl_radial.files.atomic import not_written
from vcl_radial.reporting import figures, manifest, markdown
from vcl_radial.reporting.blocks import Facts, Figure, Report, Table
from vcl_radial.reporting.html import Drawn, html_page
from vcl_radial.runs.folder import write_atomically

_WIDTH = 80
"""Characters of a line where the output is no wider terminal."""


def write_files(report: Report, folder: Path, *, benchmark: str, runs: Path) -> Drawn:
    """Write the tables, pictures and Markdown of a report; print its first table and the paths.

    The page is `summary.md`; folded sections are in `details.md`. Files of an earlier report that
    this one does not have are removed.

    Args:
        report: the report.
        folder: the folder of the report.
        benchmark: the benchmark of the runs.
        runs: the folder of all runs, as given to `--out`.

    Raises:
        DataError: the data of a figure contradict each other.
        UserError: a file cannot be written.
    """
    texts = {name: text for section in report.sections for name, text in section.files.items()}
    texts |= report.files
    texts["summary.md"] = markdown.page(report)
    if any(section.folded for section in report.sections):
        texts["details.md"] = markdown.page(report, folded=True)
    blocks = [block for section in report.sections for block in section.blocks]
    shown = [block for block in blocks if isinstance(block, Figure)]
    for name, text in texts.items():
        write_atomically(folder / name, visible_lines(text))
    tables = [block for block in blocks if isinstance(block, Table)]
    titles = [report.title, *(table.title for table in tables[:1] if table.title)]
    print("\n" + ": ".join(titles))
    if tables:
        width = max(_WIDTH, get_terminal_size((_WIDTH, 24)).columns)
        print(markdown.aligned(tables[0], width))
    pictures = {figure.name: draw(figure, folder) for figure in shown}
    paths = ", ".join([str(folder / "summary.md"), *(n for n in texts if n != "summary.md")])
    print("\n".join([*(f"  {folder / name}.png  (and .svg)" for name in pictures), f"  {paths}"]))
    drawn = [f"{name}{ending}" for name in pictures for ending in figures.ENDINGS]
    manifest.write(folder, benchmark, runs, [*texts, *drawn])
    return Drawn(report, pictures)


def draw(figure: Figure, folder: Path) -> bytes:
    """Write a figure as PNG and SVG; return its SVG.

    Raises:
        UserError: a file cannot be written.
    """
    try:
        if figure.draw is not None:
            figures.save(figure.draw(), folder / figure.name)
        return (folder / f"{figure.name}.svg").read_bytes()
    except OSError as error:
        raise not_written(folder / figure.name, error) from None


def write_page(
    path: Path, reports: Sequence[Drawn], *, title: str, facts: Facts, passed_over: Sequence[str]
) -> None:
    """Write reports as one HTML page, and print its path.

    Raises:
        UserError: the page cannot be written.
    """
    page = html_page(reports, title=title, facts=facts, passed_over=passed_over)
    write_atomically(path, visible_lines(page))
    print(f"\nall of it on one page: {path}")
