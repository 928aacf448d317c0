"""The figures of a method in the committed files of the reports, and how it was verified."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pandas as pd

from vcl_radial.metrics.seeds import mean_and_standard_error
from vcl_radial.reporting.blocks import size, with_spread
from vcl_radial.runs import catalogue

ROOT = Path(__file__).parents[2]


@cache
def _runs() -> list[tuple[str, pd.DataFrame]]:
    """The committed tables with methods, each with the folder of its report's page."""
    result = []
    for path in sorted((ROOT / "reports").rglob("*.csv*")):
        folder = next(parent for parent in path.parents if (parent / "README.md").exists())
        header = pd.read_csv(path, nrows=0).columns
        if "method" in header and "trial" not in header and folder != ROOT:
            columns = {"method", "benchmark", "average_accuracy", "forgetting", "carried_bytes"}
            rows = pd.read_csv(path, usecols=[c for c in header if c in columns])
            rows["method"] = rows["method"].astype(str).str.removeprefix("best-")
            result.append((folder.relative_to(ROOT / "reports").as_posix(), rows))
    return result


def reports_with(method: str) -> set[str]:
    """The folders of the reports with runs of a method."""
    return {page for page, rows in _runs() if page != "." and (rows["method"] == method).any()}


def results_of(method: str) -> list[list[str]]:
    """The mean scores of a method in every report that has its runs on task sequences."""
    result = []
    for page, rows in _runs():
        if not {"benchmark", "average_accuracy"} <= {*rows}:
            continue
        for benchmark, group in rows[rows["method"] == method].groupby("benchmark"):
            if group["average_accuracy"].notna().any():
                cells = [_mean(group, column) for column in ("average_accuracy", "forgetting")]
                carried = group.get("carried_bytes", pd.Series(dtype=float)).dropna()
                known = benchmark in catalogue.names("benchmark")
                shown = f"[{benchmark}](../benchmarks/{benchmark}.md)" if known else benchmark
                link = f"[{page}](../reports/{page}/README.md)"
                carried_size = size(carried.mean()) if len(carried) else "–"
                result.append([link, str(shown), str(len(group)), *cells, carried_size])
    return result


def _mean(group: pd.DataFrame, column: str) -> str:
    values = group.get(column, pd.Series(dtype=float)).dropna()
    return with_spread(*mean_and_standard_error(values), 2) if len(values) else "–"


def verification_of(method: str) -> str:
    """What the table of `baselines/README.md` says stands for a method; empty if it has no row."""
    text = (ROOT / "baselines" / "README.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        cells = line.strip("| ").split(" | ")
        names = re.findall("`([^`]+)`", cells[0]) if len(cells) == 3 else []
        if any(fnmatch(method, name) for name in names):
            return f"{cells[2][:1].upper()}{cells[2][1:]}."
    return ""
