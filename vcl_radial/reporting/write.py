"""The report of a folder of runs: tables, pictures, one page, and where the numbers came from."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from vcl_radial.errors import DataError, UserError, visible
from vcl_radial.reporting import evidence, manifest, provenance
from vcl_radial.reporting.gather import gather, notices
from vcl_radial.reporting.html import MARK
from vcl_radial.reporting.labels import file_name, unused
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.finished import FinishedRun
from vcl_radial.runs.folder import RunFolder, check_page
from vcl_radial.runs.sections import Report
from vcl_radial.runs.spec import RunSpec

if TYPE_CHECKING:
    from vcl_radial.reporting.html import Drawn


MAIN_METHODS = ("radial-vcl", "gaussian-vcl")
"""What a report shows first where nobody says which."""


def prepare() -> None:
    """Import what a report needs, and look for fonts, while there is something to wait for.

    The first picture of a process takes twice as long as the next one: one is drawn of nothing.
    """
    import pandas as pd  # noqa: F401

    from vcl_radial.reporting import figures, html

    html.html_page([], title="")
    with TemporaryDirectory() as folder:
        figures.save(figures.empty(), Path(folder, "nothing"))


def report_of_command(
    runs: Sequence[RunSpec], place: RunContext, failed: Sequence[RunSpec] = ()
) -> bool:
    """Write the report of the benchmark of a command's runs, their methods first and in order.

    Args:
        runs: of the command.
        place: where they were carried out.
        failed: those of them that the command has named with their reason.

    Returns:
        Whether it shows all of them that are finished.

    Raises:
        UserError: as `write_report`.
    """
    order = list(dict.fromkeys(run.method for run in runs))
    to = place.out / "report"
    missing = write_report(
        place.out,
        to,
        runs[0].benchmark,
        order,
        data_dir=place.data_dir,
        failures={RunFolder(place.out, run).path for run in failed},
    )
    return not any(RunFolder(place.out, run).path in missing for run in runs)


def write_report(
    folder: Path,
    to: Path,
    benchmark: str | None = None,
    first: Sequence[str] = (),
    command: str | None = None,
    data_dir: Path | None = None,
    with_evidence: bool = False,
    named: Sequence[str] = (),
    failures: Collection[Path] = (),
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
        data_dir: where the data lie, for tracks that show some of them.
        with_evidence: whether the runs are written beside each report, for this command to read.
        named: methods to show first in place of `first`, all of which have to be there.
        failures: folders of runs that stderr has named before; the page alone names them again.

    Returns:
        The folders of finished runs that are not shown, as their benchmark could not be.

    Raises:
        UserError: there is nothing to show, no run of a named method, or a file cannot be written.
    """
    page = to / ("index.html" if benchmark is None else f"{file_name(benchmark)}.html")
    check_page(page, [manifest.OF_ALL], MARK)
    runs, passed_over = gather(folder if benchmark is None else folder / benchmark)
    from vcl_radial import __version__
    from vcl_radial.reporting.files import write_files, write_page

    for words in passed_over:
        if any(words.startswith(f"{path}: ") for path in failures):
            continue
        print(f"passed over: {visible(words)}", file=sys.stderr)
    there = sorted({run.spec.method for run in runs})
    for method in named:
        if method not in there:
            raise UserError(f"--first {method}: {folder} has runs of {', '.join(there)}")
    drawn: list[Drawn] = []
    stems: set[str] = set()
    missing: set[Path] = set()
    for name in sorted({run.benchmark for run in runs}):
        chosen = [run for run in runs if run.benchmark == name]
        chosen.sort(key=lambda run: _place(run.spec.method, named or first))
        if with_evidence:  # a report and what is made of its evidence say the same
            chosen = [evidence.rounded(run) for run in chosen]
        stem = unused(file_name(name), stems)
        stems.add(stem)
        try:
            report = report_of(chosen, data_dir)
            for line in notices(chosen):
                print(f"{name}: {line}", file=sys.stderr)
            of_runs = chosen[0].spec.benchmark
            drawn.append(write_files(report, to / stem, benchmark=of_runs, runs=folder))
            if with_evidence:
                more = chosen[0].track.evidence(chosen)
                print(f"  {', '.join(evidence.write(chosen, to / stem, more))}")
            for line in report.notices[len(notices(chosen)) :]:
                print(f"  {line}")
        except DataError as error:
            passed_over.append(f"{name}: {error}")
            print(f"passed over: {visible(passed_over[-1])}", file=sys.stderr)
            missing |= {run.path for run in chosen}
    manifest.remove_stale(to, {run.spec.benchmark for run in runs}, folder, stems)
    if not drawn:
        raise UserError(f"{folder}: holds no finished run that can be shown")
    title = f"Results in {folder.resolve().name or folder}"
    facts = [("folder", [str(folder)]), ("made by", [f"vcl-radial {__version__}"])]
    write_page(
        page,
        drawn,
        title=drawn[0].report.title if len(drawn) == 1 else title,
        facts=facts if command is None else [("command", [command]), *facts],
        passed_over=passed_over,
    )
    return missing


def report_of(runs: Sequence[FinishedRun], data_dir: Path | None = None) -> Report:
    """The report of the runs of one benchmark.

    Raises:
        DataError: their tables do not fit together.
    """
    environments = [run.environment for run in runs]
    return Report(
        runs[0].benchmark,
        runs[0].track.sections(runs, data_dir),
        provenance.behind(
            environments,
            seeds=[run.spec.seed for run in runs],
            evaluated_on=[run.spec.evaluate_on for run in runs],
        ),
        # Licences, and what is synthetic.
        list(
            dict.fromkeys(
                [*notices(runs), *(n for e in environments for n in e.get("notices", []))]
            )
        ),
        {provenance.FILE: provenance.of_runs(runs)},
    )


def _place(method: str, first: Sequence[str]) -> int:
    return first.index(method) if method in first else len(first)
