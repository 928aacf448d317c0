"""The report of a folder of runs: tables, pictures, one page, and where the numbers came from."""

from __future__ import annotations

import hashlib
import re
import sys
import warnings
from collections.abc import Callable, Container, Sequence
from functools import partial
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import tomli_w

from vcl_radial.errors import DataError, UserError
from vcl_radial.report import manifest
from vcl_radial.report.provenance import behind
from vcl_radial.report.results import (
    FinishedRun,
    gather,
    layers_table,
    notices,
    results_table,
    runs_costs,
)
from vcl_radial.report.sections import Facts
from vcl_radial.runs.folder import not_written, write_atomically

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from vcl_radial.report.page import Section


def prepare() -> None:
    """Import what a report needs, and look for fonts, while there is something to wait for.

    The first picture of a process takes twice as long as the next one: one is drawn of nothing.
    """
    import pandas as pd

    from vcl_radial.report import (
        figures,
        page,  # noqa: F401
    )

    keys = ["benchmark", "method", "seed", "task_trained", "task_evaluated", "metric", "value"]
    rows = [("", "", 0, i, j, "accuracy", 50.0) for i in range(3) for j in (1, 2)]
    picture = figures.heatmap(pd.DataFrame(rows, columns=keys), "", tasks=["1", "2"])
    with TemporaryDirectory() as folder:
        figures.save(picture, Path(folder, "nothing"))


def write_report(
    folder: Path,
    to: Path,
    benchmark: str | None = None,
    first: Sequence[str] = (),
    command: str | None = None,
) -> set[Path]:
    """Write the report of each benchmark below a folder, print its table and where it lies.

    What cannot be shown is named on stderr and on the page, and the rest goes on.

    Args:
        folder: what was given to `--out`.
        to: where to write; each benchmark gets a folder of its own in it, and all of them one
            HTML page, `index.html`, or `<benchmark>.html` where only one was asked for.
        benchmark: only this one; None for all.
        first: methods to show first, in this order; the others follow by name.
        command: what made the page, in words.

    Returns:
        The folders of finished runs that are not shown, as their benchmark could not be.

    Raises:
        UserError: there is nothing to show, or a file cannot be written.
    """
    runs, passed_over = gather(folder if benchmark is None else folder / benchmark)
    for words in passed_over:
        print(f"passed over: {words}", file=sys.stderr)
    sections: list[Section] = []
    stems: set[str] = set()
    missing: set[Path] = set()
    for name in sorted({run.benchmark for run in runs}):
        chosen = [run for run in runs if run.benchmark == name]
        chosen.sort(key=lambda run: _place(run.spec.method, first))
        stem = _unused(_file_name(name), stems)
        stems.add(stem)
        try:
            sections.append(_write_section(chosen, to / stem, folder))
        except DataError as error:
            passed_over.append(f"{name}: {error}")
            print(f"passed over: {passed_over[-1]}", file=sys.stderr)
            missing |= {run.path for run in chosen}
    manifest.remove_stale(to, {run.spec.benchmark for run in runs}, folder, stems)
    if not sections:
        raise UserError(f"{folder}: holds no finished run that can be shown")
    page = to / ("index.html" if benchmark is None else f"{_file_name(benchmark)}.html")
    _write_page(page, sections, passed_over, folder, command)
    return missing


def _write_section(runs: list[FinishedRun], place: Path, folder: Path) -> Section:
    """Write the files of one benchmark, and give what the page shows of it.

    Raises:
        DataError: its tables do not fit together.
        UserError: a file cannot be written.
    """
    from vcl_radial.report import figures
    from vcl_radial.report.page import Detail, Section

    name, tasks = runs[0].benchmark, runs[0].environment.tasks
    multi_head, facts, lines = runs[0].multi_head, _facts(runs), notices(runs)
    results, costs, layers = results_table(runs), runs_costs(runs), layers_table(runs)
    table = figures.summary_table(results, multi_head=multi_head)
    for line in lines:
        print(f"{name}: {line}", file=sys.stderr)
    section = Section(
        results=results,
        costs=costs,
        tasks=tasks,
        details={
            method: Detail(_spec(of_method[0]), {r.spec.seed: _path(r, folder) for r in of_method})
            for method in figures.method_names(results)
            if (of_method := [run for run in runs if run.method == method])
        },
        facts=facts,
        notices=lines,
        multi_head=multi_head,
        layers=layers,
    )
    shown = _shown(results, layers, tasks)
    standing = manifest.drawn_from(place, shown)  # asked before the files are written anew
    files = figures.report_files(results, costs, tasks, facts, multi_head=multi_head)
    if layers is not None:
        files["layers.csv"] = figures.to_csv(layers)
    for file, content in files.items():
        write_atomically(place / file, content)
    print(f"\n{name}\n{figures.to_text(table)}")
    others = [file for file in files if file != "summary.md"]
    written = [*files]
    with warnings.catch_warnings():
        # A name in letters that the font does not have is drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        for stem, draw in _pictures(results, layers, tasks).items():
            paths = [place / f"{stem}{ending}" for ending in figures.ENDINGS]
            if not {path.name for path in paths} <= standing:
                paths = _save(draw(), place / stem)
            names = [path.name for path in paths]
            written += names
            if stem in ("accuracy-over-tasks", "layers"):
                others += names
            else:
                print(f"  {paths[0]}  (and .{paths[1].suffix[1:]})")
    print(f"  {place / 'summary.md'}, {', '.join(others)}")
    manifest.write(place, runs[0].spec.benchmark, folder, written, shown)
    return section


