"""Writes the report: for each benchmark a page, its tables and its pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
from matplotlib.figure import Figure

from vcl_radial.report.figures.style import save
from vcl_radial.runs.folder import not_written, write_atomically
from vcl_radial.tracks.retinopathy.report import in_sequence, pictures, sheet, tables
from vcl_radial.tracks.retinopathy.report.published import CITATION
from vcl_radial.tracks.retinopathy.report.read import Benchmark, read_benchmarks

_HOW_TO_READ: Final = (
    "Mean over seeds ± its standard error; in parentheses the standard error over patients, "
    "bootstrapped from 100 resamples and averaged over seeds. The photographs with the largest "
    "mutual information (MI) are referred first; those with the largest entropy where a method "
    "has a single draw."
)

_EYEPACS: Final = ("eyepacs-subset", "kaggle-eyepacs")

_BESIDE: Final = (
    "In italics: {citation}; there the standard error is over resamples of the photographs. It is "
    "of all EyePACS photographs at 512 x 512 pixels: compare the order of the methods and what "
    "referral gains, not the level."
)


def write_referral_report(folder: Path, to: Path, data_dir: Path | None, command: str) -> None:
    """Write the report of all finished runs below a folder.

    For each benchmark a folder with `README.md`, `scores.csv` (means over seeds),
    `calibration.csv` (all seeds together) and pictures as PNG and SVG.

    Args:
        folder: given to `--out` of `vcl-radial refer`.
        to: where to write.
        data_dir: where IDRiD lies, for the sheet; see `vcl_radial.data.fundus.load_photographs`.
        command: that writes it, in words.

    Raises:
        UserError: there is nothing to report, or it cannot be read or written.
    """
    for benchmark in read_benchmarks(folder):
        _write(benchmark, to / _file_name(benchmark.name), data_dir, command)


def _write(benchmark: Benchmark, place: Path, data_dir: Path | None, command: str) -> None:
    means = tables.means(benchmark.table("scores"))
    sites = list(dict.fromkeys(means["after"]))
    last = means[means["after"] == sites[-1]]
    calibration = benchmark.table("calibration")
    pooled = tables.pooled_calibration(calibration[calibration["after"] == sites[-1]])
    drawn: dict[str, Figure] = {}
    sections = []
    if len(sites) > 1:
        drawn["in-sequence"] = in_sequence.picture(means, benchmark.name, benchmark.notices)
        sections.append(in_sequence.section(means, "in-sequence"))
    for name, of_set in tables.each_set(last):
        sections.append(_section(benchmark, name, of_set))
        title = f"{benchmark.name}, {name}"
        stem = _file_name(name)
        found = {
            f"referral-{stem}": pictures.referral_curves(
                of_set, "auc", "AUC", f"{title}: referral", benchmark.notices
            ),
            f"calibration-{stem}": pictures.calibration_curves(
                pooled[pooled["set"] == name], of_set, f"{title}: calibration", benchmark.notices
            ),
        }
        sections += [_shown(picture) for picture in found]
        drawn |= found
    if (detected := tables.detection(last)) is not None:
        sections.append(
            "## What uncertainty finds\n\nAUC in % with which the uncertainty of a photograph "
            "tells that it has an artefact, or that it is of another data set than the test part; "
            f"50 is chance.\n\n{detected}"
        )
    sheets, missing = _sheets(benchmark, data_dir)
    if sheets or missing:
        sections.append("## Most and least certain\n")
        sections += [_shown(picture) for picture in sheets]
        sections += [f"{words}\n" for words in missing]
    page = [*_head(benchmark, len(sites) > 1), *sections, _provenance(benchmark, command)]
    write_atomically(place / "scores.csv", means.to_csv(index=False))
    write_atomically(place / "calibration.csv", pooled.to_csv(index=False))
    for stem, picture in (drawn | sheets).items():
        try:
            save(picture, place / stem)
        except OSError as error:
            raise not_written(place / stem, error) from None
    # The page is last: what it names is there.
    write_atomically(place / "README.md", "\n".join(page))
    methods = ", ".join(method.label for method in benchmark.methods)
    print(f"{place / 'README.md'}: {len(benchmark.runs)} runs of {methods}")
    for words in missing:
        print(f"  {words}")


def _head(benchmark: Benchmark, sequence: bool) -> list[str]:
    after = " All but the first section is of the networks after the last site." * sequence
    notices = [f"> {notice}\n" for notice in benchmark.notices]
    return [f"# {benchmark.name}", "", *notices, _HOW_TO_READ + after, ""]


def _section(benchmark: Benchmark, name: str, of_set: pd.DataFrame) -> str:
    """The tables of a test set, beside the paper's where it is EyePACS's test part."""
    beside = benchmark.methods[0].run.data.dataset in _EYEPACS and name == "test"
    parts = [
        f"## {name}\n",
        f"AUC in % of what is kept\n\n{tables.table_1(benchmark, of_set, 'auc', beside=beside)}",
    ]
    if beside:
        parts.append(_BESIDE.format(citation=CITATION) + "\n")
        if (gains := tables.gains(benchmark, of_set)) is not None:
            parts.append(gains)
    for metric, words in (("accuracy", "Accuracy"), ("balanced_accuracy", "Balanced accuracy")):
        short = tables.table_1(benchmark, of_set, metric, facts=False)
        parts.append(f"{words} in % of what is kept\n\n{short}")
    parts.append(f"Of all photographs\n\n{tables.single_scores(of_set)}")
    return "\n".join(parts)


def _sheets(benchmark: Benchmark, data_dir: Path | None) -> tuple[dict[str, Figure], list[str]]:
    """A sheet for each method and each test set that may be shown, of its first seed."""
    found, missing = sheet.showable(benchmark.methods[0].run.data, data_dir)
    sheets = {}
    for photographs in found:
        for method in benchmark.methods:
            predictions = method.seeds[0].table("predictions")
            after = predictions["after"].iloc[-1]
            of_last = predictions[predictions["after"] == after]
            for name, of_set in of_last.groupby("set", sort=False):
                title = f"{benchmark.name}, {name}: {method.label}, seed {method.seeds[0].run.seed}"
                figure = sheet.sheet(of_set, photographs, title)
                if figure is not None:
                    stem = f"sheet-{_file_name(str(name))}-{_file_name(method.label)}"
                    sheets[stem] = figure
    return sheets, missing


def _shown(stem: str) -> str:
    return f"![{stem}]({stem}.png)\n"


def _provenance(benchmark: Benchmark, command: str) -> str:
    facts = [one.facts for one in benchmark.runs]
    seeds = sorted({one.run.seed for one in benchmark.runs})
    hours = sum(fact["seconds"] for fact in facts) / 3600
    counts = facts[0]["photographs"]
    return "\n".join(
        [
            "## Where the numbers come from",
            "",
            f"- this page: `{command}`",
            f"- seeds: {', '.join(map(str, seeds))}",
            f"- photographs: {counts['train']} to train on, {counts['test']} to test on",
            f"- commit: {_all(facts, 'commit')}",
            f"- device: {_all(facts, 'device')} ({_all(facts, 'processor')}), "
            f"{_all(facts, 'threads')} thread(s)",
            f"- {len(facts)} finished runs, {hours:.2f} hours of training in all",
            "",
        ]
    )


def _all(facts: Sequence[Mapping[str, Any]], key: str) -> str:
    return ", ".join(sorted({str(fact.get(key) or "unknown") for fact in facts}))


def _file_name(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_.=-]+", "-", name)
