"""Tables and figures of finished runs: the results of `run` and `load_results` in Python."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from vcl_radial.data.data_files import checked_folder
from vcl_radial.errors import UserError, nearest
from vcl_radial.reporting.blocks import Figure, Section, Table
from vcl_radial.reporting.figures.tables import seed_table, summary_table
from vcl_radial.reporting.gather import gather
from vcl_radial.reporting.html import table_html
from vcl_radial.reporting.labels import file_name
from vcl_radial.reporting.latex import latex
from vcl_radial.reporting.markdown import aligned
from vcl_radial.reporting.scores import (
    IDENTITY,
    at_the_end,
    is_sequence,
    means,
    runs_table,
    scores_table,
    without_avalanche,
)
from vcl_radial.runs.folder import DIVERGED, FAILED, failure
from vcl_radial.runs.track import FinishedRun

if TYPE_CHECKING:
    import matplotlib.figure

FAILURES = ("benchmark", "method", "seed", "outcome", "reason")
"""The columns of `Results.failures`."""


class Results:
    """Finished runs, of one benchmark or of several.

    Args:
        runs: finished runs; the runs of a benchmark are in the order in which its methods are
            shown.
        failures: a row of `FAILURES` per run without a result.
        data_dir: the folder of the data, for figures that show examples.
    """

    def __init__(
        self,
        runs: Sequence[FinishedRun],
        failures: Sequence[tuple[str, str, int, str, str]] = (),
        data_dir: Path | None = None,
    ) -> None:
        self._runs, self._failures, self._data_dir = list(runs), list(failures), data_dir

    @property
    def benchmarks(self) -> list[str]:
        """The names of the benchmarks."""
        return list(dict.fromkeys(run.benchmark for run in self._runs))

    @property
    def methods(self) -> list[str]:
        """The names of the methods."""
        return list(dict.fromkeys(run.method for run in self._runs))

    def of(self, benchmark: str) -> Results:
        """The results of one benchmark.

        Raises:
            UserError: there are no results of this benchmark.
        """
        if benchmark not in self.benchmarks:
            raise UserError(_unknown("benchmark", benchmark, self.benchmarks))
        failures = [row for row in self._failures if row[0] == benchmark]
        runs = [run for run in self._runs if run.benchmark == benchmark]
        return Results(runs, failures, self._data_dir)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Every score of every run, one per row.

        The columns are the same for all tracks: `run, benchmark, method, seed, after, task, part,
        metric, value`; see `vcl_radial.reporting.scores.COLUMNS`. Further columns follow where they
        identify a score of photographs (`uncertainty`, `referred`).
        """
        return scores_table(self._runs)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs by their number in `table`: method, seed, data, folder and costs."""
        return runs_table(self._runs)

    @property
    def failures(self) -> pd.DataFrame:
        """The runs that have no result, with outcome, such as "diverged", and reason."""
        return pd.DataFrame(self._failures, columns=list(FAILURES))

    def summary(self) -> pd.DataFrame:
        """Mean and standard error over seeds of the scores at the end of training.

        Task sequences have one row per method, with average accuracy, forgetting and other scores
        (`vcl_radial.metrics.summary`), each beside its standard error `<score>_se`. Other tracks
        have one row per method and score, with the columns `seeds, mean, standard_error`.
        """
        tables = []
        for _, scores in without_avalanche(self.table).groupby("benchmark", sort=False):
            if is_sequence(scores):
                tables.append(summary_table(seed_table(scores, self.runs)))
            else:
                last = at_the_end(scores).join(self.runs["data"], on="run")
                tables.append(means(last, ["benchmark", "data", *IDENTITY]))
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()

    def heatmap(self, method: str) -> matplotlib.figure.Figure:
        """Draw the score of a method on every task after every task, in per cent.

        Raises:
            UserError: there are no runs of the method, the benchmark has no sequence of tasks, or
                there are several benchmarks.
        """
        if method not in self.methods:
            raise UserError(_unknown("method", method, self.methods))
        return self.figure(f"heatmap-{file_name(method)}")

    def curves(self) -> matplotlib.figure.Figure:
        """Draw the score of every method over the tasks, sites, slices or rounds.

        Raises:
            UserError: runs have only one task, site, slice or round, or there are several
                benchmarks.
        """
        self._one_benchmark()
        return self.figure(self._runs[0].track.curves)

    @property
    def figures(self) -> list[str]:
        """The names of all figures of the report."""
        return list(self._figures)

    def figure(self, name: str) -> matplotlib.figure.Figure:
        """Draw a figure of the report by its name.

        Raises:
            UserError: there is no figure of this name; the message lists all names.
        """
        figure = self._figures.get(name)
        if figure is None or figure.draw is None:
            known = ", ".join(self._figures) or "none"
            raise UserError(f"{self._one_benchmark()} has no figure {name!r}; there are: {known}")
        _show_in_notebooks()
        return figure.draw()

    def to_latex(self) -> str:
        r"""The leaderboard as a LaTeX `tabular`, for `\usepackage{booktabs}`."""
        return "\n".join(map(latex, self._leaderboards()))

    def __repr__(self) -> str:
        lines = [f"Results of {len(self._runs)} runs" + self._failures_text()]
        return "\n".join([*lines, *map(aligned, self._leaderboards())]).rstrip("\n")

    def _repr_html_(self) -> str:
        text = f"<p>{len(self._runs)} runs{self._failures_text()}</p>"
        return text + "".join(map(table_html, self._leaderboards()))

    def _failures_text(self) -> str:
        return f"; {len(self._failures)} without a result: see .failures" if self._failures else ""

    def _by_benchmark(self) -> Iterator[tuple[str, list[FinishedRun]]]:
        for name in self.benchmarks:
            yield name, [run for run in self._runs if run.benchmark == name]

    @cached_property
    def _sections(self) -> dict[str, list[Section]]:
        """The sections of the report of each benchmark."""
        return {
            name: runs[0].track.sections(runs, self._data_dir)
            for name, runs in self._by_benchmark()
        }

    def _leaderboards(self) -> Iterator[Table]:
        """The first table of the report of each benchmark."""
        for sections in self._sections.values():
            blocks = (block for section in sections for block in section.blocks)
            yield from [block for block in blocks if isinstance(block, Table)][:1]

    @cached_property
    def _figures(self) -> Mapping[str, Figure]:
        blocks = [block for s in self._sections[self._one_benchmark()] for block in s.blocks]
        return {block.name: block for block in blocks if isinstance(block, Figure)}

    def _one_benchmark(self) -> str:
        names = self.benchmarks
        if len(names) != 1:
            fault = f"of {', '.join(names)}; choose one with .of(NAME)" if names else "of no run"
            raise UserError(f"these results are {fault}")
        return names[0]


def load_results(folder: str | Path, data_dir: str | Path | None = None) -> Results:
    """Load all finished runs below a folder, such as the folder of `--out`.

    A folder of reports/ with the evidence of a page can be loaded too. A run that is damaged or not
    finished is passed over with a warning.

    Args:
        folder: the folder of all runs, or of one benchmark.
        data_dir: the folder of the data, for figures that show examples.

    Raises:
        UserError: the folder is missing, or holds no finished run.
    """
    folder = Path(folder)
    runs, passed_over = gather(folder)
    failed = [path.parent for path in sorted(folder.rglob(FAILED))]
    for line in passed_over:
        if not line.startswith(tuple(f"{path}:" for path in failed)):
            warnings.warn(f"passed over: {line}", stacklevel=2)
    failures = [_failure(path) for path in failed]
    return Results(runs, failures, checked_folder(data_dir))


def _failure(path: Path) -> tuple[str, str, int, str, str]:
    """A row of `FAILURES`, from the folder of a run that failed."""
    outcome = "diverged" if (path / DIVERGED).exists() else "failed"
    seed = path.name.split("-")[1]
    return path.parts[-3], path.parts[-2], int(seed), outcome, failure(path) or ""


def _show_in_notebooks() -> None:
    """Let a notebook show figures as pictures, as it does after pyplot is imported."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return
    from IPython.core.pylabtools import select_figure_formats
    from matplotlib.figure import Figure as Picture

    formatters = shell.display_formatter.formatters.values()
    if not any(Picture in formatter.type_printers for formatter in formatters):
        select_figure_formats(shell, {"png"})


def _unknown(kind: str, name: str, known: Sequence[str]) -> str:
    if not known:
        return f"unknown {kind} {name!r}: there are no results"
    return f"unknown {kind} {name!r}; the nearest is {nearest(name, known)!r}"