def _shown(results: pd.DataFrame, layers: pd.DataFrame | None, tasks: Sequence[str]) -> str:
    """A checksum of what pictures show and of what draws them."""
    from matplotlib import __version__

    from vcl_radial.report import figures

    content = hashlib.sha256(repr((__version__, list(tasks))).encode())
    for table in (results, layers):
        content.update(b"" if table is None else table.to_csv(index=False).encode())
    for path in sorted(Path(figures.__file__).parent.rglob("*.py")):
        content.update(path.read_bytes())
    return content.hexdigest()


def _pictures(
    results: pd.DataFrame, layers: pd.DataFrame | None, tasks: Sequence[str]
) -> dict[str, Callable[[], Figure]]:
    """The pictures of one benchmark by the stems of their files, each as a function that draws."""
    from vcl_radial.report import figures

    methods = figures.method_names(results)
    pictures: dict[str, Callable[[], Figure]] = {
        "final-model": lambda: figures.final_bars(results, tasks=tasks)
    }
    for method in methods:
        stem = _unused(f"heatmap-{_file_name(method)}", pictures)
        pictures[stem] = partial(figures.heatmap, results, method, tasks=tasks)
    if len(methods) > 1:
        pictures["heatmaps"] = lambda: figures.heatmap_sheet(results, tasks=tasks)
    if len(tasks) > 1:
        pictures["accuracy-over-tasks"] = lambda: figures.accuracy_curves(results)
    if layers is not None:
        pictures["layers"] = partial(figures.layer_movement, layers)
    return pictures


def _save(picture: Figure, stem: Path) -> list[Path]:
    from vcl_radial.report import figures

    try:
        return figures.save(picture, stem)
    except OSError as error:
        raise not_written(stem, error) from None


def _write_page(
    path: Path,
    sections: Sequence[Section],
    passed_over: Sequence[str],
    folder: Path,
    command: str | None,
) -> None:
    from vcl_radial import __version__
    from vcl_radial.report.page import html_page

    facts = [("folder", [str(folder)]), ("made by", [f"vcl-radial {__version__}"])]
    if command is not None:
        facts.insert(0, ("command", [command]))
    title = f"Results in {folder.resolve().name or folder}"
    if len(sections) == 1:
        title = str(sections[0].results["benchmark"].iloc[0])
    page = html_page(sections, title=title, facts=facts, passed_over=passed_over)
    write_atomically(path, page)
    print(f"\nall of it on one page: {path}")


def _facts(runs: Sequence[FinishedRun]) -> Facts:
    return behind(
        [run.environment.model_dump() for run in runs],
        seeds=[run.spec.seed for run in runs],
        evaluated_on=[run.spec.evaluate_on for run in runs],
    )


def _spec(run: FinishedRun) -> str:
    """The resolved spec of a method's runs, but for the seed."""
    return tomli_w.dumps(run.spec.model_dump(exclude={"seed"}, exclude_none=True))


def _path(run: FinishedRun, folder: Path) -> str:
    return str(run.path.relative_to(folder))


def _place(method: str, first: Sequence[str]) -> int:
    return first.index(method) if method in first else len(first)


def _file_name(name: str) -> str:
    """A name with its settings, as a file name: `radial-vcl_epochs=5_hidden=8-8`."""
    words = re.sub(r"[][(){}'\"]", " ", name).replace(": ", "=")
    words = re.sub(r"(?<=\d), (?=\d)", "-", words).replace("= ", "=")
    stem = re.sub(r"[^\w.=-]+", "_", words).strip("_").lstrip(".")
    # A file system counts bytes; some room is left for what is put before and after.
    return stem.encode()[:80].decode(errors="ignore") or "unnamed"


def _unused(stem: str, used: Container[str]) -> str:
    """The stem, or with a number where names differ only by what a file name cannot hold."""
    return next(s for s in chain([stem], (f"{stem}-{n}" for n in count(2))) if s not in used)
