"""Pages of made-up results for the tests."""

from __future__ import annotations

import pandas as pd

from vcl_radial.report.page import Detail, Section, html_page


def section_of(results: pd.DataFrame, **changed) -> Section:
    """A section whose runs took 10, 20, 30 ... seconds, in the order of the methods."""
    methods = list(results["method"].unique())
    runs = results[["benchmark", "method", "seed"]].drop_duplicates()
    seconds = 10.0 * (1.0 + runs["method"].map(methods.index))
    costs = runs.assign(training_seconds=seconds, evaluation_seconds=1.0, parameters=1234.0)
    tasks = [f"task-{j}" for j in range(1, results["task_evaluated"].max() + 1)]
    details = {m: Detail(f"method = {m!r}\nepochs = 3\n", {0: f"runs/{m}/0"}) for m in methods}
    facts = [("commit", ["0123456789ab"]), ("command", ["vcl-radial run <benchmark>"])]
    return Section(
        **{"results": results, "costs": costs, "tasks": tasks, "details": details, "facts": facts}
        | changed
    )


def page_of(*tables: pd.DataFrame, **settings) -> str:
    """A page with a section for each table."""
    sections = [section_of(table) for table in tables]
    return html_page(sections, **{"title": "A page"} | settings)
