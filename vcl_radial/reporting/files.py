"""Write the files of a report: CSV tables, pictures, Markdown and the HTML page."""

from __future__ import annotations

import hashlib
import inspect
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from vcl_radial.errors import visible_lines
from vcl_radial.reporting import figures, manifest, markdown
from vcl_radial.reporting.html import Drawn, html_page
from vcl_radial.runs.folder import not_written, write_atomically
from vcl_radial.runs.sections import Facts, Figure, Report, Table


def write_files(report: Report, folder: Path, *, benchmark: str, runs: Path) -> Drawn:
    """Write the tables, pictures and Markdown of a report; print its first table and the paths.

    The page is `summary.md`; folded sections are in `details.md`. Unchanged pictures of the same
    content are not drawn again. Files of an earlier report that this one does not have are removed.

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
    checksum = _checksum(report, shown)
    unchanged = manifest.drawn_from(folder, checksum)  # read before the files are replaced
    for name, text in texts.items():
        write_atomically(folder / name, visible_lines(text))
    tables = [block for block in blocks if isinstance(block, Table)]
    titles = [report.title, *(table.title for table in tables[:1] if table.title)]
    print("\n" + ": ".join(titles))
    if tables:
        print(markdown.aligned(tables[0]))
    pictures = {figure.name: draw(figure, folder, unchanged) for figure in shown}
    paths = ", ".join([str(folder / "summary.md"), *(n for n in texts if n != "summary.md")])
    print("\n".join([*(f"  {folder / name}.png  (and .svg)" for name in pictures), f"  {paths}"]))
    drawn = [f"{name}{ending}" for name in pictures for ending in figures.ENDINGS]
    manifest.write(folder, benchmark, runs, [*texts, *drawn], checksum)
    return Drawn(report, pictures)


def draw(figure: Figure, folder: Path, unchanged: set[str]) -> bytes:
    """Write a figure as PNG and SVG, unless its files are unchanged; return its SVG.

    Raises:
        UserError: a file cannot be written.
    """
    paths = [folder / f"{figure.name}{ending}" for ending in figures.ENDINGS]
    try:
        if figure.draw is not None and not {path.name for path in paths} <= unchanged:
            with warnings.catch_warnings():
                # Letters that the font does not have are drawn as boxes.
                warnings.filterwarnings("ignore", message="Glyph .* missing from")
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


def _checksum(report: Report, shown: Sequence[Figure]) -> str:
    """A checksum of the content of pictures and of the code that draws them."""
    from matplotlib import __version__

    content = hashlib.sha256(f"{__version__} {report.title}".encode())
    for section in report.sections:
        content.update(f"{section.title} {sorted(section.files.items())}".encode())
    for details in (False, True):
        sections = Report(report.title, report.sections)  # pictures do not show facts
        content.update(markdown.page(sections, folded=details).encode())
    sources = {Path(inspect.getfile(_plain(f.draw))) for f in shown if f.draw}
    for path in sorted({*sources, *Path(figures.__file__).parent.glob("*.py")}):
        content.update(path.read_bytes())
    return content.hexdigest()


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a partial calls."""
    return _plain(function.func) if hasattr(function, "func") else function
