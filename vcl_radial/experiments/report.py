"""The report of a folder of runs: tables, heatmaps and where the numbers came from."""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Sequence
from itertools import chain, count
from pathlib import Path

import pandas as pd

from vcl_radial.experiments.results import FinishedRun, gather, results_table
from vcl_radial.experiments.run_folder import not_written, write_atomically


def write_report(
    folder: Path, to: Path, benchmark: str | None = None, first: Sequence[str] = ()
) -> None:
    """Write the report of each benchmark below a folder, print its table and where it lies.

    Args:
        folder: what was given to `--out`.
        to: where to write; each benchmark gets a folder of its own in it.
        benchmark: only this one; None for all.
        first: methods to show first, in this order; the others follow by name.
    """
    from vcl_radial import figures

    runs, passed_over = gather(folder if benchmark is None else folder / benchmark)
    for words in passed_over:
        print(f"passed over: {words}", file=sys.stderr)
    for name in sorted({run.benchmark for run in runs}):
        chosen = [run for run in runs if run.benchmark == name]
        chosen.sort(key=lambda run: _place(run.spec["method"], first))
        results = results_table(chosen)
        tasks = chosen[0].environment["tasks"]
        table = figures.summary_table(results)
        place = to / _file_name(name)
        write_atomically(place / "results.csv", results.to_csv(index=False))
        write_atomically(place / "summary.csv", figures.to_csv(table))
        tables = figures.to_markdown(table) + _differences(results)
        write_atomically(place / "summary.md", _page(name, tables, chosen))
        pictures = {"final-model": figures.final_bars(results, tasks=tasks)}
        methods = figures.method_names(results)
        for method in methods:
            pictures[_unused(f"heatmap-{_file_name(method)}", pictures)] = figures.heatmap(
                results, method, tasks=tasks
            )
        if len(methods) > 1:
            pictures["heatmaps"] = figures.heatmap_sheet(results, tasks=tasks)
        print(f"\n{name}\n{figures.to_text(table)}")
        for stem, picture in pictures.items():
            try:
                paths = figures.save(picture, place / stem)
            except OSError as error:
                raise not_written(place / stem, error) from None
            print(f"  {paths[0]}  (and .{paths[1].suffix[1:]})")
        print(f"  {place / 'summary.md'}, results.csv, summary.csv")


def _differences(results: pd.DataFrame) -> str:
    """The other methods against the first, where there are seeds to compare, as Markdown."""
    from vcl_radial.figures import method_names, paired_differences

    reference = method_names(results)[0]
    rows = [
        f"| {d.method} | {d.seeds} | {d.difference:+.2f} ± {d.difference_se:.2f} | {d.p:.4f} |"
        for d in paired_differences(results, reference).itertuples()
    ]
    if not rows:
        return ""
    head = [
        f"\nAverage accuracy against {reference}, paired by seed; p of the exact sign-flip test:\n",
        "| method | seeds | difference | p |",
        "| --- | ---: | ---: | ---: |",
    ]
    return "\n".join([*head, *rows, ""])


def _page(name: str, tables: str, runs: list[FinishedRun]) -> str:
    """The tables with what stands behind them."""
    commits = sorted({str(run.environment.get("commit") or "none (no checkout)") for run in runs})
    devices = sorted(
        {
            f"{run.environment['device']} ({run.environment['processor']}), "
            f"{run.environment['threads']} thread(s) a run, torch "
            f"{run.environment['packages']['torch']}"
            for run in runs
        }
    )
    hours = sum(sum(run.environment["seconds"].values()) for run in runs) / 3600
    seeds = sorted({run.spec["seed"] for run in runs})
    days = sorted({run.environment["finished"][:10] for run in runs})
    return "\n".join(
        [
            f"# {name}",
            "",
            tables.rstrip(),
            "",
            f"Evaluated on: {', '.join(sorted({run.spec['evaluate_on'] for run in runs}))} data. "
            "Accuracy, forgetting, transfer and ECE in per cent, NLL in nats; mean ± standard "
            "error over seeds.",
            "",
            f"- seeds: {', '.join(map(str, seeds))}",
            f"- commit: {', '.join(commits)}",
            f"- device: {'; '.join(devices)}",
            f"- finished: {days[0] if len(days) == 1 else f'{days[0]} to {days[-1]}'}; "
            f"{hours:.2f} hours of training and evaluation in all",
            "",
        ]
    )


def _place(method: str, first: Sequence[str]) -> int:
    return first.index(method) if method in first else len(first)


def _file_name(name: str) -> str:
    """A name with its settings, as a file name: `radial-vcl_epochs=5_hidden=8-8`."""
    words = re.sub(r"(?<=\d), (?=\d)", "-", name)
    return re.sub(r"[^\w.=-]+", "_", words).strip("_")[:100]


def _unused(stem: str, used: Container[str]) -> str:
    """The stem, or with a number where names differ only by what a file name cannot hold."""
    return next(s for s in chain([stem], (f"{stem}-{n}" for n in count(2))) if s not in used)
