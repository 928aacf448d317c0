"""The files of a report: CSV tables, pictures, Markdown; and what of it the HTML page shows."""

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


def write_files(report: Report, place: Path, *, benchmark: str, runs: Path) -> Drawn:
    """Write the tables, pictures and Markdown of a report, print its first table and their paths.

    Its page is `summary.md`; folded sections are in `details.md`.
    Pictures that show just this, and that are as they were written, are not drawn again; files of
    an earlier report of the folder that are none of this one's are removed.

    Args:
        report: what to write.
        place: its folder.
        benchmark: of which runs it is.
        runs: the folder that was given to `--out`.

    Raises:
        DataError: what a figure is drawn from does not fit together.
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
    standing = manifest.drawn_from(place, checksum)  # asked before the files are written anew
    for name, text in texts.items():
        write_atomically(place / name, visible_lines(text))
    tables = [block for block in blocks if isinstance(block, Table)]
    words = [report.title, *(table.title for table in tables[:1] if table.title)]
    print("\n" + ": ".join(words))
    if tables:
        print(markdown.aligned(tables[0]))
    pictures = {figure.name: draw(figure, place, standing) for figure in shown}
    paths = ", ".join([str(place / "summary.md"), *(n for n in texts if n != "summary.md")])
    print("\n".join([*(f"  {place / name}.png  (and .svg)" for name in pictures), f"  {paths}"]))
    drawn = [f"{name}{ending}" for name in pictures for ending in figures.ENDINGS]
    manifest.write(place, benchmark, runs, [*texts, *drawn], checksum)
    return Drawn(report, pictures)


def draw(figure: Figure, place: Path, standing: set[str]) -> bytes:
    """Write a figure as PNG and SVG, unless its files are among those that stand; its SVG.

    Raises:
        UserError: a file cannot be written.
    """
    paths = [place / f"{figure.name}{ending}" for ending in figures.ENDINGS]
    try:
        if figure.draw is not None and not {path.name for path in paths} <= standing:
            with warnings.catch_warnings():
                # A name in letters that the font does not have is drawn as boxes.
                warnings.filterwarnings("ignore", message="Glyph .* missing from")
                figures.save(figure.draw(), place / figure.name)
        return (place / f"{figure.name}.svg").read_bytes()
    except OSError as error:
        raise not_written(place / figure.name, error) from None


def write_page(
    path: Path, reports: Sequence[Drawn], *, title: str, facts: Facts, passed_over: Sequence[str]
) -> None:
    """Write reports as one HTML page, and say where it lies.

    Raises:
        UserError: it cannot be written.
    """
    page = html_page(reports, title=title, facts=facts, passed_over=passed_over)
    write_atomically(path, visible_lines(page))
    print(f"\nall of it on one page: {path}")


def _checksum(report: Report, shown: Sequence[Figure]) -> str:
    """A checksum of what pictures show and of what draws them."""
    from matplotlib import __version__

    content = hashlib.sha256(f"{__version__} {report.title}".encode())
    for section in report.sections:
        content.update(f"{section.title} {sorted(section.files.items())}".encode())
    for details in (False, True):
        sections = Report(report.title, report.sections)  # facts are in no picture
        content.update(markdown.page(sections, folded=details).encode())
    sources = {Path(inspect.getfile(_plain(f.draw))) for f in shown if f.draw}
    for path in sorted({*sources, *Path(figures.__file__).parent.glob("*.py")}):
        content.update(path.read_bytes())
    return content.hexdigest()


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a partial calls."""
    return _plain(function.func) if hasattr(function, "func") else function
