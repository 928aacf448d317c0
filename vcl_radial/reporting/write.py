"""Write the report of a folder of runs: tables, pictures, one page, and provenance."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from vcl_radial.errors import DataError, UserError, visible
from vcl_radial.reporting import evidence, manifest, provenance
from vcl_radial.reporting.blocks import Report
from vcl_radial.reporting.gather import gather, notices
from vcl_radial.reporting.html import MARK
from vcl_radial.reporting.labels import file_name, unused
from vcl_radial.runs.folder import check_page
from vcl_radial.runs.track import FinishedRun

if TYPE_CHECKING:
    from vcl_radial.reporting.html import Drawn


MAIN_METHODS = ("radial-vcl", "gaussian-vcl")
"""Methods that a report shows first by default."""


def prepare() -> None:
    """Import the modules of a report and find fonts, while this process waits for workers.

    The first picture of a process takes twice as long as the next one, so an empty one is drawn.
    """
    import pandas as pd  # noqa: F401

    from vcl_radial.reporting import figures, html

    html.html_page([], title="")
    with TemporaryDirectory() as folder:
        figures.save(figures.empty(), Path(folder, "empty"))


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
    """Write the report of each benchmark below a folder; print its table and its path.

    Runs that cannot be shown are reported on stderr and on the page; the others are shown.

    Args:
        folder: the folder of all runs, as given to `--out`.
        to: the folder of the reports; it gets a folder per benchmark and one HTML page,
            `index.html`, or `<benchmark>.html` for a single benchmark.
        benchmark: the benchmark to report; None for all.
        first: methods to show first, in this order; the others follow by name.
        command: the command line that makes the page.
        data_dir: the folder of the data, for tracks that show examples.
        with_evidence: whether the runs are stored beside each report, where this command can read
            them.
        named: methods to show first instead of `first`; each must have runs.
        failures: folders of runs that stderr has named before; only the page names them again.

    Returns:
        The folders of finished runs whose benchmark could not be shown.

    Raises:
        UserError: there is nothing to show, no run of a named method, or a file cannot be written.
    """
    page = to / ("index.html" if benchmark is None else f"{file_name(benchmark)}.html")
    check_page(page, [manifest.OF_ALL], MARK)
    runs, passed_over = gather(folder if benchmark is None else folder / benchmark)
    from vcl_radial import __version__
    from vcl_radial.reporting.files import write_files, write_page

    for line in passed_over:
        if any(line.startswith(f"{path}: ") for path in failures):
            continue
        print(f"passed over: {visible(line)}", file=sys.stderr)
    known = sorted({run.spec.method for run in runs})
    for method in named:
        if method not in known:
            raise UserError(f"--first {method}: {folder} has runs of {', '.join(known)}")
    drawn: list[Drawn] = []
    stems: set[str] = set()
    missing: set[Path] = set()
    for name in sorted({run.benchmark for run in runs}):
        chosen = [run for run in runs if run.benchmark == name]
        chosen.sort(key=lambda run: _rank(run.spec.method, named or first))
        if with_evidence:  # so that the report and one made from its evidence are equal
            chosen = [evidence.rounded(run) for run in chosen]
        stem = unused(file_name(name), stems)
        stems.add(stem)
        try:
            report = report_of(chosen, data_dir)
            for line in notices(chosen):
                print(f"{name}: {line}", file=sys.stderr)
            spec_benchmark = chosen[0].spec.benchmark
            drawn.append(write_files(report, to / stem, benchmark=spec_benchmark, runs=folder))
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
        raise UserError("holds no finished run that can be shown", folder)
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
        DataError: the tables contradict each other.
    """
    environments = [run.environment for run in runs]
    return Report(
        runs[0].benchmark,
        runs[0].track.sections(runs, data_dir),
        provenance.behind(
            environments,
            seeds=[run.spec.seed for run in runs],
            evaluated_on=[run.spec.evaluate_on for run in runs],
            more=provenance.different_recipes(runs),
        ),
        # Notices name licences and synthetic data.
        list(
            dict.fromkeys(
                [*notices(runs), *(n for e in environments for n in e.get("notices", []))]
            )
        ),
        {provenance.FILE: provenance.origin_csv(runs)},
    )


def _rank(method: str, first: Sequence[str]) -> int:
    return first.index(method) if method in first else len(first)
